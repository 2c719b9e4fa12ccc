//! What a checker is given: everything clients asked and got, every fault that was made, and
//! what the server says of itself in the end. Plain data; nothing here judges.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::{Filter, Position, SessionId};

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every request over HTTP, with its answer.
    pub requests: Vec<Request>,
    /// Every connection, in the order they were opened.
    pub connections: Vec<Connection>,
    /// Every fault that was made.
    pub faults: Vec<Fault>,
    /// Every session, as the server tells it in the end.
    pub sessions: Vec<SessionLog>,
}

/// One request over HTTP.
#[derive(Clone, Debug)]
pub struct Request {
    /// When the answer came or failed to, since the journal began.
    pub at: Duration,
    /// The verb.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// What was sent.
    pub body: String,
    /// Status and body; none when the connection broke before the answer, so that nobody knows
    /// whether it was done.
    pub answer: Option<(u16, String)>,
}

/// One WebSocket connection of one client.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Whose. Connections of one name are one reader that resumes, in the order they were opened.
    pub client: String,
    /// To which session.
    pub session: SessionId,
    /// What went over it, in order.
    pub lines: Vec<Line>,
    /// How it ended, in words.
    pub end: Option<String>,
}

/// Something that went over a connection.
#[derive(Clone, Debug)]
pub enum Line {
    /// The client asked for events.
    Subscribed(Subscribe),
    /// The server sent a text frame.
    Received(Frame),
}

/// A subscribe request.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// What was asked for.
    pub filter: Filter,
    /// From where.
    pub since: Option<Position>,
    /// Whether a snapshot was wanted.
    pub snapshot: bool,
}

/// A text frame as it came.
#[derive(Clone, Debug)]
pub struct Frame {
    /// When, since the journal began.
    pub at: Duration,
    /// Its text.
    pub text: String,
}

/// Something done to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When, since the journal began; taken before the fault was made.
    pub at: Duration,
    /// What.
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
    /// Which session.
    pub id: SessionId,
    /// Its events with their hashes, oldest first.
    pub events: Vec<LoggedEvent>,
    /// Its message rows, oldest first.
    pub messages: Vec<Value>,
    /// Its turn rows.
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
        let kills = self.faults.iter().filter(|f| f.kind == FaultKind::Kill);
        let near = kills.map(|f| f.at.abs_diff(at)).min();
        near.unwrap_or(Duration::MAX)
    }

    /// How many faults of a kind there were.
    pub fn count(&self, kind: FaultKind) -> usize {
        self.faults.iter().filter(|f| f.kind == kind).count()
    }
}
