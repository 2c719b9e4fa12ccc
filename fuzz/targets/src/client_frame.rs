//! The frames that clients send over the session wire, and their subscribes.
//!
//! The parser of the server and the committed JSON Schema are two descriptions of a frame: both say yes
//! to the same frames, and both say no to the others.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};
use turnwire_event::{EventFilter, Position, SessionId};
use turnwire_wire::session::{ClientFrame, ClientFrameError, SubscribeFrame};

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = include_str!("../../../schema/wires/session-client.json");
    let schema = serde_json::from_str(text).expect("a committed schema is JSON");
    jsonschema::draft202012::new(&schema).expect("a committed schema is one")
});

/// A text frame as it arrives.
pub(crate) fn run(input: &[u8]) {
    // A text frame that is not UTF-8 ends the connection before it is parsed.
    if let Ok(text) = std::str::from_utf8(input) {
        check(text);
    }
}

/// The members of a subscribe, as JSON.
pub(crate) fn run_subscribe(input: &[u8]) {
    if let Ok(Value::Object(mut members)) = serde_json::from_slice::<Value>(input) {
        members.insert("type".to_owned(), json!("subscribe"));
        check(&Value::Object(members).to_string());
    }
}

/// The session of the connection; seeds name it.
const SESSION: &str = "sess_01KA5T7C3P0A2B4C6D8E0F1G3H";

fn check(text: &str) {
    let parsed = ClientFrame::parse(text);
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        assert_eq!(parsed, Err(ClientFrameError::NotJson));
        return;
    };
    match parsed {
        Ok(ClientFrame::Subscribe(subscribe)) => {
            if check_subscribe(&subscribe) {
                accepts(&value);
            }
        }
        Ok(ClientFrame::Unknown { kind }) => {
            assert!(kind.chars().count() <= 64);
            assert!(
                !SCHEMA.is_valid(&value),
                "the schema accepts an unknown frame"
            );
        }
        Ok(
            ClientFrame::Cancel { .. }
            | ClientFrame::Renew { .. }
            | ClientFrame::Ping { .. }
            | ClientFrame::Pong { .. },
        ) => {
            accepts(&value);
        }
        Err(ClientFrameError::Subscribe(error)) => {
            // What the client is told is bounded, however long its names are.
            assert!(error.message.len() <= 1_024, "{}", error.message.len());
        }
        Err(ClientFrameError::NotJson | ClientFrameError::Malformed { .. }) => {
            assert!(
                !SCHEMA.is_valid(&value),
                "the schema accepts what is refused"
            );
        }
    }
}

fn accepts(value: &Value) {
    assert!(
        SCHEMA.is_valid(value),
        "the schema refuses what is accepted"
    );
}

/// A filter that was accepted is echoed, and its echo is the same filter. True if the cursor of the
/// subscribe can be served: it is read when the session is known.
fn check_subscribe(subscribe: &SubscribeFrame) -> bool {
    let echo = subscribe.filter.spec();
    let echoed = EventFilter::resolve(&echo).expect("the echo of a filter is one");
    assert_eq!(echoed, subscribe.filter);
    let Some(since) = &subscribe.since else {
        return true;
    };
    let session: SessionId = SESSION.parse().expect("an id");
    let position = since.position(session);
    let workers = since.workers(session);
    if let Ok(position) = &position {
        assert_eq!(
            position.to_string().parse::<Position>().as_ref(),
            Ok(position)
        );
    }
    position.is_ok() && workers.is_ok()
}
