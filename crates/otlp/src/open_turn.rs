//! The spans of one turn while it runs: a start opens a span, its end closes it by the same id.

use std::collections::{HashMap, HashSet};

use turnwire_event::actor::Actor;
use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::turn::{TurnCancelled, TurnCompleted, TurnStarted};
use turnwire_event::code::{ToolType, TurnKind, TurnStatus, code_name};
use turnwire_event::port::{SpanValue, StartingTurn, TracedEvent};
use turnwire_event::trace::{trace_id_bytes, trace_id_of, turn_span};
use turnwire_event::{Body, CallId, InvocationId, SpanId, TokenUsage, ToolUseId};

use crate::drops::{DropReason, count_dropped};
use crate::span::{Attribute, SpanKind, SpanStart, SpanTrace};

/// The most spans of one turn that are recorded: a turn with every limit at its default has some
/// hundred.
const SPANS_MAX: usize = 2_000;

/// The models of sentences of a pack: no model is called.
const TEMPLATE_PREFIX: &str = "template:";
/// The model of a call that an agent elsewhere answers.
const RELAY_PREFIX: &str = "relay:";

/// What opened a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OpenId {
    Call(CallId),
    Tool(ToolUseId),
    Invocation(InvocationId),
}

/// The spans of a turn that is recorded.
pub(crate) struct OpenTurn {
    pub(crate) trace: SpanTrace,
    /// The span of the turn. Its times and most attributes come with its first and last event.
    turn: SpanStart,
    open: HashMap<OpenId, SpanStart>,
    /// The spans of sub-agents that were begun: others are below them.
    invocations: HashSet<SpanId>,
    /// The spans that were begun.
    spans: usize,
}

/// Takes an encoded span.
pub(crate) type SpanOutput<'a> = &'a mut dyn FnMut(Vec<u8>);

impl OpenTurn {
    /// A turn that is about to start; `None` if the ids of its trace are not valid.
    pub(crate) fn new(turn: &StartingTurn<'_>) -> Option<Self> {
        let trace_id = trace_id_bytes(&trace_id_of(turn.trace, turn.turn_id))?;
        let parent = turn.trace.and_then(|trace| trace.parent_span_id.as_deref());
        let agent = turn.agent.unwrap_or("orchestrator");
        Some(Self {
            trace: SpanTrace {
                trace_id,
                state: turn.caller.state.clone(),
            },
            turn: SpanStart {
                name: format!("invoke_agent {agent}"),
                kind: SpanKind::Server,
                span: turn_span(turn.trace, turn.turn_id),
                parent: parent.and_then(SpanId::parse),
                has_remote_parent: parent.is_some(),
                started: 0,
                attributes: vec![
                    ("gen_ai.operation.name", "invoke_agent".into()),
                    ("gen_ai.agent.name", agent.into()),
                    ("gen_ai.conversation.id", turn.session_id.to_string().into()),
                    ("turnwire.turn.id", turn.turn_id.to_string().into()),
                ],
            },
            open: HashMap::new(),
            invocations: HashSet::new(),
            spans: 1,
        })
    }

    /// The span that the other spans of the turn are below.
    pub(crate) fn span(&self) -> SpanId {
        self.turn.span
    }

    /// Counts one more span; false if the turn has too many.
    pub(crate) fn admit(&mut self) -> bool {
        self.spans += 1;
        let is_admitted = self.spans <= SPANS_MAX;
        if !is_admitted {
            count_dropped(DropReason::Limit, 1);
        }
        is_admitted
    }

    /// Reads an event of the turn. True if it is the last one.
    pub(crate) fn observe(&mut self, event: &TracedEvent<'_>, out: SpanOutput<'_>) -> bool {
        let time = nanos(event);
        match event.body {
            Body::TurnStarted(started) => self.start_turn(started, time),
            Body::RouteDecided(route) => {
                let model = model_attributes(&route.model);
                self.turn.attributes.extend(model);
            }
            Body::LlmCallStarted(call) => self.start_call(call, event, time),
            Body::LlmCallCompleted(call) => {
                let mut attributes = usage_attributes(&call.usage);
                let reason = code_name(&call.stop_reason);
                attributes.push((
                    "gen_ai.response.finish_reasons",
                    SpanValue::Texts(vec![reason]),
                ));
                self.end(OpenId::Call(call.call_id), (time, None), attributes, out);
            }
            Body::LlmCallFailed(call) => {
                let class = code_name(&call.error_class);
                let attributes = usage_attributes(&call.usage);
                self.end(
                    OpenId::Call(call.call_id),
                    (time, Some(class)),
                    attributes,
                    out,
                );
            }
            Body::ToolCalled(tool) => {
                let attributes = vec![
                    ("gen_ai.operation.name", "execute_tool".into()),
                    ("gen_ai.tool.name", tool.tool_name.as_str().into()),
                    ("gen_ai.tool.call.id", tool.tool_use_id.to_string().into()),
                    ("gen_ai.tool.type", tool_type(tool.tool_type).into()),
                    ("turnwire.tool.type", code_name(&tool.tool_type).into()),
                ];
                let name = format!("execute_tool {}", tool.tool_name);
                let span = (SpanId::of_tool(tool.tool_use_id), SpanKind::Internal);
                self.begin(
                    OpenId::Tool(tool.tool_use_id),
                    span,
                    name,
                    (event, time),
                    attributes,
                );
            }
            Body::ToolCompleted(tool) => {
                self.end(
                    OpenId::Tool(tool.tool_use_id),
                    (time, None),
                    Vec::new(),
                    out,
                );
            }
            Body::ToolFailed(tool) => {
                let class = Some(code_name(&tool.error_class));
                self.end(
                    OpenId::Tool(tool.tool_use_id),
                    (time, class),
                    Vec::new(),
                    out,
                );
            }
            Body::SubagentStarted(started) => {
                let span = SpanId::of_invocation(started.invocation_id);
                let id = &started.sub_agent_id;
                let attributes = vec![
                    ("gen_ai.operation.name", "invoke_agent".into()),
                    ("gen_ai.agent.name", id.as_str().into()),
                    (
                        "turnwire.invocation.id",
                        started.invocation_id.to_string().into(),
                    ),
                    (
                        "turnwire.plan_step.id",
                        started.plan_step_id.as_str().into(),
                    ),
                ];
                let open = OpenId::Invocation(started.invocation_id);
                let name = format!("invoke_agent {id}");
                self.begin(
                    open,
                    (span, SpanKind::Internal),
                    name,
                    (event, time),
                    attributes,
                );
            }
            Body::SubagentCompleted(end) => {
                let outcome = vec![("turnwire.sub_agent.outcome", code_name(&end.outcome).into())];
                self.end(
                    OpenId::Invocation(end.invocation_id),
                    (time, None),
                    outcome,
                    out,
                );
            }
            Body::SubagentFailed(end) => {
                let class = Some(code_name(&end.error_class));
                self.end(
                    OpenId::Invocation(end.invocation_id),
                    (time, class),
                    Vec::new(),
                    out,
                );
            }
            Body::TurnCompleted(end) => {
                self.complete(end, time, out);
                return true;
            }
            Body::TurnCancelled(end) => {
                self.cancel(end, time, out);
                return true;
            }
            _ => {}
        }
        false
    }

    fn start_turn(&mut self, started: &TurnStarted, time: u64) {
        let turn = &mut self.turn;
        turn.started = time;
        let versions = &started.versions;
        turn.attributes.push((
            "gen_ai.agent.version",
            versions.agent_definition.as_str().into(),
        ));
        turn.attributes
            .push(("turnwire.turn.kind", code_name(&started.kind).into()));
        if started.kind == TurnKind::Worker {
            turn.kind = SpanKind::Internal;
            turn.has_remote_parent = false;
        }
        if let Some(resumes) = started.resumes {
            turn.attributes
                .push(("turnwire.turn.resumes", resumes.to_string().into()));
        }
    }

    fn start_call(&mut self, call: &CallStarted, event: &TracedEvent<'_>, time: u64) {
        if call.model.starts_with(TEMPLATE_PREFIX) {
            return;
        }
        let (operation, name) = match call.model.strip_prefix(RELAY_PREFIX) {
            Some(agent) => ("invoke_agent", agent),
            None => ("chat", model_name(&call.model)),
        };
        let mut attributes = vec![
            ("gen_ai.operation.name", operation.into()),
            ("turnwire.call.purpose", code_name(&call.purpose).into()),
            ("turnwire.call.attempt", SpanValue::Int(call.attempt.into())),
        ];
        if let Some(agent) = agent_of(event.actor) {
            attributes.push(("gen_ai.agent.name", agent.into()));
        }
        match operation {
            "chat" => attributes.extend(model_attributes(&call.model)),
            _ => attributes.push(("gen_ai.provider.name", "relay".into())),
        }
        let span = (SpanId::of_call(call.call_id), SpanKind::Client);
        let name = format!("{operation} {name}");
        self.begin(
            OpenId::Call(call.call_id),
            span,
            name,
            (event, time),
            attributes,
        );
    }

    /// Opens a span below the one that its event belongs to.
    fn begin(
        &mut self,
        id: OpenId,
        (span, kind): (SpanId, SpanKind),
        name: String,
        (event, started): (&TracedEvent<'_>, u64),
        attributes: Vec<Attribute>,
    ) {
        if !self.admit() {
            return;
        }
        // Events also name spans for the steps of a dispatch, which are not recorded.
        let agent = event.trace.and_then(|trace| SpanId::parse(&trace.span_id));
        let agent = agent.filter(|span| self.invocations.contains(span));
        if let OpenId::Invocation(_) = id {
            self.invocations.insert(span);
        }
        let start = SpanStart {
            name,
            kind,
            span,
            parent: Some(agent.unwrap_or(self.turn.span)),
            has_remote_parent: false,
            started,
            attributes,
        };
        self.open.insert(id, start);
    }

    /// Closes a span, if it is open.
    fn end(
        &mut self,
        id: OpenId,
        (ended, failure): (u64, Option<String>),
        attributes: Vec<Attribute>,
        out: SpanOutput<'_>,
    ) {
        if let Some(mut start) = self.open.remove(&id) {
            start.attributes.extend(attributes);
            self.write(&start, ended, failure.as_deref(), out);
        }
    }

    fn complete(&mut self, end: &TurnCompleted, time: u64, out: SpanOutput<'_>) {
        self.turn.attributes.extend(usage_attributes(&end.usage));
        let status = code_name(&end.status);
        self.turn
            .attributes
            .push(("turnwire.turn.status", status.into()));
        if let Some(reason) = &end.reason {
            self.turn
                .attributes
                .push(("turnwire.turn.reason", reason.as_str().into()));
        }
        let error = end.error.as_ref().map(|error| code_name(&error.code));
        let failure = (end.status == TurnStatus::Failed)
            .then(|| error.clone().unwrap_or_else(|| "failed".to_owned()));
        if let (None, Some(error)) = (&failure, error) {
            // The turn has answered, without a part of what it should have.
            self.turn
                .attributes
                .push(("turnwire.turn.error", error.into()));
        }
        self.end_turn(time, failure.as_deref(), out);
    }

    fn cancel(&mut self, end: &TurnCancelled, time: u64, out: SpanOutput<'_>) {
        // The reason of a requester is free text; the server's own are words.
        let reason = TurnCancelled::REASONS
            .iter()
            .find(|reason| **reason == end.reason);
        let reason = reason.copied().unwrap_or(TurnCancelled::USER_CANCEL);
        self.turn
            .attributes
            .push(("turnwire.turn.status", "cancelled".into()));
        self.turn
            .attributes
            .push(("turnwire.turn.reason", reason.into()));
        self.turn
            .attributes
            .push(("turnwire.cancel.code", code_name(&end.code).into()));
        self.turn
            .attributes
            .push(("turnwire.cancel.phase", code_name(&end.phase).into()));
        let timeouts = [
            TurnCancelled::TURN_TIMEOUT,
            TurnCancelled::IDLE_TIMEOUT,
            TurnCancelled::DELEGATE_TIMEOUT,
        ];
        // A stop that a person asked for is no error.
        let failure = timeouts.contains(&reason).then_some(reason);
        self.end_turn(time, failure, out);
    }

    /// Ends the turn. What its events have left open ends with it.
    fn end_turn(&mut self, time: u64, failure: Option<&str>, out: SpanOutput<'_>) {
        for (_, start) in std::mem::take(&mut self.open) {
            self.write(&start, time, Some("unfinished"), out);
        }
        if self.turn.started > 0 {
            self.write(&self.turn, time, failure, out);
        }
    }

    fn write(&self, start: &SpanStart, ended: u64, failure: Option<&str>, out: SpanOutput<'_>) {
        let mut span = Vec::with_capacity(512);
        start.write(&self.trace, ended, failure, &mut span);
        out(span);
    }
}

/// The time of an event: whole milliseconds, as in the log.
fn nanos(event: &TracedEvent<'_>) -> u64 {
    u64::try_from(event.time.as_millis())
        .unwrap_or(0)
        .saturating_mul(1_000_000)
}

/// The agent that an actor is.
fn agent_of(actor: &Actor) -> Option<&str> {
    match actor.sub_agent() {
        Some(id) => Some(id),
        None => (*actor == Actor::ORCHESTRATOR).then_some("orchestrator"),
    }
}

/// `<provider>:<model>` as the conventions name them.
fn model_attributes(model: &str) -> Vec<Attribute> {
    let provider = match model.split_once(':') {
        Some(("openai" | "openai_responses", _)) => "openai",
        Some(("gemini", _)) => "gcp.gemini",
        Some((provider, _)) => provider,
        None => "turnwire",
    };
    vec![
        ("gen_ai.provider.name", provider.into()),
        ("gen_ai.request.model", model_name(model).into()),
    ]
}

fn model_name(model: &str) -> &str {
    model.split_once(':').map_or(model, |(_, name)| name)
}

fn usage_attributes(usage: &TokenUsage) -> Vec<Attribute> {
    let tokens = |count: u64| SpanValue::Int(i64::try_from(count).unwrap_or(i64::MAX));
    let mut attributes = vec![
        ("gen_ai.usage.input_tokens", tokens(usage.input_tokens)),
        ("gen_ai.usage.output_tokens", tokens(usage.output_tokens)),
    ];
    for (name, count) in [
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
        (
            "gen_ai.usage.reasoning.output_tokens",
            usage.reasoning_tokens,
        ),
    ] {
        if count > 0 {
            attributes.push((name, tokens(count)));
        }
    }
    if usage.cost_usd > 0.0 {
        attributes.push(("turnwire.usage.cost_usd", SpanValue::Float(usage.cost_usd)));
    }
    attributes
}

/// The type of a tool in the conventions: where it runs, seen from the model.
fn tool_type(kind: ToolType) -> &'static str {
    match kind {
        ToolType::Ccs => "datastore",
        ToolType::Http | ToolType::Mcp => "extension",
        _ => "function",
    }
}
