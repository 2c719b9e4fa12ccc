//! Cancel cases on constructed turns: each is recognised, and a step that is out of order, missing or
//! added is rejected.

mod again;

use serde_json::json;
use turnwire_event::body::{dispatch, llm, route, stream, tool, turn};
use turnwire_event::code::{CallPurpose, LlmErrorClass, ToolType, TurnKind, TurnStatus};
use turnwire_event::fold::{CloseCause, OpenTurn, closing};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, EpisodeId, Epoch, Event, EventType, MessageId, Position,
    Role, Seq, SessionId, StopReason, Sub, Timestamp, TokenUsage, ToolUseId, TurnId, Ulid,
};

use super::{CancelCase, check_uncancelled_turn, classify_cancel};

/// Builds the events of a turn step by step.
struct TurnBuilder {
    events: Vec<Event>,
    open: OpenTurn,
    ids: u128,
}

impl TurnBuilder {
    fn started() -> Self {
        let mut turn = Self {
            events: Vec::new(),
            open: OpenTurn::new(TurnId(Ulid(1))),
            ids: 1,
        };
        turn.say(Body::TurnStarted(turn::TurnStarted {
            relayed_to: None,
            answers: Vec::new(),
            resumes: None,
            user_message_id: MessageId(Ulid(2)),
            input: vec![ContentBlock::text("hi")],
            kind: TurnKind::Chat,
            origin: None,
            dm_type: None,
            episode_id: EpisodeId(Ulid(3)),
            locale: "en".into(),
            wire_version: None,
            history_omitted: 0,
            versions: turn::BoundVersions::default(),
        }));
        turn
    }

    fn routed() -> Self {
        let mut turn = Self::started();
        turn.route();
        turn
    }

    fn route(&mut self) {
        self.say(Body::RouteDecided(route::RouteDecided {
            relayed: None,
            model: "m".into(),
            routing_policy_version: "1".into(),
            reason: "default".into(),
            candidates: Vec::new(),
        }));
    }

    /// A call that failed before it said anything.
    fn unheard(&mut self, attempt: u32) {
        let call_id = self.attempt(attempt);
        self.say(Body::LlmCallFailed(llm::CallFailed {
            call_id,
            message_id: None,
            content_sha256: None,
            error_class: LlmErrorClass::RateLimited,
            usage: TokenUsage::default(),
        }));
    }

    fn say(&mut self, body: Body) {
        let last = self
            .events
            .last()
            .map_or(Position::persisted(Epoch::FIRST, Seq(0)), |e| e.id);
        let id = if body.kind().is_persisted() {
            Position::persisted(last.epoch, last.seq.next())
        } else {
            Position {
                sub: Sub(last.sub.0 + 1),
                ..last
            }
        };
        let timestamp = Timestamp::from_millis(0);
        self.open.apply(id, timestamp, &Actor::ORCHESTRATOR, &body);
        self.events.push(Event {
            response_id: None,
            id,
            session_id: SessionId(Ulid(1)),
            turn_id: Some(self.open.id),
            actor: Actor::ORCHESTRATOR,
            timestamp,
            trace: None,
            render: None,
            sub_agent_id: None,
            body,
        });
    }

    fn id(&mut self) -> Ulid {
        self.ids += 100;
        Ulid(self.ids)
    }

    fn call(&mut self) -> CallId {
        self.attempt(1)
    }

    fn attempt(&mut self, attempt: u32) -> CallId {
        let call_id = CallId(self.id());
        self.say(Body::LlmCallStarted(llm::CallStarted {
            call_id,
            model: "m".into(),
            purpose: CallPurpose::Orchestrate,
            attempt,
            first: self.open.calls == 0,
        }));
        call_id
    }

    fn message(&mut self) -> MessageId {
        let message_id = MessageId(self.id());
        let model = "m".to_owned();
        self.say(Body::MessageStart(stream::MessageStart {
            message_id,
            role: Role::Assistant,
            model,
        }));
        let text = "some words".to_owned();
        self.say(Body::TextDelta(stream::TextDelta {
            message_id,
            content_block_index: 0,
            text,
        }));
        message_id
    }

    fn tool_use(&mut self, message_id: MessageId, content_block_index: u32) -> ToolUseId {
        let tool_use_id = ToolUseId(self.id());
        let tool_name = "echo".to_owned();
        self.say(Body::ToolUseStart(stream::ToolUseStart {
            message_id,
            content_block_index,
            tool_use_id,
            tool_name,
        }));
        tool_use_id
    }

    fn end_use(&mut self, message_id: MessageId, content_block_index: u32, tool_use_id: ToolUseId) {
        let final_input = json!({});
        self.say(Body::ToolUseEnd(stream::ToolUseEnd {
            message_id,
            content_block_index,
            tool_use_id,
            final_input,
        }));
    }

    fn end_message(&mut self, call_id: CallId, message_id: MessageId, stop_reason: StopReason) {
        let fold = self.open.message.as_ref().expect("a message is open");
        let end = fold.complete(stop_reason, TokenUsage::default());
        self.say(Body::MessageComplete(end));
        self.say(Body::LlmCallCompleted(llm::CallCompleted {
            call_id,
            message_id,
            content_sha256: String::new(),
            stop_reason,
            usage: TokenUsage::default(),
        }));
    }

    /// A call that asks for two tools.
    fn asks(&mut self) -> [ToolUseId; 2] {
        let call = self.call();
        let message = self.message();
        let tools = [self.tool_use(message, 1), self.tool_use(message, 2)];
        self.end_use(message, 1, tools[0]);
        self.end_use(message, 2, tools[1]);
        self.end_message(call, message, StopReason::ToolUse);
        tools
    }

    fn called(&mut self, tool_use_id: ToolUseId) {
        self.say(Body::ToolCalled(tool::ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name: "echo".into(),
            tool_type: ToolType::Function,
            input_summary: String::new(),
        }));
    }

    fn done(&mut self, tool_use_id: ToolUseId) {
        self.say(Body::ToolCompleted(tool::ToolCompleted {
            upstream_id: None,
            tool_use_id,
            tool_name: "echo".into(),
            tool_type: ToolType::Function,
            duration_ms: 0,
            result_summary: String::new(),
            result_sha256: String::new(),
        }));
    }

    fn asked(&mut self) {
        self.say(Body::TurnCancelRequested(turn::CancelRequested::new(
            "user", "why",
        )));
    }

    fn closed(mut self) -> Vec<Event> {
        let end = CloseCause::Cancelled {
            code: turnwire_event::code::CancelCode::RequestCancelled,
            stops: None,
            reason: "why".into(),
            asked: Timestamp::from_millis(0),
        };
        for part in closing(&self.open.clone(), &end, &[], Timestamp::from_millis(0)) {
            self.say(part.body);
        }
        self.events
    }

    fn cancelled(mut self) -> Vec<Event> {
        self.asked();
        self.closed()
    }
}

fn all() -> Vec<(CancelCase, Vec<Event>)> {
    let mut silent = TurnBuilder::routed();
    silent.call();
    let mut first = TurnBuilder::routed();
    first.call();
    first.message();
    let mut tools = TurnBuilder::routed();
    let [a, _] = tools.asks();
    tools.called(a);
    let mut seam = TurnBuilder::routed();
    seam.asks();
    let mut later = TurnBuilder::routed();
    let [c, d] = later.asks();
    for tool in [c, d] {
        later.called(tool);
        later.done(tool);
    }
    let mut idle = TurnBuilder::routed();
    let [e, f] = idle.asks();
    for tool in [e, f] {
        idle.called(tool);
    }
    idle.done(f);
    idle.asked();
    idle.done(e);
    let mut mixed = TurnBuilder::routed();
    let [g, h] = mixed.asks();
    mixed.called(g);
    mixed.called(h);
    mixed.done(h);
    later.call();
    later.message();
    vec![
        (CancelCase::Route, TurnBuilder::started().cancelled()),
        (CancelCase::Route, TurnBuilder::routed().cancelled()),
        (CancelCase::Silent, silent.cancelled()),
        (CancelCase::Llm, first.cancelled()),
        (CancelCase::Tool, tools.cancelled()),
        (CancelCase::Tool, mixed.cancelled()),
        (CancelCase::Seam, seam.cancelled()),
        (CancelCase::LaterLlm, later.cancelled()),
        (CancelCase::Idle, idle.closed()),
    ]
}

// S3-077
#[test]
fn cancel_case_is_classified() {
    for (case, events) in all() {
        assert_eq!(classify_cancel(&events), Ok(case));
        assert!(check_uncancelled_turn(&events).is_err());
    }
}

// S3-072
#[test]
fn open_tool_use_ends_before_its_message() {
    let mut turn = TurnBuilder::routed();
    turn.call();
    let message = turn.message();
    let tool = turn.tool_use(message, 1);
    turn.asked();
    let mut without = TurnBuilder {
        events: turn.events.clone(),
        open: turn.open.clone(),
        ids: turn.ids,
    };
    turn.end_use(message, 1, tool);
    assert_eq!(classify_cancel(&turn.closed()), Ok(CancelCase::Llm));
    without.ids += 1;
    assert!(classify_cancel(&without.closed()).is_err());
}

// S3-077
#[test]
fn dropped_or_duplicated_event_is_rejected() {
    // What the order alone cannot tell: a delta more or less, and a choice of model that a very
    // early cancel may have come before.
    let free = [EventType::TextDelta, EventType::RouteDecided];
    for (case, events) in all() {
        for at in 0..events.len() {
            if free.contains(&events[at].body.kind()) {
                continue;
            }
            let mut less = events.clone();
            less.remove(at);
            assert_ne!(
                classify_cancel(&less),
                Ok(case),
                "{case:?} without number {at}"
            );
            let mut longer = events.clone();
            longer.insert(at, events[at].clone());
            assert_ne!(
                classify_cancel(&longer),
                Ok(case),
                "{case:?} with number {at} twice"
            );
        }
    }
}

// S3-077
#[test]
fn swapped_neighbour_events_are_rejected() {
    for (case, events) in all() {
        for at in 1..events.len() {
            let kinds = (events[at - 1].body.kind(), events[at].body.kind());
            let free = matches!(
                kinds,
                (EventType::ToolUseStart, _) | (EventType::ToolUseEnd, _)
            ) || matches!(kinds, (EventType::TextDelta, EventType::ToolUseStart))
                || matches!(
                    kinds.0,
                    EventType::ToolCalled | EventType::ToolCompleted | EventType::ToolFailed
                )
                || matches!(kinds.1, EventType::TurnCancelRequested)
                || matches!(kinds.0, EventType::TurnCancelRequested);
            let mut other = events.clone();
            other.swap(at - 1, at);
            if !free {
                assert_ne!(
                    classify_cancel(&other),
                    Ok(case),
                    "{case:?} with {kinds:?} swapped"
                );
            }
        }
    }
}

// S3-052
#[test]
fn plain_turn_is_complete_and_in_order() {
    let mut turn = TurnBuilder::routed();
    let [a, b] = turn.asks();
    turn.called(a);
    turn.called(b);
    turn.done(b);
    turn.done(a);
    let call = turn.call();
    let message = turn.message();
    turn.end_message(call, message, StopReason::EndTurn);
    assert!(
        check_uncancelled_turn(&turn.events).is_err(),
        "it has no end"
    );
    turn.say(Body::DispatchTraced(dispatch::DispatchTraced::default()));
    turn.say(Body::TurnCompleted(turn::TurnCompleted {
        status: TurnStatus::Ok,
        usage: TokenUsage::default(),
        error: None,
        reason: None,
        partial: None,
        paused: None,
    }));
    assert_eq!(check_uncancelled_turn(&turn.events), Ok(()));
    for at in 0..turn.events.len() {
        let mut less = turn.events.clone();
        let removed_kind = less.remove(at).body.kind();
        if removed_kind != EventType::TextDelta {
            assert!(
                check_uncancelled_turn(&less).is_err(),
                "without {removed_kind}"
            );
        }
    }
}
