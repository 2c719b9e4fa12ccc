//! Frames from the server.
//!
//! An event frame is the stored bytes of the event between two constants, so that live and replayed
//! frames are equal and no event is serialised twice.

use std::collections::BTreeMap;

use serde::Serialize;
use turnwire_event::{FilterSpec, Message, MessageId, Position, SessionId};

use super::cancel::{CancelAck, CancelError};
use super::open_work::SnapshotWork;
use super::renew::{RenewAck, RenewError};
use super::subscribe::{SinceCursor, SubscribeError};
use super::summary::SessionSummary;
use crate::rest::turn::TurnInfo;

/// The position up to which a connection has been served, for each session it carries.
pub type SessionPositions = BTreeMap<SessionId, Position>;

/// The version of the session wire, `major.minor`. Within a major version the wire only grows:
/// frames, event types, fields, codes and close codes are added, and none is removed or changes its
/// meaning.
pub const SESSION_WIRE_VERSION: &str = "1.0";

/// The bytes before the event in its frame.
pub const EVENT_PREFIX: &[u8] = b"{\"type\":\"event\",\"event\":";
/// The bytes after the event in its frame.
pub const EVENT_SUFFIX: &[u8] = b"}";

#[derive(Serialize)]
struct TaggedFrame<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    fields: T,
}

fn write<T: Serialize>(kind: &str, fields: T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, &TaggedFrame { kind, fields }).expect("frames are plain data");
}

/// Writes the frame of an event: its stored bytes between [`EVENT_PREFIX`] and [`EVENT_SUFFIX`].
pub fn write_event(event_json: &[u8], out: &mut Vec<u8>) {
    out.reserve(EVENT_PREFIX.len() + event_json.len() + EVENT_SUFFIX.len());
    out.extend_from_slice(EVENT_PREFIX);
    out.extend_from_slice(event_json);
    out.extend_from_slice(EVENT_SUFFIX);
}

/// The answer to an accepted [`SubscribeFrame`](super::SubscribeFrame) (S3-018).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscribeAck<'a> {
    /// The version of the session wire that the server speaks, `<major>.<minor>`.
    pub version: &'static str,
    /// The filter of the subscribe with presets expanded.
    pub resolved_filter: FilterSpec,
    /// The cursor as the client sent it.
    pub since: Option<&'a SinceCursor>,
    /// True if a snapshot follows.
    pub snapshot: bool,
    /// The number of persisted events of the session itself that are replayed.
    pub replay_event_count: u64,
    /// The start position in every session, if the subscription includes workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<SessionPositions>,
}

/// Writes the answer to an accepted subscribe.
pub fn write_ack(ack: &SubscribeAck<'_>, out: &mut Vec<u8>) {
    write("subscribe_ack", ack, out);
}

/// Writes the answer to a rejected subscribe.
pub fn write_subscribe_error(error: &SubscribeError, out: &mut Vec<u8>) {
    write("subscribe_error", error, out);
}

/// Writes the answer to a cancel of a known turn.
pub fn write_cancel_ack(ack: &CancelAck, out: &mut Vec<u8>) {
    write("cancel_ack", ack, out);
}

/// Writes the answer to a cancel that has no effect.
pub fn write_cancel_error(error: &CancelError, out: &mut Vec<u8>) {
    write("cancel_error", error, out);
}

/// Writes the answer to an accepted renew.
pub fn write_renew_ack(ack: &RenewAck, out: &mut Vec<u8>) {
    write("renew_ack", ack, out);
}

/// Writes the answer to a renew that has no effect.
pub fn write_renew_error(error: &RenewError, out: &mut Vec<u8>) {
    write("renew_error", error, out);
}

/// The state of a session at a position (S3-027). Only events after it follow.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotFrame<'a> {
    pub session: &'a SessionSummary,
    /// The newest messages, oldest first.
    pub messages: &'a [Message],
    /// The `before` of the page with older messages; null if there are none (S3-029).
    pub next: Option<MessageId>,
    /// The work that has started and not ended.
    pub open: &'a SnapshotWork,
    /// The turn that ended last, with its terminal; null before the first end.
    pub last_turn: Option<&'a TurnInfo>,
    /// The position of the last event that the snapshot includes.
    pub snapshot_at_event_id: Position,
}

/// Writes a snapshot frame to `out`.
pub fn write_snapshot(snapshot: &SnapshotFrame<'_>, out: &mut Vec<u8>) {
    write("snapshot", snapshot, out);
}

/// Writes a ping. `position` is how far the connection has been served in its session, `positions`
/// the same for its workers too; the client may use both as cursors.
pub fn write_ping(
    nonce: &str,
    position: Position,
    positions: Option<&SessionPositions>,
    out: &mut Vec<u8>,
) {
    #[derive(Serialize)]
    struct PingFrame<'a> {
        nonce: &'a str,
        position: Position,
        #[serde(skip_serializing_if = "Option::is_none")]
        positions: Option<&'a SessionPositions>,
    }
    let frame = PingFrame {
        nonce,
        position,
        positions,
    };
    write("ping", frame, out);
}

/// Writes the answer to a client's ping.
pub fn write_pong(nonce: &str, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct PongFrame<'a> {
        nonce: &'a str,
    }
    write("pong", PongFrame { nonce }, out);
}

#[cfg(test)]
mod tests;
