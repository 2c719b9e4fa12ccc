//! Following a session for ever: attach, subscribe, and come back after any loss.
//!
//! ```text
//!   attach ─▶ subscribe{since} ─▶ ack ─▶ events … ─▶ lost ─▶ wait ─▶ attach (new token)
//!                 │                        since = the last id, or the ping's position
//!                 └─ cursor_expired, replay_too_large ─▶ subscribe{snapshot: true}
//! ```
//! Where workers come along, a cursor is kept for each of them, from its start to its end.
//! The watch ends when the session is deleted, or with an error that coming back cannot mend.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_event::{Epoch, EventType, Position, Seq, SessionId};
use turnwire_wire::problem::Code;
use turnwire_wire::session::{Close, Positions, Reconnect, SINCE_SESSIONS_MAX};

use crate::api::Client;
use crate::backoff::Backoff;
use crate::error::Error;
use crate::frame::{Frame, Received, Snapshot};
use crate::socket::{End, Socket};

/// Three pings of the server's thirty seconds, and a little: after that nobody is there.
const SILENCE_MAX: Duration = Duration::from_secs(100);

/// The cursor before a worker's first event.
const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With what happens from now on.
    Live,
    /// With everything after a position.
    After(Position),
    /// With the session's state, then everything after it.
    Snapshot,
}

/// What a watch gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// The subscription stands.
    Connected {
        /// How many persisted events are replayed.
        replay_event_count: u64,
    },
    /// The session's state; what was known before is to be thrown away.
    Snapshot(Box<Snapshot>),
    /// An event.
    Event(Received),
    /// The connection is gone; the watch comes back by itself.
    Lost {
        /// Why, in words.
        why: String,
        /// After how long it tries again.
        retry_in: Duration,
    },
}

/// A session, followed.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    session: SessionId,
    filter: Value,
    /// What the next subscribe asks for; moves with every event.
    next: Start,
    /// Where its workers stand, if they come along.
    workers: Option<Positions>,
    socket: Option<Socket>,
    retry_at: Option<Instant>,
    backoff: Backoff,
    /// Whether a subscription ever stood: then a session that is not found was deleted.
    met: bool,
    over: bool,
}

impl Client {
    /// Follows a session for ever. `filter` is `"preset:chat"`, `"preset:full"`, or a filter
    /// object as the session wire takes it.
    pub fn watch(&self, session: SessionId, filter: Value, start: Start) -> Watch {
        let workers = filter["include_worker_sessions"] == true;
        Watch {
            client: self.clone(),
            session,
            filter,
            workers: workers.then(Positions::new),
            next: start,
            socket: None,
            retry_at: None,
            backoff: Backoff::default(),
            met: false,
            over: false,
        }
    }
}

impl Watch {
    /// The position up to which everything was seen, if one is known.
    pub fn position(&self) -> Option<Position> {
        match self.next {
            Start::After(at) => Some(at),
            Start::Live | Start::Snapshot => None,
        }
    }

    /// The next item; none once the session was deleted. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Item>, Error> {
        while !self.over {
            if let Some(item) = self.step().await? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    async fn step(&mut self) -> Result<Option<Item>, Error> {
        let Some(socket) = &mut self.socket else {
            return self.connect().await;
        };
        let frame = match tokio::time::timeout(SILENCE_MAX, socket.next()).await {
            Ok(Ok(frame)) => Frame::read(&frame)?,
            Ok(Err(end)) => return self.ended(end),
            Err(_) => return Ok(Some(self.lost(Error::Silence(SILENCE_MAX).to_string()))),
        };
        match frame {
            Frame::Ack {
                replay_event_count,
                positions,
            } => {
                self.met = true;
                self.backoff.reset();
                self.stand(positions);
                Ok(Some(Item::Connected { replay_event_count }))
            }
            Frame::Refused { code, message } => self.refused(code, message).await,
            Frame::Snapshot(snapshot) => {
                self.next = Start::After(snapshot.at);
                Ok(Some(Item::Snapshot(snapshot)))
            }
            Frame::Event(event) => {
                self.seen(event.session_id, event.id);
                self.heed(&event);
                Ok(Some(Item::Event(event)))
            }
            Frame::Passed(session, at) => {
                self.seen(session, at);
                Ok(None)
            }
            Frame::Ping {
                nonce,
                position,
                positions,
            } => {
                if let Some(at) = position {
                    self.seen(self.session, at);
                }
                self.stand(positions);
                self.send(&json!({"type": "pong", "nonce": nonce})).await
            }
            Frame::Other => Ok(None),
        }
    }

    /// Waits for the time to try, then attaches and subscribes.
    async fn connect(&mut self) -> Result<Option<Item>, Error> {
        if let Some(at) = self.retry_at {
            tokio::time::sleep_until(at).await;
        }
        match self.open().await {
            Ok(socket) => {
                self.socket = Some(socket);
                self.subscribe().await
            }
            Err(error) if self.met && error.code() == Some(Code::SessionNotFound) => {
                self.over = true;
                Ok(None)
            }
            // A token that came too late or was lost with its socket: the next one is new.
            Err(error) if error.is_passing() || error.code() == Some(Code::Unauthorized) => {
                Ok(Some(self.lost(error.to_string())))
            }
            Err(error) => self.failed(error),
        }
    }

    async fn open(&self) -> Result<Socket, Error> {
        let attached = self.client.attach(self.session).await?;
        Socket::open(self.client.http(), self.session, &attached.attach_token).await
    }

    async fn subscribe(&mut self) -> Result<Option<Item>, Error> {
        let (since, snapshot) = match self.next {
            Start::Live => (Value::Null, false),
            Start::After(at) => (self.since(at), false),
            Start::Snapshot => (Value::Null, true),
        };
        let frame = json!({
            "type": "subscribe", "filter": self.filter, "since": since, "snapshot": snapshot
        });
        self.send(&frame).await
    }

    /// The cursor: one id, or one for each session.
    fn since(&self, at: Position) -> Value {
        match &self.workers {
            Some(workers) if !workers.is_empty() => {
                let mut all = workers.clone();
                all.insert(self.session, at);
                json!(all)
            }
            _ => json!(at),
        }
    }

    async fn send(&mut self, frame: &Value) -> Result<Option<Item>, Error> {
        let sent = match &mut self.socket {
            Some(socket) => socket.send(frame).await,
            None => Ok(()),
        };
        match sent {
            Ok(()) => Ok(None),
            Err(end) => self.ended(end),
        }
    }

    async fn refused(&mut self, code: String, message: String) -> Result<Option<Item>, Error> {
        match code.as_str() {
            // The socket stays open for a better subscribe.
            "cursor_expired" | "replay_too_large" if self.next != Start::Snapshot => {
                self.next = Start::Snapshot;
                self.forget_workers();
                self.subscribe().await
            }
            // A worker that nobody knows any more: the session itself can go on.
            "invalid_filter" if self.forget_workers() => self.subscribe().await,
            "session_not_found" => {
                self.over = true;
                Ok(None)
            }
            _ => self.failed(Error::Subscribe { code, message }),
        }
    }

    fn ended(&mut self, end: End) -> Result<Option<Item>, Error> {
        match end {
            End::Closed(Close::SessionDeleted) => {
                self.over = true;
                Ok(None)
            }
            End::Closed(close) => match close.reconnect() {
                Reconnect::Resume => Ok(Some(self.lost(close.message().to_owned()))),
                Reconnect::Mend | Reconnect::Never => self.failed(Error::Closed(close)),
            },
            End::Unknown(why) | End::Broken(why) => Ok(Some(self.lost(why))),
        }
    }

    fn failed(&mut self, error: Error) -> Result<Option<Item>, Error> {
        self.over = true;
        self.socket = None;
        Err(error)
    }

    fn lost(&mut self, why: String) -> Item {
        let retry_in = self.backoff.next();
        self.socket = None;
        self.retry_at = Some(Instant::now() + retry_in);
        Item::Lost { why, retry_in }
    }

    /// Moves the cursor. Events of worker sessions stand in an order of their own.
    fn seen(&mut self, session: SessionId, at: Position) {
        if session != self.session {
            if let Some(workers) = &mut self.workers {
                let known = workers.entry(session).or_insert(at);
                *known = at.max(*known);
                // Ids rise with time: the oldest is the likeliest to have ended unseen.
                if workers.len() >= SINCE_SESSIONS_MAX {
                    workers.pop_first();
                }
            }
            return;
        }
        if self.position().is_none_or(|last| last < at) {
            self.next = Start::After(at);
        }
    }

    /// Keeps a cursor from a worker's start to its end.
    fn heed(&mut self, event: &Received) {
        let Some(workers) = &mut self.workers else {
            return;
        };
        let word = match event.kind {
            EventType::DelegateStarted
            | EventType::DelegateCompleted
            | EventType::DelegateFailed => event.worker(),
            _ => return,
        };
        let Some(id) = word else { return };
        if event.kind == EventType::DelegateStarted {
            workers.entry(id).or_insert(START);
        } else {
            workers.remove(&id);
        }
    }

    /// The server says where every session stands, and so which workers there are.
    fn stand(&mut self, positions: Option<Positions>) {
        let (Some(mut positions), true) = (positions, self.workers.is_some()) else {
            return;
        };
        // Not before the snapshot itself is here.
        if let (Some(at), true) = (
            positions.remove(&self.session),
            self.next != Start::Snapshot,
        ) {
            self.seen(self.session, at);
        }
        self.workers = Some(positions);
    }

    /// Forgets where workers stand; whether any were known.
    fn forget_workers(&mut self) -> bool {
        let workers = self.workers.as_mut().map(std::mem::take);
        workers.is_some_and(|workers| !workers.is_empty())
    }
}
