//! Frames of the session wire as this client reads them: what it needs, and nothing else.
//!
//! Unknown fields are never looked at, unknown kinds of frame and unknown types of event are
//! passed over; only what is not JSON at all, or a known frame without what it cannot be without,
//! is an error. A server may therefore grow without breaking this client.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::{Event, EventType, Message, Position, SessionId, TurnId};
use turnwire_wire::session::Positions;

use crate::error::Error;

/// An event as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Its bytes, as the log has them where it is persisted.
    pub raw: Bytes,
    /// Its id, which is a cursor.
    pub id: Position,
    /// Its type.
    pub kind: EventType,
    /// Its session.
    pub session_id: SessionId,
    /// Its turn.
    pub turn_id: Option<TurnId>,
}

impl Received {
    /// The event with its payload; none if the payload has grown beyond this client.
    pub fn read(&self) -> Option<Event> {
        Event::read(&self.raw).ok()
    }

    /// The worker that it says has begun, or has ended.
    pub(crate) fn worker(&self) -> Option<SessionId> {
        let id = self.json()["payload"]["worker_session_id"].take();
        serde_json::from_value(id).ok()
    }

    /// The event as plain JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap_or_default()
    }
}

/// A snapshot as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The frame's bytes.
    pub raw: Bytes,
    /// The position it is the state of.
    pub at: Position,
    /// The session, as plain JSON.
    pub session: Value,
    /// The messages this client can read, oldest first.
    pub messages: Vec<Message>,
    /// How many it cannot read.
    pub unreadable: usize,
}

/// What a frame of the server says to this client.
#[derive(Debug)]
pub(crate) enum Frame {
    /// The subscription stands.
    Ack {
        /// So many persisted events are replayed.
        replay_event_count: u64,
        /// Where every session stands, where workers come along.
        positions: Option<Positions>,
    },
    /// The subscription does not stand.
    Refused { code: String, message: String },
    /// The session at a position.
    Snapshot(Box<Snapshot>),
    /// An event.
    Event(Received),
    /// An event that this client does not know: only its place matters.
    Passed(SessionId, Position),
    /// The server asks whether anyone is there, and says how far it has served.
    Ping {
        nonce: Value,
        position: Option<Position>,
        positions: Option<Positions>,
    },
    /// Nothing for this client.
    Other,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
    #[serde(default)]
    replay_event_count: u64,
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    nonce: Value,
    #[serde(default)]
    position: Option<Position>,
    #[serde(default)]
    positions: Option<Positions>,
    #[serde(default)]
    session: Value,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(default)]
    snapshot_at_event_id: Option<Position>,
}

#[derive(Deserialize)]
struct Head {
    id: Position,
    #[serde(rename = "type")]
    kind: String,
    session_id: SessionId,
    #[serde(default)]
    turn_id: Option<TurnId>,
}

impl Frame {
    /// Reads a text frame.
    pub(crate) fn read(frame: &Bytes) -> Result<Self, Error> {
        let answer = |error: serde_json::Error| Error::Answer(error.to_string());
        let fields: Fields<'_> = serde_json::from_slice(frame).map_err(answer)?;
        Ok(match fields.kind.as_str() {
            "subscribe_ack" => Self::Ack {
                replay_event_count: fields.replay_event_count,
                positions: fields.positions,
            },
            "subscribe_error" => Self::Refused {
                code: fields.code,
                message: fields.message,
            },
            "ping" => Self::Ping {
                nonce: fields.nonce,
                position: fields.position,
                positions: fields.positions,
            },
            "event" => {
                let event = fields.event.map_or("", RawValue::get);
                let head: Head = serde_json::from_str(event).map_err(answer)?;
                match head.kind.parse() {
                    Err(_) => Self::Passed(head.session_id, head.id),
                    Ok(kind) => Self::Event(Received {
                        raw: frame.slice_ref(event.as_bytes()),
                        id: head.id,
                        kind,
                        session_id: head.session_id,
                        turn_id: head.turn_id,
                    }),
                }
            }
            "snapshot" => {
                let none = || Error::Answer("a snapshot without its position".to_owned());
                let at = fields.snapshot_at_event_id.ok_or_else(none)?;
                let (messages, unreadable) = readable(fields.messages);
                Self::Snapshot(Box::new(Snapshot {
                    raw: frame.clone(),
                    at,
                    session: fields.session,
                    messages,
                    unreadable,
                }))
            }
            _ => Self::Other,
        })
    }
}

/// The messages that can be read, and how many cannot.
pub(crate) fn readable(messages: Vec<Value>) -> (Vec<Message>, usize) {
    let all = messages.len();
    let read: Vec<Message> = messages
        .into_iter()
        .filter_map(|message| serde_json::from_value(message).ok())
        .collect();
    let unreadable = all - read.len();
    (read, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnwire_event::body::turn::TurnError;
    use turnwire_event::{Body, Epoch, Seq, Ulid};

    fn read(value: &Value) -> Frame {
        Frame::read(&Bytes::from(value.to_string())).expect("a frame")
    }

    fn event(kind: &str) -> Value {
        json!({
            "id": "evt_00010000000003", "type": kind, "session_id": SessionId(Ulid(1)).to_string(),
            "turn_id": null, "response_id": null, "actor": "martian:9", "timestamp": "soon",
            "persisted": true, "trace": null, "mood": "new", "payload": {"x": [1]}
        })
    }

    const AT: Position = Position::persisted(Epoch(1), Seq(3));

    #[test]
    fn an_event_keeps_its_bytes_and_unknown_fields_do_no_harm() {
        let inner = event("tool.called");
        let frame = read(&json!({"type": "event", "event": inner, "shine": true}));
        let Frame::Event(received) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!(received.raw, inner.to_string());
        assert_eq!(
            (received.id, received.kind, received.turn_id),
            (AT, EventType::ToolCalled, None)
        );
        assert_eq!(received.read(), None, "the payload has changed");
    }

    #[test]
    fn events_of_sub_agents_are_read_with_fields_that_are_new() {
        let mut inner = event("error.reported");
        inner["actor"] = json!("subagent:shop");
        inner["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        inner["turn_id"] = json!(Ulid(2).to_string());
        inner["render"] = json!({"policy": "forward", "why": "new"});
        inner["payload"] = json!({
            "code": "PARTIAL_FAN_OUT", "hint": "new",
            "failed": [{"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop", "hint": 1}]
        });
        let Frame::Event(received) = read(&json!({"type": "event", "event": inner})) else {
            panic!("an event");
        };
        let event = received.read().expect("read");
        let failed = TurnError::fan_out(vec![TurnError::sub_agent("shop")]);
        assert_eq!(event.body, Body::ErrorReported(failed));
    }

    #[test]
    fn s3_098_what_is_not_known_is_passed_over_and_its_place_kept() {
        let frame = read(&json!({"type": "event", "event": event("tool.dreamt")}));
        assert!(matches!(frame, Frame::Passed(_, AT)), "{frame:?}");
        assert!(matches!(read(&json!({"type": "weather"})), Frame::Other));
        assert!(Frame::read(&Bytes::from_static(b"nope")).is_err());
    }

    #[test]
    fn an_acknowledgement_of_a_newer_server_is_read() {
        let ack = json!({
            "type": "subscribe_ack", "since": {"a": "b"}, "snapshot": false,
            "resolved_filter": {"event_types": null, "moods": []}, "replay_event_count": 47
        });
        assert!(matches!(
            read(&ack),
            Frame::Ack {
                replay_event_count: 47,
                positions: None
            }
        ));
        let refused =
            json!({"type": "subscribe_error", "code": "too_late", "message": "Come back."});
        assert!(matches!(read(&refused), Frame::Refused { code, .. } if code == "too_late"));
    }

    #[test]
    fn a_snapshot_keeps_the_messages_it_can_read() {
        let id = Ulid(7).to_string();
        let message = |block: Value| {
            json!({
                "id": id, "session_id": SessionId(Ulid(1)), "turn_id": id, "role": "user",
                "status": "complete", "content": [block], "model": null, "stop_reason": null,
                "usage": null, "created_at": "2026-01-01T00:00:00.000Z", "metadata": {}
            })
        };
        let frame = read(&json!({
            "type": "snapshot", "session": {"id": "sess_x"}, "snapshot_at_event_id": AT,
            "messages": [message(json!({"type": "smell"})), message(json!({"type": "text", "text": "hi"}))]
        }));
        let Frame::Snapshot(snapshot) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!((snapshot.at, snapshot.unreadable), (AT, 1));
        assert_eq!(snapshot.messages[0].text(), "hi");
    }
}
