//! One connection: a cursor, a wake-up, and the rules by which it ends.
//!
//! One task does both directions. It reads frames as they come, writes what is due in as few
//! writes as can be, and looks at the ring again when there is news. A client that cannot keep
//! up is cut; nobody ever waits for it.

mod goodbye;
mod talk;
mod write;

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream as _;
use futures_util::task::AtomicWaker;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use turnwire_event::metric;
use turnwire_hub::{Closed, Seat};
use turnwire_session::BusNotice;
use turnwire_session::{Error, LiveSession, ReplayError};
use turnwire_wire::session::{self as wire, Close};

use super::Streams;
use super::frame;
use super::outbound::Outbound;
use super::pipe::Pipe;
use super::place::Filled;
use super::subscription::Subscription;
use super::workers::Workers;

/// How long a closing handshake may take after the close frame is out.
const CLOSING: Duration = Duration::from_secs(2);

/// How long a socket must take nothing to count as blocked: a reader that is busy with a burst
/// takes something every few milliseconds, a frozen one never again.
pub(super) const BLOCKED: Duration = Duration::from_millis(50);

/// Answers a client may leave unread before its frames are no longer read: TCP then makes it wait,
/// and the write deadline ends it.
const ANSWERS_MAX: usize = 64 << 10;

/// How a connection ends.
enum End {
    /// By the server, with a close frame.
    Close(Close),
    /// By the client, which said so.
    Left,
    /// By the client without a word, or by the network.
    Gone,
}

/// What woke the task.
enum Step {
    Received(Option<Result<Message, WsError>>),
    Failed,
    Look,
}

/// What had been seen before the task went to sleep.
#[derive(Clone, Copy)]
struct Seen {
    ring: Option<u64>,
    /// The rings of workers.
    workers: u64,
    phase: u8,
}

/// A connection and everything it holds.
pub(super) struct Connection {
    streams: Arc<Streams>,
    live: Result<Arc<LiveSession>, Error>,
    socket: WebSocketStream<Pipe>,
    name: String,
    /// Rung by the ring and by the server's phase.
    waker: Arc<AtomicWaker>,
    _seats: (Option<Seat>, Seat),
    subscription: Option<Subscription>,
    out: Outbound,
    timer: Pin<Box<Sleep>>,
    /// When the connection must have subscribed.
    subscribe_by: Instant,
    /// When something was last sent.
    sent: Instant,
    /// Since when the socket takes nothing.
    blocked: Option<Instant>,
    /// Whether the library has read all that the socket had.
    quiet: bool,
    pings: u32,
    nonce: u64,
}

impl Connection {
    pub(super) fn new(
        streams: Arc<Streams>,
        live: Result<Arc<LiveSession>, Error>,
        socket: WebSocketStream<Pipe>,
        name: String,
    ) -> Self {
        let now = Instant::now();
        let subscribe_by = now + streams.options.subscribe_wait;
        let waker = Arc::new(AtomicWaker::new());
        let ring = live.as_ref().ok().map(|live| live.ring.sit(waker.clone()));
        let seats = (ring, streams.phase.sit(waker.clone()));
        Self {
            streams,
            live,
            socket,
            name,
            waker,
            _seats: seats,
            subscription: None,
            out: Outbound::default(),
            timer: Box::pin(sleep_until(subscribe_by)),
            subscribe_by,
            sent: now,
            blocked: None,
            quiet: false,
            pings: 0,
            nonce: 0,
        }
    }

    /// Runs the connection to its end.
    pub(super) async fn run(mut self) {
        let connections = metrics::gauge!(metric::WS_CONNECTIONS);
        connections.increment(1.0);
        let end = self.serve().await;
        match end {
            End::Close(close) => Box::pin(self.close(close)).await,
            End::Left => Box::pin(self.answer_close()).await,
            End::Gone => {}
        }
        connections.decrement(1.0);
    }

    async fn serve(&mut self) -> End {
        loop {
            if let Some(close) = self.due_close() {
                return End::Close(close);
            }
            // Taken before the look at the ring, so that no news is missed in between.
            let seen = self.seen();
            match self.fill().await {
                Ok(true) if self.out.is_empty() => continue,
                Ok(_) => {}
                Err(close) => return End::Close(close),
            }
            match self.step(seen).await {
                Step::Received(Some(Ok(Message::Close(_)))) => return End::Left,
                Step::Received(None) | Step::Failed => return End::Gone,
                Step::Received(Some(Ok(message))) => {
                    if let Err(close) = Box::pin(self.receive(message)).await {
                        return End::Close(close);
                    }
                }
                Step::Received(Some(Err(error))) => return bad_frame(&error),
                Step::Look => {}
            }
        }
    }

    /// Whether one of the rules ends the connection now; also sends a ping that is due.
    fn due_close(&mut self) -> Option<Close> {
        let now = Instant::now();
        let options = &self.streams.options;
        if self
            .blocked
            .is_some_and(|since| now >= since + options.write_deadline)
        {
            return Some(Close::TooSlow);
        }
        // What is due goes out first, the endings of turns among it.
        let told = match (&self.subscription, &self.live) {
            (Some(subscription), Ok(live)) => !subscription.is_behind(live) && self.out.is_empty(),
            _ => true,
        };
        if self.streams.phase.is_stopped() && told {
            return Some(Close::Draining);
        }
        let Some(subscription) = &self.subscription else {
            if self.streams.phase.is_draining() {
                return Some(Close::Draining);
            }
            return (now >= self.subscribe_by).then_some(Close::SubscribeTimeout);
        };
        let Ok(live) = &self.live else { return None };
        let behind = subscription.behind(live);
        // A look first: all connections share this word, and it seldom changes.
        if behind > self.streams.depth.load(Ordering::Relaxed) {
            self.streams.depth.fetch_max(behind, Ordering::Relaxed);
            metrics::gauge!(metric::WS_QUEUE_DEPTH_MAX).set(behind as f64);
        }
        let blocked = self.blocked.is_some_and(|since| now >= since + BLOCKED);
        if blocked
            && behind + self.out.events() as u64 > options.queue_max
            && !subscription.is_catching_up()
        {
            return Some(Close::TooSlow);
        }
        if behind == 0 && self.out.is_empty() {
            if live.ring.is_ended() {
                let deleted = live.ring.closed() == Some(Closed::Deleted);
                return Some(if deleted {
                    Close::SessionDeleted
                } else {
                    Close::Quarantined
                });
            }
            if self.streams.phase.is_draining()
                && live.current_turn().is_none()
                && live.sequencer.is_settled()
            {
                return Some(Close::Draining);
            }
        }
        if self.out.is_empty() && now >= self.sent + options.ping {
            if self.pings >= options.ping_misses {
                return Some(Close::PingTimeout);
            }
            self.pings += 1;
            self.nonce += 1;
            let (nonce, at) = (self.nonce.to_string(), subscription.place.at);
            let positions = subscription.positions(live);
            self.send(|out| wire::ping(&nonce, at, positions.as_ref(), out));
        }
        None
    }

    /// Puts what is due into `out` if it is empty; whether there may be more.
    async fn fill(&mut self) -> Result<bool, Close> {
        if !self.out.is_empty() {
            return Ok(false);
        }
        let (Some(subscription), Ok(live)) = (&mut self.subscription, &self.live) else {
            return Ok(false);
        };
        let result = subscription.fill(live, &mut self.out).await;
        match result {
            Ok(Filled::Some) => Ok(true),
            Ok(Filled::Nothing) => Ok(false),
            Ok(Filled::Behind) => Err(Close::TooSlow),
            Err(ReplayError::Session(Error::Quarantined)) => {
                live.quarantine();
                Err(Close::Quarantined)
            }
            Err(ReplayError::Session(Error::SessionNotFound)) => Err(Close::SessionDeleted),
            // Trimmed while it was told: a new subscribe will be told so.
            Err(ReplayError::Expired) => Err(Close::TooSlow),
            Err(_) => Err(Close::Internal),
        }
    }

    fn workers(&self) -> Option<&Workers> {
        self.subscription.as_ref()?.workers.as_deref()
    }

    /// How far the ring and the server were when they were last looked at.
    fn seen(&self) -> Seen {
        let ring = match (&self.live, &self.subscription) {
            (Ok(live), Some(_)) if !live.ring.is_ended() => Some(live.ring.end()),
            _ => None,
        };
        Seen {
            ring,
            workers: self.workers().map_or(0, |workers| workers.ends()),
            phase: self.streams.phase.now(),
        }
    }

    /// Waits for the next thing to happen.
    async fn step(&mut self, seen: Seen) -> Step {
        let wake = self.wake_at();
        // A deadline that has moved back is not chased: it is looked up when the timer fires.
        if wake < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(wake);
        }
        poll_fn(move |cx| {
            if let Poll::Ready(step) = self.poll_write(cx) {
                return Poll::Ready(step);
            }
            // Not while it leaves the answers to its last frames unread.
            let listens = self.out.answers() < ANSWERS_MAX
                && !(self.socket.get_ref().touched && self.blocked.is_some());
            if listens && let Poll::Ready(message) = self.poll_read(cx) {
                return Poll::Ready(Step::Received(message));
            }
            if self.poll_bell(seen, cx).is_ready() || self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Step::Look);
            }
            Poll::Pending
        })
        .await
    }

    /// The next message. The library is asked only when the socket has something: it has taken
    /// in all there was when it last said so.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, WsError>>> {
        if self.quiet && self.socket.get_ref().poll_readable(cx).is_pending() {
            return Poll::Pending;
        }
        let message = Pin::new(&mut self.socket).poll_next(cx);
        self.quiet = message.is_pending();
        message
    }

    /// Ready when the ring or the server has gone on since `seen`, or when the ring has something
    /// that this connection could take now.
    fn poll_bell(&self, seen: Seen, cx: &mut Context<'_>) -> Poll<()> {
        let due = match &self.subscription {
            Some(subscription) if self.out.is_empty() => match subscription.place.cursor() {
                Some(cursor) => Some(cursor),
                None => return Poll::Ready(()), // more of the past is due
            },
            _ => seen.ring,
        };
        if let (Ok(live), true) = (
            &self.live,
            self.subscription.is_some() && self.out.is_empty(),
        ) && live.ring.is_ended()
        {
            return Poll::Ready(()); // all is told: the rules say how it ends
        }
        let news = match (&self.live, due) {
            (Ok(live), Some(end)) if seen.ring.is_some() => {
                live.ring.poll_news(&self.waker, end, cx)
            }
            _ => {
                self.waker.register(cx.waker());
                Poll::Pending
            }
        };
        // The waker stands at the workers' rings too.
        let workers = self.subscription.as_ref().is_some_and(|subscription| {
            let (Some(workers), Ok(live)) = (&subscription.workers, &self.live) else {
                return false;
            };
            let more = self.out.is_empty() && workers.has_more(live, subscription.place.at);
            more || workers.ends() != seen.workers
        });
        if self.streams.phase.now() == seen.phase && !workers {
            news
        } else {
            Poll::Ready(())
        }
    }

    /// When to look at the rules again even if nothing happens.
    fn wake_at(&self) -> Instant {
        let options = &self.streams.options;
        let beat = match &self.subscription {
            None => self.subscribe_by,
            // A turn that ends during a drain is seen by its news; its last commit may not be.
            Some(_) if self.streams.phase.is_draining() => {
                Instant::now() + Duration::from_millis(50)
            }
            Some(subscription) => {
                let ping = self.sent + options.ping;
                subscription.look_at().map_or(ping, |at| at.min(ping))
            }
        };
        let Some(since) = self.blocked else {
            return beat;
        };
        // No ping is due while something waits to be written.
        if Instant::now() < since + BLOCKED {
            since + BLOCKED
        } else {
            since + options.write_deadline
        }
    }

    fn warn(&self, reason: &'static str) {
        if let Ok(live) = &self.live {
            live.emit_notice(BusNotice::Warning {
                subscription: self.name.clone(),
                reason,
            });
        }
    }
}

/// How a frame that cannot be read ends the connection.
fn bad_frame(error: &WsError) -> End {
    match error {
        WsError::Capacity(CapacityError::MessageTooLong { .. }) => End::Close(Close::TooBig),
        WsError::Utf8(_) => End::Close(Close::NotJson),
        WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => End::Gone,
        WsError::Protocol(_) => End::Close(Close::Protocol),
        _ => End::Gone,
    }
}
