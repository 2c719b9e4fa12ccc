//! The bytes of real events satisfy the committed schema, and broken ones do not. Every type that a
//! filter may name has a schema.

use serde_json::{Value, json};
use turnwire_event::body::{bus, llm, session, stream, subagent, tool, turn};
use turnwire_event::code::{
    CancelCode, ErrorCode, LlmErrorClass, Phase, ReceiptKind, StopOutcome, ToolErrorClass,
    ToolType, TurnKind, TurnStatus,
};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, EpisodeId, Epoch, Event, InvocationId, MessageId, Position,
    Seq, SessionId, StopReason, Sub, Timestamp, TokenUsage, ToolUseId, TraceContext, TurnId,
    TypeSet, Ulid,
};

use super::{read_json, refusal, validator};

fn schema() -> Value {
    read_json("schema/event.json")
}

fn event(turn_id: Option<TurnId>, body: Body) -> Event {
    let persisted = body.kind().is_persisted();
    Event {
        response_id: None,
        id: Position {
            epoch: Epoch(1),
            seq: Seq(7),
            sub: Sub(u32::from(!persisted)),
        },
        session_id: SessionId(Ulid(1)),
        turn_id,
        actor: Actor::tool("clock"),
        timestamp: Timestamp::from_millis(1_000),
        trace: turn_id.map(|_| TraceContext {
            trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
            span_id: "b7ad6b7169203331".into(),
            parent_span_id: None,
        }),
        render: None,
        sub_agent_id: None,
        body,
    }
}

const MESSAGE: MessageId = MessageId(Ulid(3));
const CALL: CallId = CallId(Ulid(4));
const TOOL: ToolUseId = ToolUseId(Ulid(5));
const EPISODE: EpisodeId = EpisodeId(Ulid(6));

fn examples() -> Vec<Event> {
    let turn = Some(TurnId(Ulid(2)));
    let bodies = turn_bodies().into_iter().chain(message_bodies());
    let mut events: Vec<_> = bodies.map(|body| event(turn, body)).collect();
    let created = session::SessionCreated {
        workspace_path: None,
        episode_id: EPISODE,
    };
    let registered = bus::SubscriberRegistered { count: 1 };
    events.push(event(None, Body::SessionCreated(created)));
    events.push(event(None, Body::BusSubscriberRegistered(registered)));
    events[0].sub_agent_id = Some("shop".into());
    events
}

fn turn_bodies() -> [Body; 3] {
    [
        Body::TurnStarted(turn::TurnStarted {
            relayed_to: None,
            answers: Vec::new(),
            resumes: None,
            user_message_id: MESSAGE,
            input: vec![ContentBlock::text("hello")],
            kind: TurnKind::Chat,
            origin: None,
            dm_type: None,
            episode_id: EPISODE,
            locale: "en".into(),
            wire_version: None,
            history_omitted: 0,
            versions: turn::BoundVersions::default(),
        }),
        Body::TurnCompleted(turn::TurnCompleted {
            status: TurnStatus::Failed,
            usage: TokenUsage::default(),
            error: Some(ErrorCode::InternalError.into()),
            reason: Some("server_restart".into()),
            partial: None,
            paused: None,
        }),
        Body::TurnCancelled(turn::TurnCancelled {
            reason: "user_cancel".into(),
            code: CancelCode::RequestCancelled,
            phase: Phase::Tool,
            partial: turn::PartialMessage {
                message_id: None,
                bytes: 0,
                kept_until: None,
            },
            receipt: vec![turn::ReceiptLine {
                kind: ReceiptKind::Tool,
                id: TOOL.to_string(),
                name: "search".into(),
                outcome: StopOutcome::Stopped,
                ms: 3,
            }],
        }),
    ]
}

fn message_bodies() -> [Body; 5] {
    let content = vec![
        ContentBlock::text("hi"),
        ContentBlock::Thinking {
            text: "hm".into(),
            signature: None,
        },
        ContentBlock::ToolUse {
            id: TOOL,
            name: "clock".into(),
            input: json!({"zone": "UTC"}),
        },
    ];
    [
        Body::LlmCallCompleted(llm::CallCompleted {
            call_id: CALL,
            message_id: MESSAGE,
            content_sha256: "00".repeat(32),
            stop_reason: StopReason::EndTurn,
            usage: TokenUsage::default(),
        }),
        Body::LlmCallFailed(llm::CallFailed {
            call_id: CALL,
            message_id: None,
            content_sha256: None,
            error_class: LlmErrorClass::Transport,
            usage: Default::default(),
        }),
        Body::ToolFailed(tool::ToolFailed {
            upstream_id: None,
            tool_use_id: TOOL,
            tool_name: "clock".into(),
            tool_type: ToolType::Function,
            error_class: ToolErrorClass::Cancelled,
            called: true,
        }),
        Body::TextDelta(stream::TextDelta {
            message_id: MESSAGE,
            content_block_index: 0,
            text: "hi".into(),
        }),
        Body::MessageComplete(stream::MessageComplete {
            message_id: MESSAGE,
            stop_reason: StopReason::ToolUse,
            final_content: content,
            usage: TokenUsage::default(),
        }),
    ]
}

//
#[test]
fn valid_events_pass_the_schema() {
    let schema = validator(&schema());
    for event in examples() {
        let value: Value = serde_json::from_slice(&event.to_bytes()).expect("an event is JSON");
        assert_eq!(refusal(&schema, &value), None, "{value}");
    }
}

#[test]
fn invalid_events_fail_the_schema() {
    let schema = validator(&schema());
    let event: Value = serde_json::from_slice(&examples()[0].to_bytes()).expect("JSON");
    let breaks: [fn(&mut Value); 6] = [
        |event| drop(event.as_object_mut().expect("an object").remove("actor")),
        |event| drop(event.as_object_mut().expect("an object").remove("payload")),
        |event| event["persisted"] = json!("yes"),
        |event| event["type"] = json!("turn.exploded"),
        |event| event["payload"]["history_omitted"] = json!(-1),
        |event| event["payload"]["input"][0] = json!({"type": "smell"}),
    ];
    for (index, damage) in breaks.into_iter().enumerate() {
        let mut broken = event.clone();
        damage(&mut broken);
        assert!(!schema.is_valid(&broken), "break {index}");
    }
}

//
#[test]
fn filterable_types_have_a_schema_each() {
    let schema = schema();
    let definitions = schema["$defs"].as_object().expect("definitions");
    let refs = schema["oneOf"].as_array().expect("the types");
    let described: Vec<&str> = refs
        .iter()
        .map(|reference| {
            let name = reference["$ref"].as_str().expect("a reference");
            let event = &definitions[name.trim_start_matches("#/$defs/")];
            let required = event["required"].as_array().expect("a list");
            assert!(
                ["type", "payload"]
                    .iter()
                    .all(|key| required.contains(&json!(key)))
            );
            event["properties"]["type"]["const"]
                .as_str()
                .expect("a name")
        })
        .collect();
    for kind in TypeSet::filterable().iter() {
        assert!(described.contains(&kind.name()), "{kind}");
        let event = &definitions[&format!("{kind:?}Event")];
        let payload = event["properties"]["payload"]["$ref"].as_str();
        let is_reserved = payload == Some("#/$defs/ReservedPayload");
        assert_eq!(is_reserved, !Body::KINDS.contains(&kind), "{kind}");
    }
}

//
#[test]
fn statuses_and_blocks_of_messages_are_those_of_the_contract() {
    let defs = &read_json("schema/message.json")["$defs"];
    let statuses = ["in_progress", "complete", "cancelled", "failed"];
    assert_eq!(defs["MessageStatus"]["enum"], json!(statuses));
    let blocks = defs["ContentBlock"]["oneOf"].as_array().expect("variants");
    let blocks = blocks.iter().map(|block| {
        let kind = block["properties"]["type"]["const"].as_str();
        (kind.expect("a type"), block["required"].clone())
    });
    let expected = [
        ("text", json!(["type", "text"])),
        ("thinking", json!(["type", "text", "signature"])),
        ("tool_use", json!(["type", "id", "name", "input"])),
        (
            "tool_result",
            json!(["type", "tool_use_id", "content", "is_error"]),
        ),
        ("component", json!(["type", "tool_use_id", "component"])),
        (
            "data",
            json!(["type", "data_id", "data_type", "key", "items"]),
        ),
    ];
    assert_eq!(blocks.collect::<Vec<_>>(), expected);
}

/// The start of a sub-agent with the context that it is dispatched with.
fn dispatch() -> Value {
    let started = subagent::SubagentStarted {
        invocation_id: InvocationId(Ulid(8)),
        sub_agent_id: "shop".into(),
        tool_use_id: TOOL,
        plan_step_id: "turn-1-1".into(),
        context: subagent::SubagentContext {
            principal: "user-42".into(),
            user_id: "user-42".into(),
            episode_id: EPISODE,
            locale: "de".into(),
            location: Some("Berlin".into()),
            prior_context: Some("Before: oat milk.".into()),
        },
    };
    let event = event(Some(TurnId(Ulid(2))), Body::SubagentStarted(started));
    serde_json::from_slice(&event.to_bytes()).expect("an event is JSON")
}

// S2-084, R-31
#[test]
fn dispatch_context_has_exactly_the_fields_of_its_contract() {
    let schema = schema();
    let judge = validator(&schema);
    let good = dispatch();
    assert_eq!(refusal(&judge, &good), None, "{good}");
    let context = good["payload"]["context"].as_object().expect("a context");
    let names: Vec<&String> = context.keys().collect();
    let contract = schema["$defs"]["SubagentContext"]["properties"].as_object();
    let contract = contract.expect("the fields of the contract");
    let mut described: Vec<&String> = contract.keys().collect();
    described.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, described);
    for name in names {
        let mut without = good.clone();
        let context = without["payload"]["context"].as_object_mut();
        context.expect("a context").remove(name);
        assert!(!judge.is_valid(&without), "without {name}");
        let mut odd = good.clone();
        odd["payload"]["context"][name] = json!(7);
        assert!(!judge.is_valid(&odd), "{name} as a number");
        let mut null = good.clone();
        null["payload"]["context"][name] = Value::Null;
        let is_optional = ["location", "prior_context"].contains(&name.as_str());
        assert_eq!(judge.is_valid(&null), is_optional, "{name} as null");
    }
}
