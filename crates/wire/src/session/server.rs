//! Frames the server sends.
//!
//! An event frame is the stored bytes between two constants, so that live and replayed frames
//! are the same bytes and nothing is serialised twice.

use std::collections::BTreeMap;

use serde::Serialize;
use turnwire_event::{FilterSpec, Message, Position, SessionId};

use super::subscribe::{Since, SubscribeError};
use super::summary::SessionSummary;

/// How far a connection has been served in every session it carries.
pub type Positions = BTreeMap<SessionId, Position>;

/// What stands before an event's bytes in its frame.
pub const EVENT_PREFIX: &[u8] = b"{\"type\":\"event\",\"event\":";
/// What stands after them.
pub const EVENT_SUFFIX: &[u8] = b"}";

#[derive(Serialize)]
struct Tagged<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    rest: T,
}

fn write<T: Serialize>(kind: &str, rest: T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, &Tagged { kind, rest }).expect("frames are plain data");
}

/// Writes an event's frame around its stored bytes.
pub fn event_frame(event_json: &[u8], out: &mut Vec<u8>) {
    out.reserve(EVENT_PREFIX.len() + event_json.len() + EVENT_SUFFIX.len());
    out.extend_from_slice(EVENT_PREFIX);
    out.extend_from_slice(event_json);
    out.extend_from_slice(EVENT_SUFFIX);
}

/// What a subscribe is answered with (S3-018).
#[derive(Serialize)]
pub struct Ack<'a> {
    /// The filter with presets expanded.
    pub resolved_filter: FilterSpec,
    /// The cursor as it came.
    pub since: Option<&'a Since>,
    /// Whether a snapshot follows.
    pub snapshot: bool,
    /// How many persisted events of the session itself are replayed.
    pub replay_event_count: u64,
    /// Where every session stands, if workers come along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<Positions>,
}

/// Writes the acknowledgement of a subscribe.
pub fn ack(ack: &Ack<'_>, out: &mut Vec<u8>) {
    write("subscribe_ack", ack, out);
}

/// Writes the refusal of a subscribe.
pub fn subscribe_error(error: &SubscribeError, out: &mut Vec<u8>) {
    write("subscribe_error", error, out);
}

/// Writes a snapshot (S3-027): the state of a session at one position; only events after it
/// follow.
pub fn snapshot(session: &SessionSummary, messages: &[Message], at: Position, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Frame<'a> {
        session: &'a SessionSummary,
        messages: &'a [Message],
        snapshot_at_event_id: Position,
    }
    let frame = Frame {
        session,
        messages,
        snapshot_at_event_id: at,
    };
    write("snapshot", frame, out);
}

/// Writes a ping; `position` is how far this connection has been served, a legal cursor, and so
/// is `positions` where it carries workers.
pub fn ping(nonce: &str, position: Position, positions: Option<&Positions>, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Frame<'a> {
        nonce: &'a str,
        position: Position,
        #[serde(skip_serializing_if = "Option::is_none")]
        positions: Option<&'a Positions>,
    }
    let frame = Frame {
        nonce,
        position,
        positions,
    };
    write("ping", frame, out);
}

/// Writes a pong.
pub fn pong(nonce: &str, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Frame<'a> {
        nonce: &'a str,
    }
    write("pong", Frame { nonce }, out);
}

#[cfg(test)]
mod tests;
