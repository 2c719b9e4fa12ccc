//! The journal: every client and every server of a test writes into one, and in the end it is
//! the part of a `History` that the clients know. Cheap to clone, shared by all tasks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::SessionId;

use crate::history::{
    Connection, Fault, FaultKind, Frame, History, Line, Request, SessionLog, Subscribe,
};

/// A shared record of what was asked, seen and broken.
#[derive(Clone, Debug)]
pub struct Journal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    start: Instant,
    /// Requests and faults; connections are kept apart, so that busy ones do not wait for others.
    history: Mutex<History>,
    connections: Mutex<Vec<Arc<Mutex<Connection>>>>,
}

impl Default for Journal {
    fn default() -> Self {
        Self(Arc::new(Inner {
            start: Instant::now(),
            history: Mutex::default(),
            connections: Mutex::default(),
        }))
    }
}

/// One connection's page in the journal.
#[derive(Clone, Debug)]
pub struct Page {
    start: Instant,
    connection: Arc<Mutex<Connection>>,
}

impl Journal {
    /// An empty one, whose time begins now.
    pub fn new() -> Self {
        Self::default()
    }

    fn now(&self) -> Duration {
        self.0.start.elapsed()
    }

    /// Writes down a request and its answer.
    pub fn request(&self, method: &str, path: &str, body: &str, answer: Option<(u16, String)>) {
        let request = Request {
            at: self.now(),
            method: method.to_owned(),
            path: path.to_owned(),
            body: body.to_owned(),
            answer,
        };
        self.0.history.lock().requests.push(request);
    }

    /// Writes down a fault; call it before making it.
    pub fn fault(&self, kind: FaultKind) {
        let at = self.now();
        self.0.history.lock().faults.push(Fault { at, kind });
    }

    /// Opens a page for a connection.
    pub fn connection(&self, client: &str, session: SessionId) -> Page {
        let connection = Arc::new(Mutex::new(Connection {
            client: client.to_owned(),
            session,
            lines: Vec::new(),
            end: None,
        }));
        self.0.connections.lock().push(Arc::clone(&connection));
        Page {
            start: self.0.start,
            connection,
        }
    }

    /// Everything written so far, with what the server says in the end; the journal is empty
    /// afterwards, so that a long campaign can be judged in rounds.
    pub fn take(&self, sessions: Vec<SessionLog>) -> History {
        let mut history = std::mem::take(&mut *self.0.history.lock());
        let pages = std::mem::take(&mut *self.0.connections.lock());
        history.connections = pages.iter().map(|page| page.lock().clone()).collect();
        history.sessions = sessions;
        history
    }
}

impl Page {
    /// The client asks for events.
    pub fn subscribed(&self, subscribe: Subscribe) {
        self.connection
            .lock()
            .lines
            .push(Line::Subscribed(subscribe));
    }

    /// The server sent a frame.
    pub fn received(&self, text: &str) {
        let frame = Frame {
            at: self.start.elapsed(),
            text: text.to_owned(),
        };
        self.connection.lock().lines.push(Line::Received(frame));
    }

    /// The connection is over.
    pub fn ended(&self, how: String) {
        self.connection.lock().end = Some(how);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::Ulid;

    #[test]
    fn taking_empties_the_journal_and_keeps_the_order() {
        let journal = Journal::new();
        let session = SessionId(Ulid(1));
        let first = journal.connection("a", session);
        let second = journal.connection("b", session);
        second.received("2");
        first.received("1");
        first.ended("cut".into());
        journal.fault(FaultKind::Kill);
        journal.request("GET", "/", "", None);
        let history = journal.take(Vec::new());
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
