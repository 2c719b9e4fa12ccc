//! What a checker is given: everything clients asked and got, every fault that was made, and
//! what the server says of itself in the end. Plain data; nothing here judges.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::{Filter, Position, SessionId, TurnId};
use turnwire_wire::pc3::Cursor;

use crate::sse::Head;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every request over HTTP, with its answer.
    pub requests: Vec<RequestRecord>,
    /// Every connection, in the order they were opened.
    pub connections: Vec<ConnectionRecord>,
    /// Every chat stream that was asked for, in the order they were.
    pub chats: Vec<ChatRecord>,
    /// Every fault that was made.
    pub faults: Vec<InjectedFault>,
    /// Every session, as the server tells it in the end.
    pub sessions: Vec<SessionLog>,
}

/// One request over HTTP.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// When the answer came or failed to, since the journal began.
    pub at: Duration,
    pub method: String,
    /// The path, with its query.
    pub path: String,
    pub body: String,
    /// Status and body; none when the connection broke before the answer, so that nobody knows
    /// whether it was done.
    pub answer: Option<(u16, String)>,
}

/// One WebSocket connection of one client.
#[derive(Clone, Debug)]
pub struct ConnectionRecord {
    /// Whose. Connections of one name are one reader that resumes, in the order they were opened.
    pub client: String,
    pub session: SessionId,
    /// What went over it, in order.
    pub lines: Vec<ConnectionEntry>,
    /// How it ended, in words.
    pub end: Option<String>,
}

/// Something that went over a connection.
#[derive(Clone, Debug)]
pub enum ConnectionEntry {
    /// The client asked for events.
    Subscribed(SubscribeRecord),
    /// The server sent a text frame.
    Received(ReceivedFrame),
}

/// A subscribe request.
#[derive(Clone, Debug)]
pub struct SubscribeRecord {
    /// What was asked for.
    pub filter: Filter,
    pub since: Option<Position>,
    /// From where in each worker that was named.
    pub workers: BTreeMap<SessionId, Position>,
    /// Whether a snapshot was wanted.
    pub snapshot: bool,
}

/// A text frame as it came.
#[derive(Clone, Debug)]
pub struct ReceivedFrame {
    /// When, since the journal began.
    pub at: Duration,
    pub text: String,
}

/// One chat stream of one client, or the attempt to open one.
#[derive(Clone, Debug)]
pub struct ChatRecord {
    /// Whose. Streams of one name and one turn are one viewer that resumes.
    pub client: String,
    /// What was asked for.
    pub asked: ChatRequest,
    /// In which version of the wire, if it was said.
    pub version: Option<String>,
    /// The head of the answer; none when the line broke before it.
    pub head: Option<Head>,
    /// The blocks that came whole, as they came.
    pub blocks: Vec<ReceivedFrame>,
    /// What came of a block that did not come whole.
    pub tail: Vec<u8>,
    /// Whether the viewer meant to stay until the turn is over.
    pub to_the_end: bool,
    /// How it ended; none while it is open.
    pub end: Option<ChatEnd>,
}

/// What a chat stream was asked for with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatRequest {
    /// A new turn, in this session or a new one.
    Submit(Option<SessionId>),
    /// A turn, from the cursor on or from its start.
    Resume(TurnId, Option<Cursor>),
}

/// How a chat stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatEnd {
    /// With the sentinel, and then the end of the connection.
    Whole,
    /// The viewer's line was cut on purpose.
    Cut,
    /// The line ended or broke before the sentinel.
    Lost,
    /// Something came that is no chat stream.
    Garbled(String),
    /// The viewer waited in vain.
    Silent,
}

/// Something done to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// When, since the journal began; taken before the fault was made.
    pub at: Duration,
    pub kind: FaultKind,
}

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The process was killed on the spot.
    Kill,
    /// The process was asked to drain and end.
    Term,
    /// A client's connection was cut.
    Cut,
}

/// A session as the server tells it in the end.
#[derive(Clone, Debug)]
pub struct SessionLog {
    pub id: SessionId,
    /// Its events with their hashes, oldest first.
    pub events: Vec<LoggedEvent>,
    /// Its message rows, oldest first.
    pub messages: Vec<Value>,
    pub turns: Vec<Value>,
    /// Its tool call rows.
    pub tool_calls: Vec<Value>,
}

/// A stored event.
#[derive(Clone, Debug)]
pub struct LoggedEvent {
    /// Its bytes, as text.
    pub text: String,
    /// Its hash, lower-case hex.
    pub hash: String,
}

impl History {
    /// How far the nearest kill is from `at`. What was sent just before a kill may be read just
    /// after it, so it counts on both sides.
    pub fn kill_near(&self, at: Duration) -> Duration {
        self.near(FaultKind::Kill, at)
    }

    /// How far the nearest fault of a kind is from `at`.
    pub fn near(&self, kind: FaultKind, at: Duration) -> Duration {
        let faults = self.faults.iter().filter(|f| f.kind == kind);
        let near = faults.map(|f| f.at.abs_diff(at)).min();
        near.unwrap_or(Duration::MAX)
    }

    /// How many faults of a kind there were.
    pub fn count(&self, kind: FaultKind) -> usize {
        self.faults.iter().filter(|f| f.kind == kind).count()
    }
}
