//! Scenarios: event logs written by hand, numbered like the sequencer numbers them.
//!
//! [`LogBuilder`] assigns positions, times and ids that are the same in every run; `subagents` adds
//! the events of sub-agents. `catalog` has the scenarios, `endings` those with other endings,
//! `dispatch` and `faults` those with sub-agents. `invariants` checks every list of events.

mod close;
pub(crate) mod subagents;
mod endings;
pub(crate) mod dispatch;
mod faults;
pub(crate) mod catalog;
pub(crate) mod invariants;

use serde_json::Value;
use turnwire_event::body::llm::{CallCompleted, CallFailed, CallStarted};
use turnwire_event::body::route::RouteDecided;
use turnwire_event::body::session::SessionCreated;
use turnwire_event::body::stream::{
    MessageStart, TextDelta, ThinkingDelta, ToolUseEnd, ToolUseInputDelta, ToolUseStart,
};
use turnwire_event::body::tool::{ToolCalled, ToolCompleted, ToolFailed};
use turnwire_event::body::turn::{BoundVersions, TurnStarted};
use turnwire_event::code::{CallPurpose, LlmErrorClass, ToolErrorClass, ToolType, TurnKind};
use turnwire_event::content::{content_json, sha256_hex};
use turnwire_event::fold::OpenTurn;
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, EpisodeId, Epoch, Event, EventType, MessageId, Position,
    RenderPolicy, Role, Seq, SessionId, StopReason, Sub, Timestamp, TokenUsage, ToolUseId, TurnId,
    Ulid,
};

pub(crate) const MODEL: &str = "scripted:demo";
const SESSION: SessionId = SessionId(Ulid(0x5E55));

/// A log under construction.
pub(crate) struct LogBuilder {
    pub(crate) events: Vec<Event>,
    seq: Seq,
    sub: Sub,
    ms: i64,
    ids: u128,
    open: Option<OpenTurn>,
    /// True once the turn has emitted text.
    spoken: bool,
}

impl LogBuilder {
    /// A log with a new session.
    pub(crate) fn new() -> Self {
        let mut log = Self {
            events: Vec::new(),
            seq: Seq(0),
            sub: Sub(0),
            ms: 1_794_000_000_000,
            ids: 0,
            open: None,
            spoken: false,
        };
        let created = SessionCreated {
            workspace_path: None,
            episode_id: EpisodeId(Ulid(0xE9)),
        };
        log.emit(Actor::SYSTEM, Body::SessionCreated(created));
        log
    }

    fn id(&mut self) -> Ulid {
        self.ids += 1;
        Ulid(0x0100 + self.ids)
    }

    /// Appends an event with the next position.
    pub(crate) fn emit(&mut self, actor: Actor, body: Body) {
        if body.kind().is_persisted() {
            self.seq = self.seq.next();
            self.sub = Sub(0);
        } else {
            self.sub = self.sub.next();
        }
        let id = Position {
            epoch: Epoch::FIRST,
            seq: self.seq,
            sub: self.sub,
        };
        self.place(id, actor, body);
    }

    fn place(&mut self, id: Position, actor: Actor, body: Body) {
        self.ms += 7;
        let timestamp = Timestamp::from_millis(self.ms);
        // A routing policy belongs to no turn, even while a turn runs.
        let aside = body.kind() == EventType::RoutingPolicyReloaded;
        let turn_id = self.open.as_ref().map(|open| open.id).filter(|_| !aside);
        if let Some(open) = self.open.as_mut().filter(|_| !aside) {
            open.apply(id, timestamp, &actor, &body);
            if body.kind().is_terminal() {
                self.open = None;
            }
        }
        self.events.push(Event {
            response_id: None,
            id,
            session_id: SESSION,
            turn_id,
            actor,
            timestamp,
            trace: None,
            render: None,
            sub_agent_id: None,
            body,
        });
    }

    /// Sets the rendering policy of the newest event.
    pub(crate) fn stamp(&mut self, policy: RenderPolicy) {
        let newest = self.events.last_mut().expect("an event");
        newest.render = Some(policy.into());
    }

    /// Starts and routes a turn.
    pub(crate) fn turn(&mut self, text: &str) {
        self.turn_unrouted(text);
        let route = RouteDecided {
            relayed: None,
            model: MODEL.into(),
            routing_policy_version: "builtin-1".into(),
            reason: "default".into(),
            candidates: Vec::new(),
        };
        self.emit(Actor::SYSTEM, Body::RouteDecided(route));
    }

    /// Starts a turn without routing it.
    pub(crate) fn turn_unrouted(&mut self, text: &str) {
        let turn = TurnId(self.id());
        let started = TurnStarted {
            relayed_to: None,
            answers: Vec::new(),
            resumes: None,
            user_message_id: MessageId(self.id()),
            input: vec![ContentBlock::text(text)],
            kind: TurnKind::Chat,
            origin: None,
            dm_type: None,
            episode_id: EpisodeId(Ulid(0xE9)),
            locale: "en".into(),
            wire_version: None,
            history_omitted: 0,
            versions: BoundVersions::default(),
        };
        self.open = Some(OpenTurn::new(turn));
        self.spoken = false;
        self.emit(Actor::USER, Body::TurnStarted(started));
    }

    /// Starts a model call.
    pub(crate) fn call(&mut self) -> CallId {
        let call_id = CallId(self.id());
        let first = self.open.as_ref().is_some_and(|open| open.calls == 0);
        let started = CallStarted {
            call_id,
            model: MODEL.into(),
            purpose: CallPurpose::Orchestrate,
            attempt: 1,
            first,
        };
        self.emit(Actor::ORCHESTRATOR, Body::LlmCallStarted(started));
        call_id
    }

    /// Starts the message of the model.
    pub(crate) fn message(&mut self) -> MessageId {
        let message_id = MessageId(self.id());
        let start = MessageStart {
            message_id,
            role: Role::Assistant,
            model: MODEL.into(),
        };
        self.emit(Actor::ORCHESTRATOR, Body::MessageStart(start));
        message_id
    }

    fn in_flight(&self) -> &turnwire_event::fold::MessageFold {
        let open = self.open.as_ref().expect("a turn");
        open.message.as_ref().expect("a message in flight")
    }

    /// Appends text.
    pub(crate) fn text(&mut self, block: u32, text: &str) {
        let delta = TextDelta {
            message_id: self.in_flight().id,
            content_block_index: block,
            text: text.into(),
        };
        self.emit(Actor::ORCHESTRATOR, Body::TextDelta(delta));
        self.spoken |= !text.is_empty();
    }

    /// Appends reasoning; the last part of a block has the signature.
    pub(crate) fn thinking(&mut self, block: u32, text: &str, seal: Option<&str>) {
        let delta = ThinkingDelta {
            message_id: self.in_flight().id,
            content_block_index: block,
            text: text.into(),
            signature: seal.map(str::to_owned),
            after_text: self.spoken,
        };
        self.emit(Actor::ORCHESTRATOR, Body::ThinkingDelta(delta));
    }

    /// Starts a tool use.
    pub(crate) fn tool_start(&mut self, block: u32, name: &str) -> ToolUseId {
        let tool_use_id = ToolUseId(self.id());
        let start = ToolUseStart {
            message_id: self.in_flight().id,
            content_block_index: block,
            tool_use_id,
            tool_name: name.into(),
        };
        self.emit(Actor::ORCHESTRATOR, Body::ToolUseStart(start));
        tool_use_id
    }

    /// Appends a part of a tool's input.
    pub(crate) fn input(&mut self, block: u32, tool_use_id: ToolUseId, partial_json: &str) {
        let delta = ToolUseInputDelta {
            message_id: self.in_flight().id,
            content_block_index: block,
            tool_use_id,
            partial_json: partial_json.into(),
        };
        self.emit(Actor::ORCHESTRATOR, Body::ToolUseInputDelta(delta));
    }

    /// Ends the input of a tool use.
    pub(crate) fn tool_end(&mut self, block: u32, tool_use_id: ToolUseId, final_input: Value) {
        let end = ToolUseEnd {
            message_id: self.in_flight().id,
            content_block_index: block,
            tool_use_id,
            final_input,
        };
        self.emit(Actor::ORCHESTRATOR, Body::ToolUseEnd(end));
    }

    /// Completes the model call and its message.
    pub(crate) fn complete(&mut self, call_id: CallId, stop_reason: StopReason) {
        let usage = TokenUsage {
            input_tokens: 20,
            output_tokens: 8,
            total_tokens: 28,
            reasoning_tokens: 0,
            cached_tokens: 4,
            cost_usd: 0.00125,
            estimated: false,
        };
        let complete = self.in_flight().complete(stop_reason, usage);
        let (_, content_sha256) = content_json(&complete.final_content);
        let completed = CallCompleted {
            call_id,
            message_id: complete.message_id,
            content_sha256,
            stop_reason,
            usage,
        };
        self.emit(Actor::ORCHESTRATOR, Body::MessageComplete(complete));
        self.emit(Actor::ORCHESTRATOR, Body::LlmCallCompleted(completed));
    }

    /// Fails the model call with its partial message.
    pub(crate) fn fail(&mut self, call_id: CallId, error_class: LlmErrorClass) {
        let open = self.open.as_ref().expect("a turn");
        let complete = open
            .message
            .as_ref()
            .map(|message| message.complete(StopReason::Error, TokenUsage::default()));
        let failed = CallFailed {
            call_id,
            message_id: complete.as_ref().map(|c| c.message_id),
            content_sha256: complete.as_ref().map(|c| content_json(&c.final_content).1),
            error_class,
            usage: TokenUsage::default(),
        };
        if let Some(complete) = complete {
            self.emit(Actor::ORCHESTRATOR, Body::MessageComplete(complete));
        }
        self.emit(Actor::ORCHESTRATOR, Body::LlmCallFailed(failed));
    }

    /// Starts a tool.
    pub(crate) fn called(&mut self, tool_use_id: ToolUseId, name: &str, input: &str) {
        let called = ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name: name.into(),
            tool_type: ToolType::Function,
            input_summary: input.into(),
        };
        self.emit(Actor::tool(name), Body::ToolCalled(called));
    }

    /// Completes a tool.
    pub(crate) fn completed(&mut self, tool_use_id: ToolUseId, name: &str, result: &str) {
        let completed = ToolCompleted {
            upstream_id: None,
            tool_use_id,
            tool_name: name.into(),
            tool_type: ToolType::Function,
            duration_ms: 12,
            result_summary: result.into(),
            result_sha256: sha256_hex(result.as_bytes()),
        };
        self.emit(Actor::tool(name), Body::ToolCompleted(completed));
    }

    /// Fails a tool that was called.
    pub(crate) fn failed(&mut self, tool_use_id: ToolUseId, name: &str, class: ToolErrorClass) {
        let failed = ToolFailed {
            upstream_id: None,
            tool_use_id,
            tool_name: name.into(),
            tool_type: ToolType::Function,
            error_class: class,
            called: true,
        };
        self.emit(Actor::tool(name), Body::ToolFailed(failed));
    }

    /// Rejects a tool use whose input is invalid.
    pub(crate) fn refused(&mut self, tool_use_id: ToolUseId, name: &str) {
        let failed = ToolFailed {
            upstream_id: None,
            tool_use_id,
            tool_name: name.into(),
            tool_type: ToolType::Function,
            error_class: ToolErrorClass::InvalidInput,
            called: false,
        };
        self.emit(Actor::tool(name), Body::ToolFailed(failed));
    }
}
