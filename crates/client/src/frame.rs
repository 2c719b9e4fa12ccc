//! Frames of the session wire, reduced to the fields that this client uses.
//!
//! Unknown fields, frame types and event types are skipped. A frame is an error only if it is not
//! JSON, or if a known frame lacks a required field. So a server can add to the wire without
//! breaking this client.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::{Event, EventType, Message, MessageId, Position, SessionId, TurnId};
use turnwire_wire::session::SessionPositions;

use crate::error::{Error, Result};

/// An event as the server sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedEvent {
    /// The bytes of the event; for a persisted event, those of the log.
    pub raw: Bytes,
    /// The position of the event, which is also a cursor.
    pub id: Position,
    /// The event type; [`SessionWatch`](crate::SessionWatch) skips events of unknown types.
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
    /// The `before` of the page with older messages, or `None` if there are none.
    pub next: Option<MessageId>,
}

/// A frame of the server: `kind` decides which of the other fields it has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerFrame<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Only in a frame of the type `event`: the event as its bytes.
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    /// Of a `subscribe_ack`: the number of persisted events that are replayed.
    pub(crate) replay_event_count: u64,
    /// Of a `subscribe_error`, with `message`.
    pub(crate) code: String,
    pub(crate) message: String,
    /// Of a `ping`, with `position`: the server has sent all events up to this position.
    pub(crate) nonce: Value,
    pub(crate) position: Option<Position>,
    /// Of a `ping` or `subscribe_ack`: the positions of the session and its workers, if the
    /// subscription includes workers.
    pub(crate) positions: Option<SessionPositions>,
    /// Of a `snapshot`, with `messages` and `snapshot_at_event_id`.
    session: Value,
    messages: Vec<Value>,
    next: Option<MessageId>,
    snapshot_at_event_id: Option<Position>,
}

#[derive(Deserialize)]
struct EventHeader {
    id: Position,
    #[serde(rename = "type")]
    kind: String,
    session_id: SessionId,
    turn_id: Option<TurnId>,
}

impl<'a> ServerFrame<'a> {
    pub(crate) fn read(frame: &'a Bytes) -> Result<Self> {
        let frame: Self = serde_json::from_slice(frame)?;
        match frame.kind.as_str() {
            "" => Err(Error::InvalidResponse("a frame has no type".to_owned())),
            _ => Ok(frame),
        }
    }

    /// The session and position of an event frame, whose bytes are `frame`, and the event unless
    /// its type is unknown.
    pub(crate) fn event(
        &self,
        frame: &Bytes,
    ) -> Result<(SessionId, Position, Option<ReceivedEvent>)> {
        let event = self.event.map_or("", RawValue::get);
        let head: EventHeader = serde_json::from_str(event)?;
        let received = head.kind.parse().ok().map(|kind| ReceivedEvent {
            raw: frame.slice_ref(event.as_bytes()),
            id: head.id,
            kind,
            session_id: head.session_id,
            turn_id: head.turn_id,
        });
        Ok((head.session_id, head.id, received))
    }

    /// The snapshot of a snapshot frame, whose bytes are `frame`.
    pub(crate) fn snapshot(self, frame: &Bytes) -> Result<SnapshotFrame> {
        let missing = || Error::InvalidResponse("a snapshot frame has no position".to_owned());
        let (messages, unreadable) = parse_messages(self.messages);
        Ok(SnapshotFrame {
            raw: frame.clone(),
            position: self.snapshot_at_event_id.ok_or_else(missing)?,
            session: self.session,
            messages,
            unreadable,
            next: self.next,
        })
    }
}

/// The messages that can be parsed, and the number of those that cannot.
pub(crate) fn parse_messages(messages: Vec<Value>) -> (Vec<Message>, usize) {
    let total = messages.len();
    let parsed = messages.into_iter().map(serde_json::from_value);
    let readable: Vec<Message> = parsed.filter_map(Result::ok).collect();
    let unreadable = total - readable.len();
    (readable, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnwire_event::body::turn::TurnError;
    use turnwire_event::{Body, Epoch, Seq, Ulid};

    fn bytes(value: &Value) -> Bytes {
        Bytes::from(value.to_string())
    }

    /// The event of an event frame, or the position of an event of an unknown type.
    fn read_event(event: &Value) -> Result<ReceivedEvent, Position> {
        let bytes = bytes(&json!({"type": "event", "event": event, "shine": true}));
        let frame = ServerFrame::read(&bytes).expect("a frame");
        let (_, at, received) = frame.event(&bytes).expect("an event");
        received.ok_or(at)
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
        let received = read_event(&inner).expect("a known type");
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
        let received = read_event(&inner).expect("a known type");
        let event = received.parse().expect("read");
        let failed = TurnError::fan_out(vec![TurnError::sub_agent("shop")]);
        assert_eq!(event.body, Body::ErrorReported(failed));
    }

    // S3-098
    #[test]
    fn unknown_event_keeps_its_position() {
        assert_eq!(read_event(&event("tool.dreamt")), Err(AT));
        for invalid in [&b"nope"[..], b"{}"] {
            assert!(ServerFrame::read(&Bytes::from_static(invalid)).is_err());
        }
    }

    #[test]
    fn ack_of_a_newer_server_is_parsed() {
        let ack = json!({
            "type": "subscribe_ack", "since": {"a": "b"}, "snapshot": false,
            "resolved_filter": {"event_types": null, "moods": []}, "replay_event_count": 47
        });
        let ack = bytes(&ack);
        let ack = ServerFrame::read(&ack).expect("a frame");
        assert_eq!((ack.replay_event_count, ack.positions), (47, None));
        let rejected =
            json!({"type": "subscribe_error", "code": "too_late", "message": "Come back."});
        let rejected = bytes(&rejected);
        let rejected = ServerFrame::read(&rejected).expect("a frame");
        assert_eq!(
            (&*rejected.code, &*rejected.message),
            ("too_late", "Come back.")
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
        let bytes = bytes(&json!({
            "type": "snapshot", "session": {"id": "sess_x"}, "snapshot_at_event_id": AT,
            "messages": [message(json!({"type": "smell"})), message(json!({"type": "text", "text": "hi"}))]
        }));
        let frame = ServerFrame::read(&bytes).expect("a frame");
        let snapshot = frame.snapshot(&bytes).expect("a snapshot");
        assert_eq!((snapshot.position, snapshot.unreadable), (AT, 1));
        assert_eq!(snapshot.messages[0].text(), "hi");
    }
}
