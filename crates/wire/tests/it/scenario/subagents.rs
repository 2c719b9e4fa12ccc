//! The events of sub-agents: steps, model calls, statuses, data and failures.

use serde_json::{Value, json};
use turnwire_event::body::agent::ErrorEmit;
use turnwire_event::body::component::{ComponentRendered, RenderingToolCall};
use turnwire_event::body::data::{CollectionKey, DataLoaded, DataLoading, ItemKey};
use turnwire_event::body::llm::{CallCompleted, CallFailed, CallStarted};
use turnwire_event::body::plan::{SlotEnd, StepCompleted, StepStarted};
use turnwire_event::body::status;
use turnwire_event::body::subagent::{
    SubagentCompleted, SubagentContext, SubagentFailed, SubagentStarted,
};
use turnwire_event::body::tool;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{
    AgentErrorClass, CallPurpose, DispatchOutcome, ErrorCode, LlmErrorClass, SlotStatus,
    StepStatus, ToolErrorClass, ToolType,
};
use turnwire_event::content::sha256_hex;
use turnwire_event::{
    Actor, Body, CallId, EpisodeId, InvocationId, MessageId, RenderDecision, RenderPolicy,
    StopReason, TokenUsage, ToolUseId, Ulid,
};

use super::{LogBuilder, MODEL};

/// A running sub-agent.
#[derive(Clone, Copy)]
pub(crate) struct RunningSubagent {
    pub(crate) id: &'static str,
    pub(crate) tool_use_id: ToolUseId,
    invocation_id: InvocationId,
}

impl RunningSubagent {
    fn actor(&self) -> Actor {
        Actor::subagent(self.id)
    }

    fn tool(&self) -> String {
        format!("ask_{}", self.id)
    }
}

impl LogBuilder {
    /// The orchestrator uses tools without any text.
    pub(crate) fn ask_for(&mut self, names: &[&str]) -> Vec<ToolUseId> {
        let call = self.call();
        self.message();
        let mut ids = Vec::new();
        for (block, name) in (0..).zip(names) {
            let id = self.tool_start(block, name);
            self.tool_end(block, id, json!({"query": "oat milk"}));
            ids.push(id);
        }
        self.complete(call, StopReason::ToolUse);
        ids
    }

    /// The orchestrator starts sub-agents, at most three.
    pub(crate) fn ask(&mut self, agents: &[&'static str]) -> Vec<RunningSubagent> {
        let names: Vec<String> = agents.iter().map(|id| format!("ask_{id}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ids = self.ask_for(&names);
        self.step(agents, 3, &[]);
        let pairs = agents.iter().zip(ids);
        pairs.map(|(agent, id)| self.begin(agent, id)).collect()
    }

    fn step_id(&self) -> String {
        let turn = self.open.as_ref().expect("a turn").id;
        format!("turn-{turn}-1")
    }

    /// Starts a plan step.
    pub(crate) fn step(&mut self, agents: &[&str], cap: u32, dropped: &[&str]) {
        let names = |of: &[&str]| of.iter().map(|id| (*id).to_owned()).collect();
        let started = StepStarted {
            plan_step_id: self.step_id(),
            expected_subagents: names(agents),
            cap,
            dropped: names(dropped),
            deadline_ms: 20_000,
        };
        self.emit(Actor::ORCHESTRATOR, Body::PlanStepStarted(started));
    }

    /// Completes the plan step.
    pub(crate) fn step_done(
        &mut self,
        status: StepStatus,
        slots: &[(RunningSubagent, SlotStatus)],
    ) {
        let slot = |(subagent, status): &(RunningSubagent, SlotStatus)| SlotEnd {
            subagent: subagent.id.into(),
            result_key: subagent.tool_use_id.to_string(),
            status: *status,
        };
        let completed = StepCompleted {
            plan_step_id: self.step_id(),
            status,
            slots: slots.iter().map(slot).collect(),
        };
        self.emit(Actor::ORCHESTRATOR, Body::PlanStepCompleted(completed));
    }

    /// Starts a sub-agent.
    pub(crate) fn begin(&mut self, id: &'static str, tool_use_id: ToolUseId) -> RunningSubagent {
        let subagent = RunningSubagent {
            id,
            tool_use_id,
            invocation_id: InvocationId(self.id()),
        };
        self.tool_called(tool_use_id, &subagent.tool(), ToolType::SubAgent);
        let started = SubagentStarted {
            invocation_id: subagent.invocation_id,
            sub_agent_id: id.into(),
            tool_use_id,
            plan_step_id: self.step_id(),
            context: SubagentContext {
                principal: "user-42".into(),
                user_id: "user-42".into(),
                episode_id: EpisodeId(Ulid(0xE9)),
                locale: "en".into(),
                location: None,
                prior_context: None,
            },
        };
        self.emit(subagent.actor(), Body::SubagentStarted(started));
        subagent
    }

    /// Starts a model call of a sub-agent.
    pub(crate) fn start_model_call(&mut self, subagent: RunningSubagent) -> CallId {
        let call_id = CallId(self.id());
        let started = CallStarted {
            call_id,
            model: MODEL.into(),
            purpose: CallPurpose::Subagent,
            attempt: 1,
            first: false,
        };
        self.emit(subagent.actor(), Body::LlmCallStarted(started));
        call_id
    }

    /// Completes a model call of a sub-agent.
    pub(crate) fn complete_model_call(&mut self, subagent: RunningSubagent, call_id: CallId) {
        let completed = CallCompleted {
            call_id,
            message_id: MessageId(self.id()),
            content_sha256: sha256_hex(b"SUBRAW"),
            stop_reason: StopReason::EndTurn,
            usage: TokenUsage {
                input_tokens: 10,
                output_tokens: 2,
                total_tokens: 12,
                ..TokenUsage::default()
            },
        };
        self.emit(subagent.actor(), Body::LlmCallCompleted(completed));
    }

    /// Fails a model call of a sub-agent.
    pub(crate) fn fail_model_call(&mut self, subagent: RunningSubagent, class: LlmErrorClass) {
        let call_id = self.start_model_call(subagent);
        let failed = CallFailed {
            call_id,
            message_id: None,
            content_sha256: None,
            error_class: class,
            usage: TokenUsage::default(),
        };
        self.emit(subagent.actor(), Body::LlmCallFailed(failed));
    }

    /// Starts and completes a model call of a sub-agent.
    pub(crate) fn calls_model(&mut self, subagent: RunningSubagent) {
        let call = self.start_model_call(subagent);
        self.complete_model_call(subagent, call);
    }

    /// Starts a tool of any type.
    pub(crate) fn tool_called(&mut self, tool_use_id: ToolUseId, name: &str, kind: ToolType) {
        let called = tool::ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name: name.into(),
            tool_type: kind,
            input_summary: "20 bytes".into(),
        };
        self.emit(Actor::tool(name), Body::ToolCalled(called));
    }

    /// Starts a tool of a sub-agent.
    pub(crate) fn uses(&mut self, name: &str, kind: ToolType) -> ToolUseId {
        let id = ToolUseId(self.id());
        self.tool_called(id, name, kind);
        id
    }

    /// Completes a tool of any type.
    pub(crate) fn tool_done(&mut self, tool_use_id: ToolUseId, name: &str, kind: ToolType) {
        let completed = tool::ToolCompleted {
            upstream_id: None,
            tool_use_id,
            tool_name: name.into(),
            tool_type: kind,
            duration_ms: 12,
            result_summary: "214 bytes".into(),
            result_sha256: sha256_hex(b"result"),
        };
        self.emit(Actor::tool(name), Body::ToolCompleted(completed));
    }

    /// Fails a tool of any type.
    pub(crate) fn tool_failed(
        &mut self,
        tool_use_id: ToolUseId,
        (name, kind): (&str, ToolType),
        error_class: ToolErrorClass,
    ) {
        let failed = tool::ToolFailed {
            upstream_id: None,
            tool_use_id,
            tool_name: name.into(),
            tool_type: kind,
            error_class,
            called: true,
        };
        self.emit(Actor::tool(name), Body::ToolFailed(failed));
    }

    /// Emits a status of a sub-agent with a rendering mark.
    pub(crate) fn status(
        &mut self,
        subagent: RunningSubagent,
        words: (&str, &str),
        render: RenderDecision,
    ) {
        let emitted = status::StatusEmitted {
            event_id: words.0.into(),
            message: words.1.into(),
            invocation_id: None,
        };
        self.emit(subagent.actor(), Body::StatusEmitted(emitted));
        self.events.last_mut().expect("just emitted").render = Some(render);
    }

    /// Emits a status and starts a data service tool.
    pub(crate) fn searches(&mut self, subagent: RunningSubagent) -> ToolUseId {
        let words = ("searching_offers", "Searching for offers...");
        self.status(subagent, words, RenderPolicy::Transform.into());
        self.uses("search_offers", ToolType::Ccs)
    }

    /// Emits a placeholder for a collection of offers, without `ids` if they are not known yet.
    pub(crate) fn loading(&mut self, subagent: RunningSubagent, place: &str, ids: &[&str]) {
        let loading = DataLoading {
            id: place.into(),
            data_type: "offer_list".into(),
            key: key(ids),
        };
        self.emit(subagent.actor(), Body::DataLoading(loading));
    }

    /// Emits the items of the collection.
    pub(crate) fn loaded(
        &mut self,
        subagent: RunningSubagent,
        place: &str,
        items: &[(&str, &str)],
    ) {
        let ids: Vec<&str> = items.iter().map(|(id, _)| *id).collect();
        let item = |(id, title): &(&str, &str)| json!({"id": id, "title": title});
        let loaded = DataLoaded {
            id: place.into(),
            data_type: "offer_list".into(),
            key: key(&ids),
            items: items.iter().map(item).collect(),
        };
        self.emit(subagent.actor(), Body::DataLoaded(loaded));
    }

    /// Emits a component of a running render tool.
    pub(crate) fn component(&mut self, subagent: RunningSubagent, id: ToolUseId, component: Value) {
        let rendered = ComponentRendered {
            component,
            tool_call: RenderingToolCall {
                upstream_id: None,
                id,
                name: "render_card".into(),
                tool_type: ToolType::Render,
            },
        };
        self.emit(subagent.actor(), Body::ComponentRendered(rendered));
    }

    /// Completes a sub-agent with an answer.
    pub(crate) fn answers(&mut self, subagent: RunningSubagent, outcome: DispatchOutcome) {
        let completed = SubagentCompleted {
            invocation_id: subagent.invocation_id,
            sub_agent_id: subagent.id.into(),
            tool_use_id: subagent.tool_use_id,
            outcome,
            latency_ms: 84,
            status_events: 1,
        };
        self.emit(subagent.actor(), Body::SubagentCompleted(completed));
        self.tool_done(subagent.tool_use_id, &subagent.tool(), ToolType::SubAgent);
    }

    /// Fails a sub-agent.
    pub(crate) fn fails(&mut self, subagent: RunningSubagent, class: AgentErrorClass) {
        let failed = SubagentFailed {
            invocation_id: subagent.invocation_id,
            sub_agent_id: subagent.id.into(),
            tool_use_id: subagent.tool_use_id,
            latency_ms: 500,
            error_class: class,
            status_events: 0,
        };
        self.emit(subagent.actor(), Body::SubagentFailed(failed));
        let ask = (subagent.tool(), ToolType::SubAgent);
        let class = match class {
            AgentErrorClass::Timeout => ToolErrorClass::Timeout,
            AgentErrorClass::Cancelled => ToolErrorClass::Cancelled,
            AgentErrorClass::Instantiation
            | AgentErrorClass::Model
            | AgentErrorClass::Tool
            | AgentErrorClass::Internal => ToolErrorClass::Internal,
        };
        self.tool_failed(subagent.tool_use_id, (&ask.0, ask.1), class);
    }

    /// Reports a failure that does not end the turn.
    pub(crate) fn report_failure(&mut self, subagent: Option<RunningSubagent>, error: TurnError) {
        let actor = subagent.map_or(Actor::ORCHESTRATOR, |subagent| subagent.actor());
        let axis = match error.code {
            ErrorCode::SubAgentFailed => 1,
            ErrorCode::CcsEnvelopeError => 2,
            ErrorCode::PartialFanOut => 3,
            ErrorCode::InternalError | ErrorCode::ModelUnavailable | ErrorCode::RateLimitError => 0,
        };
        self.emit(actor, Body::ErrorReported(error));
        self.count_failure(subagent.map(|subagent| subagent.id), axis, "goes on");
    }

    /// Emits the event that operators count failures with.
    pub(crate) fn count_failure(&mut self, agent: Option<&str>, axis: u8, turn: &str) {
        let count_failure = ErrorEmit {
            sub_agent_id: agent.map(str::to_owned),
            axis,
            is_final: turn == "ends",
        };
        self.emit(Actor::ORCHESTRATOR, Body::AgentErrorEmit(count_failure));
    }
}

fn key(ids: &[&str]) -> CollectionKey {
    let ids = ids.iter().map(|id| ItemKey { id: (*id).into() });
    CollectionKey { ids: ids.collect() }
}
