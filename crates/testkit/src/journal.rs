//! The journal of a test: every client and server of the test kit writes to it, and in the end it
//! becomes a [`History`]. Cheap to clone, shared by all tasks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::SessionId;

use crate::history::{
    ChatEnd, ChatRecord, ChatRequest, ConnectionEntry, ConnectionRecord, FaultKind, History,
    InjectedFault, ReceivedFrame, RequestRecord, SessionLog, SubscribeRecord,
};
use crate::sse::Head;

/// A shared record of requests, received frames and injected faults.
#[derive(Clone, Debug)]
pub struct Journal(Arc<JournalState>);

#[derive(Debug)]
struct JournalState {
    start: Instant,
    /// Requests and faults; connections have locks of their own, so that busy ones do not wait.
    history: Mutex<History>,
    connections: Mutex<Vec<Arc<Mutex<ConnectionRecord>>>>,
    chats: Mutex<Vec<Arc<Mutex<ChatRecord>>>>,
}

impl Default for Journal {
    fn default() -> Self {
        Self(Arc::new(JournalState {
            start: Instant::now(),
            history: Mutex::default(),
            connections: Mutex::default(),
            chats: Mutex::default(),
        }))
    }
}

/// Records one connection in the [`Journal`].
#[derive(Clone, Debug)]
pub struct ConnectionRecorder {
    start: Instant,
    connection: Arc<Mutex<ConnectionRecord>>,
}

/// Records one chat stream in the [`Journal`].
#[derive(Clone, Debug)]
pub struct ChatRecorder {
    start: Instant,
    chat: Arc<Mutex<ChatRecord>>,
}

impl Journal {
    /// An empty journal; times count from now.
    pub fn new() -> Self {
        Self::default()
    }

    fn now(&self) -> Duration {
        self.0.start.elapsed()
    }

    /// Records a request and its response; `None` if the connection broke before the response.
    pub fn request(&self, method: &str, path: &str, body: &str, answer: Option<(u16, String)>) {
        let request = RequestRecord {
            at: self.now(),
            method: method.to_owned(),
            path: path.to_owned(),
            body: body.to_owned(),
            answer,
        };
        self.0.history.lock().requests.push(request);
    }

    /// Records a fault; call it before the fault is injected.
    pub fn fault(&self, kind: FaultKind) {
        let at = self.now();
        self.0
            .history
            .lock()
            .faults
            .push(InjectedFault { at, kind });
    }

    /// Starts the record of a connection.
    pub fn connection(&self, client: &str, session: SessionId) -> ConnectionRecorder {
        let connection = Arc::new(Mutex::new(ConnectionRecord {
            client: client.to_owned(),
            session,
            lines: Vec::new(),
            end: None,
        }));
        self.0.connections.lock().push(Arc::clone(&connection));
        ConnectionRecorder {
            start: self.0.start,
            connection,
        }
    }

    /// Starts the record of a chat stream.
    pub fn chat(&self, client: &str, request: ChatRequest, version: Option<&str>) -> ChatRecorder {
        let chat = Arc::new(Mutex::new(ChatRecord {
            client: client.to_owned(),
            request,
            version: version.map(str::to_owned),
            head: None,
            blocks: Vec::new(),
            tail: Vec::new(),
            stays_to_end: false,
            end: None,
        }));
        self.0.chats.lock().push(Arc::clone(&chat));
        ChatRecorder {
            start: self.0.start,
            chat,
        }
    }

    /// Everything recorded so far together with the server's sessions. The journal is empty
    /// afterwards, so that a long campaign can be checked in rounds.
    pub fn take(&self, sessions: Vec<SessionLog>) -> History {
        let mut history = std::mem::take(&mut *self.0.history.lock());
        let pages = std::mem::take(&mut *self.0.connections.lock());
        history.connections = pages.iter().map(|page| page.lock().clone()).collect();
        let pages = std::mem::take(&mut *self.0.chats.lock());
        history.chats = pages.iter().map(|page| page.lock().clone()).collect();
        history.sessions = sessions;
        history
    }
}

impl ConnectionRecorder {
    /// Records a subscribe request of the client.
    pub fn subscribed(&self, subscribe: SubscribeRecord) {
        self.connection
            .lock()
            .lines
            .push(ConnectionEntry::Subscribed(subscribe));
    }

    /// Records a received text frame.
    pub fn received(&self, text: &str) {
        let frame = ReceivedFrame {
            at: self.start.elapsed(),
            text: text.to_owned(),
        };
        self.connection
            .lock()
            .lines
            .push(ConnectionEntry::Received(frame));
    }

    /// Records how the connection ended.
    pub fn ended(&self, how: String) {
        self.connection.lock().end = Some(how);
    }
}

impl ChatRecorder {
    /// Records the head of the response.
    pub fn answered(&self, head: &Head) {
        self.chat.lock().head = Some(head.clone());
    }

    /// Records a complete block.
    pub fn received(&self, text: &str) {
        let frame = ReceivedFrame {
            at: self.start.elapsed(),
            text: text.to_owned(),
        };
        self.chat.lock().blocks.push(frame);
    }

    /// Records that the viewer stays until the turn ends.
    pub fn stays(&self) {
        self.chat.lock().stays_to_end = true;
    }

    /// Records the end and the incomplete block before it. Only the first call has an effect.
    pub fn ended(&self, end: ChatEnd, tail: &[u8]) {
        let mut chat = self.chat.lock();
        if chat.end.is_none() {
            chat.end = Some(end);
            chat.tail = tail.to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::Ulid;

    #[test]
    fn take_empties_journal_in_order() {
        let journal = Journal::new();
        let session = SessionId(Ulid(1));
        let first = journal.connection("a", session);
        let second = journal.connection("b", session);
        second.received("2");
        first.received("1");
        first.ended("cut".into());
        journal.fault(FaultKind::Kill);
        journal.request("GET", "/", "", None);
        let chat = journal.chat("c", ChatRequest::Submit(None), Some("0.4"));
        chat.received("3");
        chat.ended(ChatEnd::Cut, b"id");
        chat.ended(ChatEnd::Lost, b"");
        let history = journal.take(Vec::new());
        assert_eq!(history.chats[0].end, Some(ChatEnd::Cut));
        assert_eq!(history.chats[0].tail, b"id");
        let clients: Vec<&str> = history
            .connections
            .iter()
            .map(|c| c.client.as_str())
            .collect();
        assert_eq!(clients, ["a", "b"]);
        assert_eq!(history.connections[0].lines.len(), 1);
        assert_eq!(history.count(FaultKind::Kill), 1);
        assert_eq!(history.requests.len(), 1);
        assert!(journal.take(Vec::new()).connections.is_empty());
    }
}
