//! The input of the checker: every request, connection and chat stream of the clients, every
//! injected fault, and the sessions as the server reports them at the end. Plain data.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::{EventFilter, Position, SessionId, TurnId};
use turnwire_wire::pc3::FrameCursor;

use crate::sse::Head;

/// Everything that clients, faults and the server did in one test.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every HTTP request with its response.
    pub requests: Vec<RequestRecord>,
    /// Every WebSocket connection, in the order of opening.
    pub connections: Vec<ConnectionRecord>,
    /// Every requested chat stream, in the order of the requests.
    pub chats: Vec<ChatRecord>,
    /// Every kill, SIGTERM and cut.
    pub faults: Vec<InjectedFault>,
    /// Every session, as the server reports it at the end.
    pub sessions: Vec<SessionLog>,
}

/// One HTTP request and its response.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// When the response arrived or failed, since the start of the journal.
    pub at: Duration,
    pub method: String,
    /// The path with the query.
    pub path: String,
    pub body: String,
    /// Status and body; `None` if the connection broke before the response, so that it is unknown
    /// whether the server applied the request.
    pub answer: Option<(u16, String)>,
}

/// One WebSocket connection of one client.
#[derive(Clone, Debug)]
pub struct ConnectionRecord {
    /// The client's name. Connections with one name are one reader that resumes.
    pub client: String,
    pub session: SessionId,
    /// Subscribe requests and received frames, in order.
    pub lines: Vec<ConnectionEntry>,
    /// How the connection ended, as text; `None` while it is open.
    pub end: Option<String>,
}

/// A subscribe request or a received frame of a [`ConnectionRecord`].
#[derive(Clone, Debug)]
pub enum ConnectionEntry {
    /// The client sent a subscribe request.
    Subscribed(SubscribeRecord),
    /// The server sent a text frame.
    Received(ReceivedFrame),
}

/// The contents of a subscribe request.
#[derive(Clone, Debug)]
pub struct SubscribeRecord {
    /// The filter as the server should resolve it.
    pub filter: EventFilter,
    pub since: Option<Position>,
    /// The cursor of each worker session in the request.
    pub workers: BTreeMap<SessionId, Position>,
    /// True if the client requested a snapshot.
    pub snapshot: bool,
}

/// A received text frame or chat block with its time.
#[derive(Clone, Debug)]
pub struct ReceivedFrame {
    /// Time of receipt since the start of the journal.
    pub at: Duration,
    pub text: String,
}

/// One chat stream of one client, or the attempt to open one.
#[derive(Clone, Debug)]
pub struct ChatRecord {
    /// The client's name. Streams with one name and turn are one viewer that resumes.
    pub client: String,
    /// The filter as the server should resolve it.
    pub request: ChatRequest,
    /// The requested wire version, if any.
    pub version: Option<String>,
    /// The response head; `None` if the connection broke before it.
    pub head: Option<Head>,
    /// The complete blocks as received.
    pub blocks: Vec<ReceivedFrame>,
    /// The bytes of an incomplete block at the end.
    pub tail: Vec<u8>,
    /// True if the viewer stays connected until the turn ends.
    pub stays_to_end: bool,
    /// How the stream ended; `None` while it is open.
    pub end: Option<ChatEnd>,
}

/// The request that opened a chat stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatRequest {
    /// Submit a turn, in this session or a new one.
    Submit(Option<SessionId>),
    /// Resume a turn after the cursor, or read it from its start.
    Resume(TurnId, Option<FrameCursor>),
}

/// How a chat stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatEnd {
    /// The sentinel arrived, then the connection ended.
    Complete,
    /// The test cut the connection.
    Cut,
    /// The connection ended before the sentinel.
    Lost,
    /// The bytes are not a valid chat stream.
    Invalid(String),
    /// Nothing arrived within the deadline.
    TimedOut,
}

/// A fault that the test injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// Time since the start of the journal, taken before the fault.
    pub at: Duration,
    pub kind: FaultKind,
}

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// SIGKILL to the server.
    Kill,
    /// SIGTERM to the server: drain and exit.
    Term,
    /// A client's connection was closed by the test.
    Cut,
}

/// A session as the server reports it at the end of a test.
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

/// A stored event and its hash.
#[derive(Clone, Debug)]
pub struct LoggedEvent {
    /// Its bytes, as text.
    pub text: String,
    /// Its hash, lower-case hex.
    pub hash: String,
}

impl History {
    /// The time between `at` and the nearest kill. A frame sent just before a kill may be read just
    /// after it, so kills on both sides count.
    pub fn nearest_kill(&self, at: Duration) -> Duration {
        self.near(FaultKind::Kill, at)
    }

    /// The time between `at` and the nearest fault of a kind.
    pub fn near(&self, kind: FaultKind, at: Duration) -> Duration {
        let faults = self.faults.iter().filter(|f| f.kind == kind);
        let near = faults.map(|f| f.at.abs_diff(at)).min();
        near.unwrap_or(Duration::MAX)
    }

    /// The number of faults of a kind.
    pub fn count(&self, kind: FaultKind) -> usize {
        self.faults.iter().filter(|f| f.kind == kind).count()
    }
}
