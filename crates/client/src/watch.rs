//! Follows a session without end: attach, subscribe, and reconnect after any loss.
//!
//! ```text
//!   attach ─▶ subscribe{since} ─▶ ack ─▶ events … ─▶ lost ─▶ wait ─▶ attach (new token)
//!                 │                        since = the last id, or the ping's position
//!                 └─ cursor_expired, replay_too_large ─▶ subscribe{snapshot: true}
//! ```
//! If the filter includes workers, the watch keeps a cursor per worker, from its start to its end.
//! A watch ends when the session is deleted, or with an error that a reconnect does not resolve.

mod backoff;

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_event::{Epoch, EventType, Position, Seq, SessionId};
use turnwire_wire::problem::Code;
use turnwire_wire::session::{
    ReconnectAdvice, SINCE_SESSIONS_MAX, SessionCloseReason, SessionPositions,
};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::frame::{ReceivedEvent, ServerFrame, SnapshotFrame};
use crate::socket::{SessionSocket, SocketEnd};

use backoff::ReconnectBackoff;

/// More than three heartbeat intervals of 30 s: after this time the connection is lost.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(100);

/// The cursor before the first event of a worker.
const WORKER_START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// The item for the caller, if a step of [`SessionWatch`] produces one.
type Step = Result<Option<WatchItem>>;

/// The first item of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// Only events that happen from now on.
    Live,
    /// All events after a position.
    After(Position),
    /// The state of the session, then all events after it.
    Snapshot,
}

/// An item of a [`SessionWatch`].
#[derive(Clone, Debug, PartialEq)]
pub enum WatchItem {
    /// The server accepted the subscription.
    Connected {
        /// The number of persisted events that are replayed before new ones.
        replay_event_count: u64,
    },
    /// The state of the session; it replaces all state from earlier items.
    Snapshot(Box<SnapshotFrame>),
    /// The next event of the session or of a worker.
    Event(ReceivedEvent),
    /// The connection is lost; the watch reconnects by itself.
    Lost {
        /// A sentence for people.
        reason: String,
        /// The delay before the reconnect.
        retry_in: Duration,
    },
}

/// A subscription to a session that reconnects; from [`Client::watch`].
#[derive(Debug)]
pub struct SessionWatch {
    client: Client,
    session: SessionId,
    filter: Value,
    /// The [`WatchStart`] of the next subscription; moves with every event.
    next: WatchStart,
    /// The cursors of the workers, or `None` if the filter does not include workers.
    workers: Option<SessionPositions>,
    socket: Option<SessionSocket>,
    retry_at: Option<Instant>,
    backoff: ReconnectBackoff,
    /// True once a subscription was accepted: from then on, a session that is not found was
    /// deleted.
    was_connected: bool,
    is_finished: bool,
}

impl Client {
    /// Follows a session without end. `filter` is `"preset:chat"`, `"preset:full"`, or a filter
    /// object of the session wire.
    pub fn watch(&self, session: SessionId, filter: Value, start: WatchStart) -> SessionWatch {
        let workers = filter["include_worker_sessions"] == true;
        SessionWatch {
            client: self.clone(),
            session,
            filter,
            workers: workers.then(SessionPositions::new),
            next: start,
            socket: None,
            retry_at: None,
            backoff: ReconnectBackoff::default(),
            was_connected: false,
            is_finished: false,
        }
    }
}

impl SessionWatch {
    /// The position up to which all events were received, or `None` before the first one.
    pub fn position(&self) -> Option<Position> {
        match self.next {
            WatchStart::After(at) => Some(at),
            WatchStart::Live | WatchStart::Snapshot => None,
        }
    }

    /// The next item, or `None` once the session is deleted. Cancel safe: dropping the future loses
    /// no item.
    pub async fn next(&mut self) -> Result<Option<WatchItem>> {
        while !self.is_finished {
            if let Some(item) = self.step().await? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Connects, or handles one frame. Returns `None` if there is no item for the caller.
    async fn step(&mut self) -> Step {
        let Some(socket) = &mut self.socket else {
            return self.connect().await;
        };
        let bytes = match tokio::time::timeout(SILENCE_TIMEOUT, socket.next()).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(end)) => return self.handle_socket_end(end),
            Err(_) => return self.reconnect_later(&Error::Timeout(SILENCE_TIMEOUT)),
        };
        // What an unreadable frame holds is lost: to go on after it would be a gap that nobody sees.
        let frame = match ServerFrame::read(&bytes) {
            Ok(frame) => frame,
            Err(error) => return self.fail(error),
        };
        match frame.kind.as_str() {
            "subscribe_ack" => {
                self.was_connected = true;
                self.backoff.reset();
                self.take_positions(frame.positions);
                let replay_event_count = frame.replay_event_count;
                Ok(Some(WatchItem::Connected { replay_event_count }))
            }
            "subscribe_error" => self.handle_rejection(frame.code, frame.message).await,
            "snapshot" => {
                let snapshot = match frame.snapshot(&bytes) {
                    Ok(snapshot) => snapshot,
                    Err(error) => return self.fail(error),
                };
                self.next = WatchStart::After(snapshot.position);
                Ok(Some(WatchItem::Snapshot(Box::new(snapshot))))
            }
            "event" => {
                let (session, at, event) = match frame.event(&bytes) {
                    Ok(read) => read,
                    Err(error) => return self.fail(error),
                };
                self.advance(session, at);
                Ok(event.map(|event| {
                    self.track_worker(&event);
                    WatchItem::Event(event)
                }))
            }
            "ping" => {
                if let Some(at) = frame.position {
                    self.advance(self.session, at);
                }
                self.take_positions(frame.positions);
                let pong = json!({"type": "pong", "nonce": frame.nonce});
                self.send(&pong).await
            }
            _ => Ok(None),
        }
    }

    /// Waits until the retry is due, then attaches and subscribes.
    async fn connect(&mut self) -> Step {
        if let Some(at) = self.retry_at {
            tokio::time::sleep_until(at).await;
        }
        match self.open().await {
            Ok(socket) => {
                self.socket = Some(socket);
                self.subscribe().await
            }
            Err(error) if self.was_connected && error.code() == Some(Code::SessionNotFound) => {
                self.finish()
            }
            Err(error) if error.is_transient() => self.reconnect_later(&error),
            Err(error) => self.fail(error),
        }
    }

    async fn open(&self) -> Result<SessionSocket> {
        let attached = self.client.attach(self.session).await?;
        let token = attached.attach_token;
        let path = format!("/sessions/{}/stream?attach={token}", self.session);
        let socket = SessionSocket::open(&self.client.http, &path).await;
        socket.map_err(|error| match error.code() {
            // The attach token expired or was lost with its socket: the next attach has a new one.
            // The token of the client was accepted just now; if it has ended, attaching says so.
            Some(Code::Unauthorized) => Error::Connection(error.to_string()),
            _ => error,
        })
    }

    async fn subscribe(&mut self) -> Step {
        let (since, snapshot) = match self.next {
            WatchStart::Live => (Value::Null, false),
            WatchStart::After(at) => (self.since(at), false),
            WatchStart::Snapshot => (Value::Null, true),
        };
        let frame = json!({
            "type": "subscribe", "filter": self.filter, "since": since, "snapshot": snapshot
        });
        self.send(&frame).await
    }

    /// The `since` of a subscription: one id, or one id per session.
    fn since(&self, at: Position) -> Value {
        match &self.workers {
            Some(workers) if !workers.is_empty() => {
                let mut positions = workers.clone();
                positions.insert(self.session, at);
                json!(positions)
            }
            _ => json!(at),
        }
    }

    async fn send(&mut self, frame: &Value) -> Step {
        let Some(socket) = &mut self.socket else {
            return Ok(None);
        };
        match socket.send(frame).await {
            Ok(()) => Ok(None),
            Err(end) => self.handle_socket_end(end),
        }
    }

    async fn handle_rejection(&mut self, code: String, message: String) -> Step {
        match code.as_str() {
            // The socket stays open for another subscription.
            "cursor_expired" | "replay_too_large" if self.next != WatchStart::Snapshot => {
                self.next = WatchStart::Snapshot;
                self.forget_workers();
                self.subscribe().await
            }
            // The server does not know a worker any more; the session itself continues.
            "invalid_filter" if self.forget_workers() => self.subscribe().await,
            "session_not_found" => self.finish(),
            _ => self.fail(Error::SubscribeRejected { code, message }),
        }
    }

    fn handle_socket_end(&mut self, end: SocketEnd) -> Step {
        match end {
            SocketEnd::Closed(SessionCloseReason::SessionDeleted) => self.finish(),
            SocketEnd::Closed(close) => match close.reconnect() {
                ReconnectAdvice::Resume => self.reconnect_later(&close.message()),
                ReconnectAdvice::FixFirst | ReconnectAdvice::Never => {
                    self.fail(Error::Closed(close))
                }
            },
            SocketEnd::Broken(reason) => self.reconnect_later(&reason),
        }
    }

    /// Ends the watch of a session that was deleted.
    fn finish(&mut self) -> Step {
        self.is_finished = true;
        Ok(None)
    }

    fn fail(&mut self, error: Error) -> Step {
        self.is_finished = true;
        self.socket = None;
        Err(error)
    }

    fn reconnect_later(&mut self, reason: &dyn Display) -> Step {
        let retry_in = self.backoff.next();
        self.socket = None;
        self.retry_at = Some(Instant::now() + retry_in);
        let reason = reason.to_string();
        Ok(Some(WatchItem::Lost { reason, retry_in }))
    }

    /// Advances the cursor of a session. Every worker session has its own order.
    fn advance(&mut self, session: SessionId, at: Position) {
        if session != self.session {
            if let Some(workers) = &mut self.workers {
                let cursor = workers.entry(session).or_insert(at);
                *cursor = at.max(*cursor);
                // Ids grow with time: the oldest worker is the most likely to have ended unnoticed.
                if workers.len() >= SINCE_SESSIONS_MAX {
                    workers.pop_first();
                }
            }
            return;
        }
        if self.position().is_none_or(|last| last < at) {
            self.next = WatchStart::After(at);
        }
    }

    /// Starts and ends the cursor of a worker.
    fn track_worker(&mut self, event: &ReceivedEvent) {
        let has_started = match event.kind {
            EventType::DelegateStarted => true,
            EventType::DelegateCompleted | EventType::DelegateFailed => false,
            _ => return,
        };
        let (Some(workers), Some(id)) = (&mut self.workers, event.worker()) else {
            return;
        };
        if has_started {
            workers.entry(id).or_insert(WORKER_START);
        } else {
            workers.remove(&id);
        }
    }

    /// Takes over the positions that the server reports, and with them the set of workers.
    fn take_positions(&mut self, positions: Option<SessionPositions>) {
        let (Some(mut positions), true) = (positions, self.workers.is_some()) else {
            return;
        };
        let own = positions.remove(&self.session);
        // Before the snapshot has arrived, the position of the session must not move.
        if let Some(at) = own.filter(|_| self.next != WatchStart::Snapshot) {
            self.advance(self.session, at);
        }
        self.workers = Some(positions);
    }

    /// Removes the cursors of all workers. Returns true if there were any.
    fn forget_workers(&mut self) -> bool {
        let workers = self.workers.as_mut().map(std::mem::take);
        workers.is_some_and(|workers| !workers.is_empty())
    }
}
