//! Frames the server sends: written here, and read back for the client.
//!
//! An event frame is the stored bytes between two constants, so that live and replayed frames
//! are the same bytes and nothing is serialised twice.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use turnwire_event::{Filter, FilterSpec, Message, Position};

use super::subscribe::{Since, SubscribeError};
use super::summary::SessionSummary;

/// What stands before an event's bytes in its frame.
pub const EVENT_PREFIX: &[u8] = b"{\"type\":\"event\",\"event\":";
/// What stands after them.
pub const EVENT_SUFFIX: &[u8] = b"}";

/// The answer to a subscribe that is accepted (S3-018).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ack {
    /// The filter, presets expanded.
    pub resolved_filter: FilterSpec,
    /// The client's cursor, as it came.
    pub since: Option<Since>,
    /// Whether a snapshot follows.
    pub snapshot: bool,
    /// How many persisted events are replayed.
    pub replay_event_count: u64,
}

/// The state of a session at one position (S3-027).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Snapshot {
    /// The session.
    pub session: SessionSummary,
    /// Its newest messages, oldest first, the one in flight last.
    pub messages: Vec<Message>,
    /// The position it is the state of; only events after it follow.
    pub snapshot_at_event_id: Position,
}

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

/// Writes the acknowledgement of a subscribe.
pub fn ack(
    filter: &Filter,
    since: Option<&Since>,
    snapshot: bool,
    replay_event_count: u64,
    out: &mut Vec<u8>,
) {
    let ack = Ack {
        resolved_filter: filter.spec(),
        since: since.cloned(),
        snapshot,
        replay_event_count,
    };
    write("subscribe_ack", ack, out);
}

/// Writes the refusal of a subscribe.
pub fn subscribe_error(error: &SubscribeError, out: &mut Vec<u8>) {
    write("subscribe_error", error, out);
}

/// Writes a snapshot.
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

/// Writes a ping; `position` is how far this connection has been served, a legal cursor.
pub fn ping(nonce: &str, position: Position, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Frame<'a> {
        nonce: &'a str,
        position: Position,
    }
    write("ping", Frame { nonce, position }, out);
}

/// Writes a pong.
pub fn pong(nonce: &str, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Frame<'a> {
        nonce: &'a str,
    }
    write("pong", Frame { nonce }, out);
}

/// A frame of the server, read back. What is not known is passed over, never an error.
#[derive(Debug)]
pub enum ServerFrame<'a> {
    /// An event, its bytes as the log has them.
    Event(&'a RawValue),
    /// The subscribe was accepted.
    Ack(Ack),
    /// The subscribe was refused.
    SubscribeError(SubscribeError),
    /// The state of the session.
    Snapshot(Box<Snapshot>),
    /// The server asks whether the client is there.
    Ping {
        /// To be sent back.
        nonce: String,
        /// How far the connection has been served.
        position: Option<Position>,
    },
    /// The server answers.
    Pong {
        /// What the client had sent.
        nonce: String,
    },
    /// A kind of frame that is newer than this code.
    Unknown {
        /// Its type.
        kind: String,
    },
}

impl<'a> ServerFrame<'a> {
    /// Reads a text frame.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(rename = "type")]
            kind: String,
            #[serde(borrow, default)]
            event: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Beat {
            nonce: String,
            position: Option<Position>,
        }
        let head: Head<'a> = serde_json::from_str(text)?;
        Ok(match (head.kind.as_str(), head.event) {
            ("event", Some(event)) => Self::Event(event),
            ("subscribe_ack", _) => Self::Ack(serde_json::from_str(text)?),
            ("subscribe_error", _) => Self::SubscribeError(serde_json::from_str(text)?),
            ("snapshot", _) => Self::Snapshot(serde_json::from_str(text)?),
            ("ping", _) => {
                let Beat { nonce, position } = serde_json::from_str(text)?;
                Self::Ping { nonce, position }
            }
            ("pong", _) => Self::Pong {
                nonce: serde_json::from_str::<Beat>(text)?.nonce,
            },
            _ => Self::Unknown { kind: head.kind },
        })
    }
}

#[cfg(test)]
mod tests;
