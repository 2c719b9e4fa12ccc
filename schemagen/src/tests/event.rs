//! The bytes of real events satisfy the committed schema, and broken ones do not.
//!
//! The judge here knows the few words of JSON Schema that ours use; it refuses a schema with a
//! word it does not know, so nothing passes unread.

use serde_json::{Value, json};
use turnwire_event::body::{bus, llm, session, stream, tool, turn};
use turnwire_event::code::{
    CancelCode, ErrorCode, LlmErrorClass, Phase, ReceiptKind, StopOutcome, ToolErrorClass,
    ToolType, TurnKind, TurnStatus,
};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, EpisodeId, Epoch, Event, MessageId, Position, Seq,
    SessionId, StopReason, Sub, Timestamp, TokenUsage, ToolUseId, TraceContext, TurnId, Ulid,
};

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/event.json");
    let text = std::fs::read_to_string(path).expect("schema/event.json is committed");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// Why `value` does not satisfy `schema`; `None` when it does.
fn wrong(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let Value::Object(words) = schema else {
        return (schema != &Value::Bool(true)).then(|| format!("{at}: nothing may stand here"));
    };
    words.iter().find_map(|(word, rule)| {
        let inside = |rule: &Value, value: &Value, key: &str| {
            wrong(root, rule, value, &format!("{at}.{key}"))
        };
        let matches = |rule: &&Value| wrong(root, rule, value, at).is_none();
        let fails = |yes: bool| (!yes).then(|| format!("{at}: {word} {rule} refuses {value}"));
        match word.as_str() {
            "$ref" => {
                let pointer = rule.as_str().expect("a reference").trim_start_matches('#');
                let rule = root.pointer(pointer).expect("a definition");
                wrong(root, rule, value, at)
            }
            "properties" => {
                let mut rules = rule.as_object().expect("an object").iter();
                rules.find_map(|(key, rule)| inside(rule, value.get(key)?, key))
            }
            "items" => value
                .as_array()?
                .iter()
                .find_map(|value| inside(rule, value, "[]")),
            "anyOf" => fails(list(rule).iter().any(|rule| matches(&rule))),
            "oneOf" => fails(list(rule).iter().filter(matches).count() == 1),
            "additionalProperties" if rule == &Value::Bool(false) => {
                let properties = words.get("properties").and_then(Value::as_object);
                let unknown = |key: &&String| {
                    properties.is_none_or(|properties| !properties.contains_key(*key))
                };
                let key = value.as_object()?.keys().find(unknown)?;
                Some(format!("{at}: unknown {key}"))
            }
            word => fails(simple(word, rule, value)),
        }
    })
}

/// The words that look at a value alone.
fn simple(word: &str, rule: &Value, value: &Value) -> bool {
    let limit = || rule.as_f64().expect("a number");
    match word {
        "$schema"
        | "title"
        | "description"
        | "format"
        | "default"
        | "$defs"
        | "pattern"
        | "additionalProperties" => true,
        "minimum" => value.as_f64().is_none_or(|number| number >= limit()),
        "maximum" => value.as_f64().is_none_or(|number| number <= limit()),
        "const" => rule == value,
        "enum" => list(rule).contains(value),
        "required" => {
            let is_present = |key: &Value| value.get(key.as_str().expect("a key")).is_some();
            list(rule).iter().all(is_present)
        }
        "type" => match rule {
            Value::Array(kinds) => kinds.iter().any(|kind| is(kind, value)),
            kind => is(kind, value),
        },
        word => panic!("the judge does not know the word {word}"),
    }
}

fn list(rule: &Value) -> &Vec<Value> {
    rule.as_array().expect("a list")
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().expect("a kind") {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        kind => panic!("the judge does not know the kind {kind}"),
    }
}

fn event(turn_id: Option<TurnId>, body: Body) -> Event {
    let persisted = body.kind().is_persisted();
    Event {
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
    events
}

fn turn_bodies() -> [Body; 3] {
    [
        Body::TurnStarted(turn::TurnStarted {
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
        }),
        Body::TurnCancelled(turn::TurnCancelled {
            reason: "user_cancel".into(),
            code: CancelCode::RequestCancelled,
            phase: Phase::Tool,
            partial: turn::PartialMessage {
                message_id: None,
                bytes: 0,
            },
            receipt: vec![turn::ReceiptLine {
                kind: ReceiptKind::Tool,
                id: TOOL.to_string(),
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
        }),
        Body::ToolFailed(tool::ToolFailed {
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
    let schema = schema();
    for event in examples() {
        let value: Value = serde_json::from_slice(&event.to_bytes()).expect("an event is JSON");
        assert_eq!(wrong(&schema, &schema, &value, "event"), None);
    }
}

#[test]
fn invalid_events_fail_the_schema() {
    let schema = schema();
    let event: Value = serde_json::from_slice(&examples()[0].to_bytes()).expect("JSON");
    let breaks: [fn(&mut Value); 5] = [
        |event| drop(event.as_object_mut().expect("an object").remove("actor")),
        |event| event["persisted"] = json!("yes"),
        |event| event["type"] = json!("turn.exploded"),
        |event| event["payload"]["history_omitted"] = json!(-1),
        |event| event["payload"]["input"][0] = json!({"type": "smell"}),
    ];
    for (index, damage) in breaks.into_iter().enumerate() {
        let mut broken = event.clone();
        damage(&mut broken);
        assert!(
            wrong(&schema, &schema, &broken, "event").is_some(),
            "break {index}"
        );
    }
}
