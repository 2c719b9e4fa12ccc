//! What a log has of sub-agents: their steps, their calls, what they show and how they fail.

use serde_json::{Value, json};
use turnwire_event::body::agent::ErrorEmit;
use turnwire_event::body::component::{Rendered, ToolCall};
use turnwire_event::body::data::{ItemKey, Key, Loaded, Loading};
use turnwire_event::body::llm::{CallCompleted, CallFailed, CallStarted};
use turnwire_event::body::plan::{SlotEnd, StepCompleted, StepStarted};
use turnwire_event::body::status;
use turnwire_event::body::subagent::{Completed, Context, Failed, Started};
use turnwire_event::body::tool;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{
    AgentErrorClass, CallPurpose, DispatchOutcome, ErrorCode, LlmErrorClass, SlotStatus,
    StepStatus, ToolErrorClass, ToolType,
};
use turnwire_event::content::sha256_hex;
use turnwire_event::{
    Actor, Body, CallId, EpisodeId, InvocationId, MessageId, Render, RenderPolicy, StopReason,
    ToolUseId, Ulid, Usage,
};

use super::{Log, MODEL};

/// A sub-agent at work.
#[derive(Clone, Copy)]
pub(crate) struct Helper {
    pub(crate) id: &'static str,
    pub(crate) tool_use_id: ToolUseId,
    invocation_id: InvocationId,
}

impl Helper {
    fn actor(&self) -> Actor {
        Actor::subagent(self.id)
    }

    fn tool(&self) -> String {
        format!("ask_{}", self.id)
    }
}

impl Log {
    /// The orchestrator asks for tools and says nothing.
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

    /// The orchestrator asks sub-agents, all within the cap of three, and they begin.
    pub(crate) fn ask(&mut self, agents: &[&'static str]) -> Vec<Helper> {
        let names: Vec<String> = agents.iter().map(|id| format!("ask_{id}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ids = self.ask_for(&names);
        self.step(agents, 3, &[]);
        let asked = agents.iter().zip(ids);
        asked.map(|(agent, id)| self.begin(agent, id)).collect()
    }

    fn step_id(&self) -> String {
        let turn = self.open.as_ref().expect("a turn").id;
        format!("turn-{turn}-1")
    }

    /// A step begins.
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

    /// A step is over.
    pub(crate) fn step_done(&mut self, status: StepStatus, slots: &[(Helper, SlotStatus)]) {
        let slot = |(helper, status): &(Helper, SlotStatus)| SlotEnd {
            subagent: helper.id.into(),
            result_key: helper.tool_use_id.to_string(),
            status: *status,
        };
        let completed = StepCompleted {
            plan_step_id: self.step_id(),
            status,
            slots: slots.iter().map(slot).collect(),
        };
        self.emit(Actor::ORCHESTRATOR, Body::PlanStepCompleted(completed));
    }

    /// A sub-agent begins.
    pub(crate) fn begin(&mut self, id: &'static str, tool_use_id: ToolUseId) -> Helper {
        let helper = Helper {
            id,
            tool_use_id,
            invocation_id: InvocationId(self.id()),
        };
        self.tool_called(tool_use_id, &helper.tool(), ToolType::SubAgent);
        let started = Started {
            invocation_id: helper.invocation_id,
            sub_agent_id: id.into(),
            tool_use_id,
            plan_step_id: self.step_id(),
            context: Context {
                principal: "user-42".into(),
                user_id: "user-42".into(),
                episode_id: EpisodeId(Ulid(0xE9)),
                locale: "en".into(),
                location: None,
                prior_context: None,
            },
        };
        self.emit(helper.actor(), Body::SubagentStarted(started));
        helper
    }

    /// A sub-agent calls its model.
    pub(crate) fn inner_call(&mut self, helper: Helper) -> CallId {
        let call_id = CallId(self.id());
        let started = CallStarted {
            call_id,
            model: MODEL.into(),
            purpose: CallPurpose::Subagent,
            attempt: 1,
            first: false,
        };
        self.emit(helper.actor(), Body::LlmCallStarted(started));
        call_id
    }

    /// A sub-agent's model has said all, to the sub-agent alone.
    pub(crate) fn inner_done(&mut self, helper: Helper, call_id: CallId) {
        let completed = CallCompleted {
            call_id,
            message_id: MessageId(self.id()),
            content_sha256: sha256_hex(b"SUBRAW"),
            stop_reason: StopReason::EndTurn,
            usage: Usage {
                input_tokens: 10,
                output_tokens: 2,
                total_tokens: 12,
                ..Usage::default()
            },
        };
        self.emit(helper.actor(), Body::LlmCallCompleted(completed));
    }

    /// A sub-agent's model fails.
    pub(crate) fn inner_failed(&mut self, helper: Helper, class: LlmErrorClass) {
        let call_id = self.inner_call(helper);
        let failed = CallFailed {
            call_id,
            message_id: None,
            content_sha256: None,
            error_class: class,
        };
        self.emit(helper.actor(), Body::LlmCallFailed(failed));
    }

    /// A sub-agent thinks once.
    pub(crate) fn thinks(&mut self, helper: Helper) {
        let call = self.inner_call(helper);
        self.inner_done(helper, call);
    }

    /// A tool of any kind begins.
    pub(crate) fn tool_called(&mut self, tool_use_id: ToolUseId, name: &str, kind: ToolType) {
        let called = tool::Called {
            tool_use_id,
            tool_name: name.into(),
            tool_type: kind,
            input_summary: "20 bytes".into(),
        };
        self.emit(Actor::tool(name), Body::ToolCalled(called));
    }

    /// A sub-agent calls a tool.
    pub(crate) fn uses(&mut self, name: &str, kind: ToolType) -> ToolUseId {
        let id = ToolUseId(self.id());
        self.tool_called(id, name, kind);
        id
    }

    /// A tool of any kind gives its result.
    pub(crate) fn tool_done(&mut self, tool_use_id: ToolUseId, name: &str, kind: ToolType) {
        let completed = tool::Completed {
            tool_use_id,
            tool_name: name.into(),
            tool_type: kind,
            duration_ms: 12,
            result_summary: "214 bytes".into(),
            result_sha256: sha256_hex(b"result"),
        };
        self.emit(Actor::tool(name), Body::ToolCompleted(completed));
    }

    /// A tool of any kind gives none.
    pub(crate) fn tool_failed(
        &mut self,
        tool_use_id: ToolUseId,
        (name, kind): (&str, ToolType),
        error_class: ToolErrorClass,
    ) {
        let failed = tool::Failed {
            tool_use_id,
            tool_name: name.into(),
            tool_type: kind,
            error_class,
            called: true,
        };
        self.emit(Actor::tool(name), Body::ToolFailed(failed));
    }

    /// A sub-agent says what it does, shown as the stamp says.
    pub(crate) fn status(&mut self, helper: Helper, words: (&str, &str), render: Render) {
        let emitted = status::Emitted {
            event_id: words.0.into(),
            message: words.1.into(),
        };
        self.emit(helper.actor(), Body::StatusEmitted(emitted));
        self.events.last_mut().expect("just emitted").render = Some(render);
    }

    /// A sub-agent searches: a status and a tool of a data service.
    pub(crate) fn searches(&mut self, helper: Helper) -> ToolUseId {
        let words = ("searching_offers", "Searching for offers...");
        self.status(helper, words, RenderPolicy::Transform.into());
        self.uses("search_offers", ToolType::Ccs)
    }

    /// A place for a collection of offers.
    pub(crate) fn loading(&mut self, helper: Helper, place: &str, ids: &[&str]) {
        let loading = Loading {
            id: place.into(),
            data_type: "offer_list".into(),
            key: key(ids),
        };
        self.emit(helper.actor(), Body::DataLoading(loading));
    }

    /// The collection.
    pub(crate) fn loaded(&mut self, helper: Helper, place: &str, items: &[(&str, &str)]) {
        let ids: Vec<&str> = items.iter().map(|(id, _)| *id).collect();
        let item = |(id, title): &(&str, &str)| json!({"id": id, "title": title});
        let loaded = Loaded {
            id: place.into(),
            data_type: "offer_list".into(),
            key: key(&ids),
            items: items.iter().map(item).collect(),
        };
        self.emit(helper.actor(), Body::DataLoaded(loaded));
    }

    /// A component, rendered by a tool that is at work.
    pub(crate) fn component(&mut self, helper: Helper, id: ToolUseId, component: Value) {
        let rendered = Rendered {
            component,
            tool_call: ToolCall {
                id,
                name: "render_card".into(),
                tool_type: ToolType::Render,
            },
        };
        self.emit(helper.actor(), Body::ComponentRendered(rendered));
    }

    /// A sub-agent gives its answer to the orchestrator.
    pub(crate) fn answers(&mut self, helper: Helper, outcome: DispatchOutcome) {
        let completed = Completed {
            invocation_id: helper.invocation_id,
            sub_agent_id: helper.id.into(),
            tool_use_id: helper.tool_use_id,
            outcome,
            latency_ms: 84,
            status_events: 1,
        };
        self.emit(helper.actor(), Body::SubagentCompleted(completed));
        self.tool_done(helper.tool_use_id, &helper.tool(), ToolType::SubAgent);
    }

    /// A sub-agent gives none.
    pub(crate) fn gives_up(&mut self, helper: Helper, class: AgentErrorClass) {
        let failed = Failed {
            invocation_id: helper.invocation_id,
            sub_agent_id: helper.id.into(),
            tool_use_id: helper.tool_use_id,
            latency_ms: 500,
            error_class: class,
            status_events: 0,
        };
        self.emit(helper.actor(), Body::SubagentFailed(failed));
        let ask = (helper.tool(), ToolType::SubAgent);
        let class = match class {
            AgentErrorClass::Timeout => ToolErrorClass::Timeout,
            AgentErrorClass::Cancelled => ToolErrorClass::Cancelled,
            AgentErrorClass::Instantiation
            | AgentErrorClass::Model
            | AgentErrorClass::Tool
            | AgentErrorClass::Internal => ToolErrorClass::Internal,
        };
        self.tool_failed(helper.tool_use_id, (&ask.0, ask.1), class);
    }

    /// A failure is told while the turn goes on.
    pub(crate) fn reports(&mut self, helper: Option<Helper>, error: TurnError) {
        let actor = helper.map_or(Actor::ORCHESTRATOR, |helper| helper.actor());
        let axis = match error.code {
            ErrorCode::SubAgentFailed => 1,
            ErrorCode::CcsEnvelopeError => 2,
            ErrorCode::PartialFanOut => 3,
            ErrorCode::InternalError | ErrorCode::RateLimitError => 0,
        };
        self.emit(actor, Body::ErrorReported(error));
        self.counted(helper.map(|helper| helper.id), axis, "goes on");
    }

    /// What operators count of a failure.
    pub(crate) fn counted(&mut self, agent: Option<&str>, axis: u8, turn: &str) {
        let counted = ErrorEmit {
            sub_agent_id: agent.map(str::to_owned),
            axis,
            is_final: turn == "ends",
        };
        self.emit(Actor::ORCHESTRATOR, Body::AgentErrorEmit(counted));
    }
}

fn key(ids: &[&str]) -> Key {
    let ids = ids.iter().map(|id| ItemKey { id: (*id).into() });
    Key { ids: ids.collect() }
}
