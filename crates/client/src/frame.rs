//! Frames of the session wire, reduced to the fields that this client uses.
//!
//! Unknown fields, frame types and event types are skipped. A frame is an error only if it is not
//! JSON, or if a known frame lacks a required field. So a server can add to the wire without
//! breaking this client.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::{Event, EventType, Message, Position, SessionId, TurnId};
use turnwire_wire::session::SessionPositions;

use crate::error::Error;

/// An event as the server sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedEvent {
    /// The bytes of the event; for a persisted event, those of the log.
    pub raw: Bytes,
    /// The position of the event, which is also a cursor.
    pub id: Position,
    /// The event type; events of unknown types are skipped.
    pub kind: EventType,
    /// The watched session, or one of its workers.
    pub session_id: SessionId,
    /// `None` for an event that belongs to no turn.
    pub turn_id: Option<TurnId>,
}

impl ReceivedEvent {
    /// The event with its payload, or `None` if this client does not know the payload's format.
    pub fn parse(&self) -> Option<Event> {
        Event::read(&self.raw).ok()
    }

    /// The session of the worker that has started or ended, for a `delegate.*` event.
    pub(crate) fn worker(&self) -> Option<SessionId> {
        let id = self.json()["payload"]["worker_session_id"].take();
        serde_json::from_value(id).ok()
    }

    /// The event as untyped JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap_or_default()
    }
}

/// A snapshot frame as the server sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotFrame {
    /// The bytes of the frame.
    pub raw: Bytes,
    /// The snapshot contains the state at this position.
    pub position: Position,
    /// The session as untyped JSON.
    pub session: Value,
    /// The messages whose format this client knows, oldest first.
    pub messages: Vec<Message>,
    /// The number of messages whose format this client does not know.
    pub unreadable: usize,
}

/// A frame of the server.
#[derive(Debug)]
pub(crate) enum IncomingFrame {
    /// The server accepted the subscription.
    Ack {
        /// The number of persisted events that are replayed.
        replay_event_count: u64,
        /// The positions of the session and its workers, if the subscription includes workers.
        positions: Option<SessionPositions>,
    },
    /// The server rejected the subscription.
    SubscribeRejected {
        code: String,
        message: String,
    },
    Snapshot(Box<SnapshotFrame>),
    Event(ReceivedEvent),
    /// An event of an unknown type; only its position is used.
    UnknownEvent(SessionId, Position),
    /// A heartbeat with the position up to which the server has sent all events.
    Ping {
        nonce: Value,
        position: Option<Position>,
        positions: Option<SessionPositions>,
    },
    /// A frame of an unknown type.
    Other,
}

#[derive(Deserialize)]
struct FrameFields<'a> {
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
    positions: Option<SessionPositions>,
    #[serde(default)]
    session: Value,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(default)]
    snapshot_at_event_id: Option<Position>,
}

#[derive(Deserialize)]
struct EventHeader {
    id: Position,
    #[serde(rename = "type")]
    kind: String,
    session_id: SessionId,
    #[serde(default)]
    turn_id: Option<TurnId>,
}

impl IncomingFrame {
    pub(crate) fn read(frame: &Bytes) -> Result<Self, Error> {
        let invalid = |error: serde_json::Error| Error::InvalidResponse(error.to_string());
        let fields: FrameFields<'_> = serde_json::from_slice(frame).map_err(invalid)?;
        Ok(match fields.kind.as_str() {
            "subscribe_ack" => Self::Ack {
                replay_event_count: fields.replay_event_count,
                positions: fields.positions,
            },
            "subscribe_error" => Self::SubscribeRejected {
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
                let head: EventHeader = serde_json::from_str(event).map_err(invalid)?;
                match head.kind.parse() {
                    Err(_) => Self::UnknownEvent(head.session_id, head.id),
                    Ok(kind) => Self::Event(ReceivedEvent {
                        raw: frame.slice_ref(event.as_bytes()),
                        id: head.id,
                        kind,
                        session_id: head.session_id,
                        turn_id: head.turn_id,
                    }),
                }
            }
            "snapshot" => {
                let missing_position =
                    || Error::InvalidResponse("a snapshot frame has no position".to_owned());
                let at = fields.snapshot_at_event_id.ok_or_else(missing_position)?;
                let (messages, unreadable) = parse_messages(fields.messages);
                Self::Snapshot(Box::new(SnapshotFrame {
                    raw: frame.clone(),
                    position: at,
                    session: fields.session,
                    messages,
                    unreadable,
                }))
            }
            _ => Self::Other,
        })
    }
}

/// The messages that can be parsed, and the number of those that cannot.
pub(crate) fn parse_messages(messages: Vec<Value>) -> (Vec<Message>, usize) {
    let total = messages.len();
    let read: Vec<Message> = messages
        .into_iter()
        .filter_map(|message| serde_json::from_value(message).ok())
        .collect();
    let unreadable = total - read.len();
    (read, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnwire_event::body::turn::TurnError;
    use turnwire_event::{Body, Epoch, Seq, Ulid};

    fn read(value: &Value) -> IncomingFrame {
        IncomingFrame::read(&Bytes::from(value.to_string())).expect("a frame")
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
    fn event_keeps_its_bytes_and_ignores_unknown_fields() {
        let inner = event("tool.called");
        let frame = read(&json!({"type": "event", "event": inner, "shine": true}));
        let IncomingFrame::Event(received) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!(received.raw, inner.to_string());
        assert_eq!(
            (received.id, received.kind, received.turn_id),
            (AT, EventType::ToolCalled, None)
        );
        assert_eq!(received.parse(), None, "the payload has changed");
    }

    #[test]
    fn sub_agent_event_with_unknown_fields_is_parsed() {
        let mut inner = event("error.reported");
        inner["actor"] = json!("subagent:shop");
        inner["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        inner["turn_id"] = json!(Ulid(2).to_string());
        inner["render"] = json!({"policy": "forward", "why": "new"});
        inner["payload"] = json!({
            "code": "PARTIAL_FAN_OUT", "hint": "new",
            "failed": [{"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop", "hint": 1}]
        });
        let IncomingFrame::Event(received) = read(&json!({"type": "event", "event": inner})) else {
            panic!("an event");
        };
        let event = received.parse().expect("read");
        let failed = TurnError::fan_out(vec![TurnError::sub_agent("shop")]);
        assert_eq!(event.body, Body::ErrorReported(failed));
    }

    // S3-098
    #[test]
    fn unknown_event_keeps_its_position() {
        let frame = read(&json!({"type": "event", "event": event("tool.dreamt")}));
        assert!(
            matches!(frame, IncomingFrame::UnknownEvent(_, AT)),
            "{frame:?}"
        );
        assert!(matches!(
            read(&json!({"type": "weather"})),
            IncomingFrame::Other
        ));
        assert!(IncomingFrame::read(&Bytes::from_static(b"nope")).is_err());
    }

    #[test]
    fn ack_of_a_newer_server_is_parsed() {
        let ack = json!({
            "type": "subscribe_ack", "since": {"a": "b"}, "snapshot": false,
            "resolved_filter": {"event_types": null, "moods": []}, "replay_event_count": 47
        });
        assert!(matches!(
            read(&ack),
            IncomingFrame::Ack {
                replay_event_count: 47,
                positions: None
            }
        ));
        let refused =
            json!({"type": "subscribe_error", "code": "too_late", "message": "Come back."});
        assert!(
            matches!(read(&refused), IncomingFrame::SubscribeRejected { code, .. } if code == "too_late")
        );
    }

    #[test]
    fn snapshot_keeps_readable_messages() {
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
        let IncomingFrame::Snapshot(snapshot) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!((snapshot.position, snapshot.unreadable), (AT, 1));
        assert_eq!(snapshot.messages[0].text(), "hi");
    }
}
