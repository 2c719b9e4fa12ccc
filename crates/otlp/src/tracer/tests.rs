//! Spans of turns that are made from their events.

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use turnwire_event::body::llm::{CallCompleted, CallStarted};
use turnwire_event::body::subagent::{SubagentContext, SubagentFailed, SubagentStarted};
use turnwire_event::body::tool::{ToolCalled, ToolFailed};
use turnwire_event::body::turn::{PartialMessage, TurnCancelled, TurnCompleted, TurnStarted};
use turnwire_event::code::{
    AgentErrorClass, CallPurpose, CancelCode, Phase, ToolErrorClass, ToolType, TurnKind, TurnStatus,
};
use turnwire_event::{
    Actor, Body, CallId, EpisodeId, InvocationId, MessageId, SessionId, StopReason, Timestamp,
    TokenUsage, ToolUseId, TraceContext, TracePropagation, Ulid,
};

use super::*;
use crate::delivery::{DeliverySpan, DeliveryWire};

const TURN: TurnId = TurnId(Ulid(0xabc << 64 | 0x70));
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TURN_SPAN: &str = "00000000000000aa";
const CALLER_SPAN: &str = "00000000000000cc";
/// The span of the invocation below.
const AGENT_SPAN: &str = "00000000000000bb";

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000)
    }
}

struct Fixture {
    tracer: Arc<Tracer>,
    queue: Arc<SpanQueue>,
}

impl Fixture {
    fn new(sampler: Sampler) -> Self {
        let queue = Arc::new(SpanQueue::new(10_000, 10_000));
        let tracer = Tracer::new(sampler, Arc::new(FixedClock), Arc::clone(&queue));
        Self {
            tracer: Arc::new(tracer),
            queue,
        }
    }

    fn begin(&self, trace: Option<&TraceContext>, sampled: bool) -> bool {
        self.tracer.begin(StartingTurn {
            session_id: SessionId(Ulid(1)),
            turn_id: TURN,
            agent: None,
            trace,
            caller: &TracePropagation {
                sampled,
                state: Some("a=1".into()),
                is_exporting: false,
            },
        })
    }

    fn event(&self, at: i64, actor: &Actor, body: Body, trace: Option<&TraceContext>) {
        self.tracer.observe(TracedEvent {
            turn_id: TURN,
            actor,
            body: &body,
            time: Timestamp::from_millis(at),
            trace,
        });
    }

    /// The spans that have ended, by name.
    fn spans(&self) -> HashMap<String, Span> {
        let spans = self.queue.take_batch().into_iter();
        let spans = spans.map(|span| Span::decode(span).expect("a span"));
        spans.map(|span| (span.name.clone(), span)).collect()
    }
}

fn context(span: &str, parent: &str) -> TraceContext {
    TraceContext {
        trace_id: TRACE_ID.into(),
        span_id: span.into(),
        parent_span_id: Some(parent.into()),
    }
}

fn started() -> Body {
    Body::TurnStarted(TurnStarted {
        user_message_id: MessageId(Ulid(1)),
        input: Vec::new(),
        kind: TurnKind::Chat,
        origin: None,
        dm_type: None,
        resumes: None,
        answers: Vec::new(),
        episode_id: EpisodeId(Ulid(1)),
        locale: "en".into(),
        wire_version: None,
        history_omitted: 0,
        relayed_to: None,
        versions: Default::default(),
    })
}

fn completed(status: TurnStatus) -> Body {
    Body::TurnCompleted(TurnCompleted {
        status,
        usage: TokenUsage::default(),
        error: None,
        reason: None,
        partial: None,
        paused: None,
    })
}

fn call_started(id: u128, model: &str) -> Body {
    Body::LlmCallStarted(CallStarted {
        call_id: CallId(Ulid(id)),
        model: model.into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first: true,
    })
}

fn tool_called(id: u128, name: &str) -> Body {
    Body::ToolCalled(ToolCalled {
        tool_use_id: ToolUseId(Ulid(id)),
        upstream_id: None,
        tool_name: name.into(),
        tool_type: ToolType::Ccs,
        input_summary: "SECRET INPUT".into(),
    })
}

fn subagent_started() -> Body {
    Body::SubagentStarted(SubagentStarted {
        invocation_id: InvocationId(Ulid(0xbb)),
        sub_agent_id: "shop".into(),
        tool_use_id: ToolUseId(Ulid(4)),
        plan_step_id: "turn-x-1".into(),
        context: SubagentContext {
            principal: "SECRET PERSON".into(),
            user_id: "SECRET PERSON".into(),
            episode_id: EpisodeId(Ulid(1)),
            locale: "en".into(),
            location: Some("SECRET PLACE".into()),
            prior_context: None,
        },
    })
}

fn attribute(span: &Span, name: &str) -> Option<Value> {
    let found = span
        .attributes
        .iter()
        .find(|attribute| attribute.key == name);
    found?.value.as_ref()?.value.clone()
}

fn text(span: &Span, name: &str) -> String {
    match attribute(span, name) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{name}: {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// S4-017
#[test]
fn spans_of_a_turn_form_one_chain_below_the_caller() {
    let fixture = Fixture::new(Sampler::default());
    let turn = context(TURN_SPAN, CALLER_SPAN);
    let agent = context(AGENT_SPAN, TURN_SPAN);
    assert!(fixture.begin(Some(&turn), true));
    let (main, shop) = (Actor::ORCHESTRATOR, Actor::subagent("shop"));
    fixture.event(10, &Actor::USER, started(), Some(&turn));
    fixture.event(
        11,
        &main,
        call_started(0x11, "anthropic:large"),
        Some(&turn),
    );
    let usage = TokenUsage {
        input_tokens: 12,
        output_tokens: 5,
        cached_tokens: 4,
        ..TokenUsage::default()
    };
    let call = CallCompleted {
        call_id: CallId(Ulid(0x11)),
        message_id: MessageId(Ulid(1)),
        content_sha256: String::new(),
        stop_reason: StopReason::ToolUse,
        usage,
    };
    fixture.event(15, &main, Body::LlmCallCompleted(call), Some(&turn));
    fixture.event(16, &shop, subagent_started(), Some(&agent));
    fixture.event(
        17,
        &shop,
        call_started(0x12, "openai_responses:small"),
        Some(&agent),
    );
    fixture.event(18, &shop, tool_called(0x13, "offers"), Some(&agent));
    let began = Instant::now();
    fixture.tracer.record_commit(
        TURN,
        CommittedBatch {
            began,
            ended: began + Duration::from_millis(2),
            events: 3,
        },
    );
    let failed = ToolFailed {
        tool_use_id: ToolUseId(Ulid(0x13)),
        upstream_id: None,
        tool_name: "offers".into(),
        tool_type: ToolType::Ccs,
        error_class: ToolErrorClass::Timeout,
        called: true,
    };
    fixture.event(20, &shop, Body::ToolFailed(failed), Some(&agent));
    let failed = SubagentFailed {
        invocation_id: InvocationId(Ulid(0xbb)),
        sub_agent_id: "shop".into(),
        tool_use_id: ToolUseId(Ulid(4)),
        latency_ms: 5,
        error_class: AgentErrorClass::Timeout,
        status_events: 0,
    };
    fixture.event(21, &shop, Body::SubagentFailed(failed), Some(&agent));
    let delivery = DeliverySpan::begin(&fixture.tracer, TURN, DeliveryWire::Chat);
    fixture.event(30, &main, completed(TurnStatus::Ok), Some(&turn));
    drop(delivery.expect("recorded"));
    assert!(
        DeliverySpan::begin(&fixture.tracer, TURN, DeliveryWire::Session).is_some(),
        "of a turn that has just ended"
    );
    let spans = fixture.spans();
    let mut names: Vec<&str> = spans.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "chat large",
            "chat small",
            "commit",
            "deliver chat",
            "deliver session",
            "execute_tool offers",
            "invoke_agent orchestrator",
            "invoke_agent shop",
        ]
    );
    for (name, span) in &spans {
        assert_eq!(hex(&span.trace_id), TRACE_ID, "{name}");
        assert_eq!(span.trace_state, "a=1", "{name}");
        assert!(
            span.end_time_unix_nano >= span.start_time_unix_nano,
            "{name}"
        );
    }
    let parent = |name: &str| hex(&spans[name].parent_span_id);
    assert_eq!(hex(&spans["invoke_agent orchestrator"].span_id), TURN_SPAN);
    assert_eq!(parent("invoke_agent orchestrator"), CALLER_SPAN);
    assert_eq!(spans["invoke_agent orchestrator"].flags, 0x301);
    for name in ["chat large", "invoke_agent shop", "commit", "deliver chat"] {
        assert_eq!(parent(name), TURN_SPAN, "{name}");
        assert_eq!(spans[name].flags, 0x101, "{name}");
    }
    assert_eq!(hex(&spans["invoke_agent shop"].span_id), AGENT_SPAN);
    assert_eq!(parent("chat small"), AGENT_SPAN);
    assert_eq!(parent("execute_tool offers"), AGENT_SPAN);
    let model = &spans["chat large"];
    assert_eq!(text(model, "gen_ai.provider.name"), "anthropic");
    assert_eq!(text(model, "gen_ai.request.model"), "large");
    assert_eq!(
        attribute(model, "gen_ai.usage.input_tokens"),
        Some(Value::IntValue(12))
    );
    assert_eq!(
        attribute(model, "gen_ai.usage.cache_read.input_tokens"),
        Some(Value::IntValue(4))
    );
    assert_eq!(
        (model.start_time_unix_nano, model.end_time_unix_nano),
        (11_000_000, 15_000_000)
    );
    // The turn ended without an end of this call.
    assert_eq!(text(&spans["chat small"], "error.type"), "unfinished");
    assert_eq!(text(&spans["chat small"], "gen_ai.provider.name"), "openai");
    assert_eq!(text(&spans["chat small"], "gen_ai.agent.name"), "shop");
    let tool = &spans["execute_tool offers"];
    assert_eq!(text(tool, "error.type"), "timeout");
    assert_eq!(tool.status.as_ref().map(|status| status.code), Some(2));
    assert_eq!(text(tool, "gen_ai.tool.type"), "datastore");
    let commit = &spans["commit"];
    assert_eq!(
        commit.end_time_unix_nano - commit.start_time_unix_nano,
        2_000_000
    );
}

#[test]
fn no_text_of_a_person_is_in_a_span() {
    let fixture = Fixture::new(Sampler::default());
    assert!(fixture.begin(None, false));
    let main = Actor::ORCHESTRATOR;
    fixture.event(10, &main, started(), None);
    let agent = context(AGENT_SPAN, TURN_SPAN);
    fixture.event(11, &main, subagent_started(), Some(&agent));
    fixture.event(12, &main, tool_called(5, "offers"), None);
    let cancelled = TurnCancelled {
        reason: "SECRET REASON".into(),
        code: CancelCode::RequestCancelled,
        phase: Phase::Tool,
        partial: PartialMessage {
            message_id: None,
            bytes: 0,
            kept_until: None,
        },
        receipt: Vec::new(),
    };
    fixture.event(13, &main, Body::TurnCancelled(cancelled), None);
    let spans = fixture.spans();
    assert_eq!(spans.len(), 3);
    for span in spans.values() {
        assert!(!format!("{span:?}").contains("SECRET"), "{span:?}");
    }
    let turn = &spans["invoke_agent orchestrator"];
    assert_eq!(text(turn, "turnwire.turn.reason"), "user_cancel");
    assert!(turn.status.is_none(), "a stop is no error");
    assert_eq!(hex(&turn.trace_id), TURN.trace_id());
    assert_eq!(hex(&turn.span_id), SpanId::of_turn(TURN).to_string());
    assert!(turn.parent_span_id.is_empty());
}

#[test]
fn turn_that_is_not_sampled_has_no_state() {
    let caller = context(TURN_SPAN, CALLER_SPAN);
    for (sampler, trace, flag) in [
        (Sampler::default(), Some(&caller), false),
        (Sampler::new(true, 0.0), None, false),
        (Sampler::new(false, 0.0), Some(&caller), true),
    ] {
        let fixture = Fixture::new(sampler);
        assert!(!fixture.begin(trace, flag));
        fixture.event(10, &Actor::USER, started(), trace);
        fixture.event(20, &Actor::ORCHESTRATOR, completed(TurnStatus::Ok), trace);
        assert!(fixture.tracer.target(TURN).is_none());
        assert_eq!(fixture.spans().len(), 0);
        assert_eq!(fixture.tracer.turns.lock().len(), 0);
    }
}

#[test]
fn spans_of_a_turn_and_ended_turns_are_bounded() {
    let fixture = Fixture::new(Sampler::default());
    assert!(fixture.begin(None, false));
    fixture.event(10, &Actor::USER, started(), None);
    for id in 0..5_000 {
        fixture.event(
            11,
            &Actor::ORCHESTRATOR,
            tool_called(id + 1, "offers"),
            None,
        );
    }
    fixture.event(12, &Actor::ORCHESTRATOR, completed(TurnStatus::Ok), None);
    assert_eq!(fixture.queue.len(), 2_000);
    for turn in 1..=3_000 {
        let turn_id = TurnId(Ulid(turn));
        let trace = context(TURN_SPAN, CALLER_SPAN);
        fixture.tracer.begin(StartingTurn {
            session_id: SessionId(Ulid(1)),
            turn_id,
            agent: None,
            trace: Some(&trace),
            caller: &TracePropagation {
                sampled: true,
                ..TracePropagation::default()
            },
        });
        if turn % 2 == 0 {
            fixture.tracer.observe(TracedEvent {
                turn_id,
                actor: &Actor::ORCHESTRATOR,
                body: &completed(TurnStatus::Ok),
                time: Timestamp::from_millis(1),
                trace: None,
            });
        } else {
            fixture.tracer.discard(turn_id);
        }
    }
    let turns = fixture.tracer.turns.lock();
    assert_eq!(
        (turns.open.len(), turns.ended.len(), turns.ended_order.len()),
        (0, ENDED_MAX, ENDED_MAX)
    );
}
