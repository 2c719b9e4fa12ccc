//! Following a session for ever: attach, subscribe, and come back after any loss.
//!
//! ```text
//!   attach ─▶ subscribe{since} ─▶ ack ─▶ events … ─▶ lost ─▶ wait ─▶ attach (new token)
//!                 │                        since = the last id, or the ping's position
//!                 └─ cursor_expired, replay_too_large ─▶ subscribe{snapshot: true}
//! ```
//! The watch ends when the session is deleted, or with an error that coming back cannot mend.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_event::{Position, SessionId};
use turnwire_wire::problem::Code;
use turnwire_wire::session::{Close, Reconnect};

use crate::api::Client;
use crate::backoff::Backoff;
use crate::error::Error;
use crate::frame::{Frame, Received, Snapshot};
use crate::socket::{End, Socket};

/// Three pings of the server's thirty seconds, and a little: after that nobody is there.
const SILENCE_MAX: Duration = Duration::from_secs(100);

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
        Watch {
            client: self.clone(),
            session,
            filter,
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
            Frame::Ack(replay_event_count) => {
                self.met = true;
                self.backoff.reset();
                Ok(Some(Item::Connected { replay_event_count }))
            }
            Frame::Refused { code, message } => self.refused(code, message).await,
            Frame::Snapshot(snapshot) => {
                self.next = Start::After(snapshot.at);
                Ok(Some(Item::Snapshot(snapshot)))
            }
            Frame::Event(event) => {
                self.seen(event.session_id, event.id);
                Ok(Some(Item::Event(event)))
            }
            Frame::Passed(session, at) => {
                self.seen(session, at);
                Ok(None)
            }
            Frame::Ping { nonce, position } => {
                if let Some(at) = position {
                    self.seen(self.session, at);
                }
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
            Start::Live => (None, false),
            Start::After(at) => (Some(at), false),
            Start::Snapshot => (None, true),
        };
        let frame = json!({
            "type": "subscribe", "filter": self.filter, "since": since, "snapshot": snapshot
        });
        self.send(&frame).await
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
                self.subscribe().await
            }
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
        let further = self.position().is_none_or(|last| last < at);
        if session == self.session && further {
            self.next = Start::After(at);
        }
    }
}
