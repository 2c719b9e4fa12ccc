//! One connection: a cursor, a wake-up, and the rules by which it ends.
//!
//! One task does both directions. It reads frames as they come, writes what is due in as few
//! writes as can be, and looks at the ring again when there is news. A client that cannot keep
//! up is cut; nobody ever waits for it.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use futures_util::{Sink as _, SinkExt as _, Stream as _, StreamExt as _};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use turnwire_event::fold::replay::Missed;
use turnwire_event::{ResponseId, TurnId, metric};
use turnwire_hub::{Closed, Seat};
use turnwire_session::bus::Note;
use turnwire_session::cancel::{self, Requested};
use turnwire_session::{Error, Live, ReplayError};
use turnwire_wire::session::{
    self as wire, ClientFrame, ClientFrameError, Close, SessionSummary, Subscribe, SubscribeError,
};

use super::Streams;
use super::frame;
use super::outbound::Outbound;
use super::pipe::Pipe;
use super::subscription::{Filled, Subscription};

/// How long a closing handshake may take after the close frame is out.
const CLOSING: Duration = Duration::from_secs(2);

/// How long a socket must take nothing to count as blocked: a reader that is busy with a burst
/// takes something every few milliseconds, a frozen one never again.
const BLOCKED: Duration = Duration::from_millis(50);

/// How a connection ends.
enum End {
    /// By the server, with a close frame.
    Close(Close),
    /// By the client, or by the network.
    Gone,
}

/// What woke the task.
enum Step {
    Received(Option<Result<Message, WsError>>),
    Written,
    Failed,
    Look,
}

/// What had been seen before the task went to sleep.
#[derive(Clone, Copy)]
struct Seen {
    ring: Option<u64>,
    phase: u8,
}

/// A connection and everything it holds.
pub(super) struct Connection {
    streams: Arc<Streams>,
    live: Result<Arc<Live>, Error>,
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
    pings: u32,
    nonce: u64,
}

impl Connection {
    pub(super) fn new(
        streams: Arc<Streams>,
        live: Result<Arc<Live>, Error>,
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
            End::Close(close) => self.close(close).await,
            End::Gone if !self.out.is_partial() => {
                // Answers the client's close, if it said one.
                let _ = tokio::time::timeout(CLOSING, self.socket.close(None)).await;
            }
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
                Step::Received(None | Some(Ok(Message::Close(_)))) | Step::Failed => return End::Gone,
                Step::Received(Some(Ok(message))) => {
                    if let Err(close) = self.receive(message).await {
                        return End::Close(close);
                    }
                }
                Step::Received(Some(Err(error))) => return bad_frame(&error),
                Step::Written | Step::Look => {}
            }
        }
    }

    /// Whether one of the rules ends the connection now; also sends a ping that is due.
    fn due_close(&mut self) -> Option<Close> {
        let now = Instant::now();
        let options = &self.streams.options;
        if self.blocked.is_some_and(|since| now >= since + options.write_deadline) {
            return Some(Close::TooSlow);
        }
        if self.streams.phase.is_stopped() {
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
        if blocked && behind + self.out.events() as u64 > options.queue_max && !subscription.is_catching_up() {
            return Some(Close::TooSlow);
        }
        if behind == 0 && self.out.is_empty() {
            if live.ring.is_ended() {
                let deleted = live.ring.closed() == Some(Closed::Deleted);
                return Some(if deleted { Close::SessionDeleted } else { Close::Quarantined });
            }
            if self.streams.phase.is_draining() && live.current_turn().is_none() && live.sequencer.is_settled() {
                return Some(Close::Draining);
            }
        }
        if self.out.is_empty() && now >= self.sent + options.ping {
            if self.pings >= options.ping_misses {
                return Some(Close::PingTimeout);
            }
            self.pings += 1;
            self.nonce += 1;
            let (nonce, at) = (self.nonce.to_string(), subscription.at);
            self.send(|out| wire::ping(&nonce, at, out));
        }
        None
    }

    /// Puts what is due into `out` if it is empty; whether there may be more.
    async fn fill(&mut self) -> Result<bool, Close> {
        if !self.out.is_empty() {
            return Ok(false);
        }
        let (Some(subscription), Ok(live)) = (&mut self.subscription, &self.live) else { return Ok(false) };
        let result = subscription.fill(live, &mut self.out).await;
        let events = self.out.events();
        if events > 0 {
            self.streams.sent.increment(events as u64);
        }
        match result {
            Ok(Filled::Some) => Ok(true),
            Ok(Filled::Nothing) => Ok(false),
            Ok(Filled::Behind) => Err(Close::TooSlow),
            Err(ReplayError::Session(Error::Quarantined)) => {
                live.quarantine();
                Err(Close::Quarantined)
            }
            Err(ReplayError::Session(Error::SessionNotFound)) => Err(Close::SessionDeleted),
            Err(_) => Err(Close::Internal),
        }
    }

    /// How far the ring and the server were when they were last looked at.
    fn seen(&self) -> Seen {
        let ring = match (&self.live, &self.subscription) {
            (Ok(live), Some(_)) if !live.ring.is_ended() => Some(live.ring.end()),
            _ => None,
        };
        Seen { ring, phase: self.streams.phase.now() }
    }

    /// Waits for the next thing to happen.
    async fn step(&mut self, seen: Seen) -> Step {
        let wake = self.wake_at();
        // A deadline that has moved back is not chased: it is looked up when the timer fires.
        if wake < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(wake);
        }
        poll_fn(move |cx| {
            if let Poll::Ready(message) = Pin::new(&mut self.socket).poll_next(cx) {
                return Poll::Ready(Step::Received(message));
            }
            if let Poll::Ready(step) = self.poll_write(cx) {
                return Poll::Ready(step);
            }
            if self.poll_bell(seen, cx).is_ready() || self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Step::Look);
            }
            Poll::Pending
        })
        .await
    }

    /// Ready when the ring or the server has gone on since `seen`.
    fn poll_bell(&self, seen: Seen, cx: &mut Context<'_>) -> Poll<()> {
        let news = match (&self.live, seen.ring) {
            (Ok(live), Some(end)) => live.ring.poll_news(&self.waker, end, cx),
            _ => {
                self.waker.register(cx.waker());
                Poll::Pending
            }
        };
        if self.streams.phase.now() == seen.phase { news } else { Poll::Ready(()) }
    }

    /// When to look at the rules again even if nothing happens.
    fn wake_at(&self) -> Instant {
        let options = &self.streams.options;
        let beat = match &self.subscription {
            None => self.subscribe_by,
            // A turn that ends during a drain is seen by its news; its last commit may not be.
            Some(_) if self.streams.phase.is_draining() => Instant::now() + Duration::from_millis(50),
            Some(_) => self.sent + options.ping,
        };
        let Some(since) = self.blocked else { return beat };
        // No ping is due while something waits to be written.
        if Instant::now() < since + BLOCKED { since + BLOCKED } else { since + options.write_deadline }
    }

    /// Writes what is due. Ready when something changed that the loop should look at.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if self.socket.get_ref().touched && !self.out.is_partial() {
            match Pin::new(&mut self.socket).poll_flush(cx) {
                Poll::Ready(Ok(())) => self.socket.get_mut().touched = false,
                Poll::Ready(Err(_)) => return Poll::Ready(Step::Failed),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.out.is_empty() {
            return Poll::Pending;
        }
        loop {
            let result = self.socket.get_mut().poll_raw(cx, &self.out.slices());
            match result {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Step::Failed),
                Poll::Ready(Ok(n)) => {
                    self.out.advance(n);
                    self.socket.get_mut().held = self.out.is_partial();
                    self.blocked = None;
                    self.sent = Instant::now();
                    if self.out.is_empty() {
                        return Poll::Ready(Step::Written);
                    }
                }
                Poll::Pending => {
                    if self.blocked.is_none() {
                        // The loop must know, to watch the deadline and the queue.
                        self.blocked = Some(Instant::now());
                        return Poll::Ready(Step::Look);
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Queues a frame of the server's own.
    fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut payload = Vec::new();
        write(&mut payload);
        let mut framed = Vec::with_capacity(payload.len() + 10);
        frame::text(&payload, &mut framed);
        self.out.push(Bytes::from(framed), 0);
        self.sent = Instant::now();
    }

    fn warn(&self, reason: &'static str) {
        if let Ok(live) = &self.live {
            live.note(Note::Warning { subscription: self.name.clone(), reason });
        }
    }

    async fn receive(&mut self, message: Message) -> Result<(), Close> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(Close::Binary),
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => return Ok(()),
        };
        match ClientFrame::read(text.as_str()) {
            Ok(ClientFrame::Subscribe(subscribe)) => return self.subscribe(subscribe).await,
            Ok(ClientFrame::Cancel { turn_id, reason }) => self.cancel(&turn_id, reason.as_deref()),
            Ok(ClientFrame::Ping { nonce }) => self.send(|out| wire::pong(&nonce, out)),
            Ok(ClientFrame::Pong { .. }) => self.pings = 0,
            Ok(ClientFrame::Unknown { .. }) | Err(ClientFrameError::Malformed { .. }) => self.warn("unknown_frame"),
            Err(ClientFrameError::Subscribe(error)) => self.refuse(&error),
            Err(ClientFrameError::NotJson) => return Err(Close::NotJson),
        }
        Ok(())
    }

    fn refuse(&mut self, error: &SubscribeError) {
        metrics::counter!(metric::WS_SUBSCRIBE_ERROR_TOTAL, "code" => error.code.name()).increment(1);
        // The client is there and may send a better one: it has its time again.
        self.subscribe_by = Instant::now() + self.streams.options.subscribe_wait;
        self.send(|out| wire::subscribe_error(error, out));
    }

    fn cancel(&self, turn: &str, reason: Option<&str>) {
        let Ok(live) = &self.live else { return };
        let id = turn.parse::<TurnId>().or_else(|_| turn.parse::<ResponseId>().map(TurnId::from));
        let requested = id.map(|id| cancel::request(live, id, "user", reason.unwrap_or("user_cancel")));
        match requested {
            Ok(Requested::At(_)) => {}
            Ok(Requested::Already) => self.warn("redundant_cancel"),
            Ok(Requested::NotRunning) | Err(_) => self.warn("unknown_turn"),
        }
    }

    async fn subscribe(&mut self, subscribe: Subscribe) -> Result<(), Close> {
        let started = Instant::now();
        let live = match &self.live {
            Ok(live) if live.ring.closed() == Some(Closed::Quarantined) => return Err(Close::Quarantined),
            Ok(live) if live.ring.closed().is_none() => live.clone(),
            Err(Error::Quarantined) => return Err(Close::Quarantined),
            Ok(_) | Err(Error::SessionNotFound) => {
                self.refuse(&SubscribeError::session_not_found());
                return Ok(());
            }
            Err(_) => return Err(Close::Internal),
        };
        let mut next = match self.start(&live, &subscribe).await {
            Ok(next) => next,
            Err(Some(error)) => {
                self.refuse(&error);
                return Ok(());
            }
            Err(None) => return Err(Close::Internal),
        };
        next._watcher = match self.subscription.take() {
            Some(before) => before._watcher,
            None => Some(live.watch()),
        };
        self.subscription = Some(next);
        metrics::histogram!(metric::WS_SEAM_MS).record(started.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }

    /// Answers a subscribe and says where it starts. The error is the answer, or nothing to say.
    async fn start(&mut self, live: &Arc<Live>, subscribe: &Subscribe) -> Result<Subscription, Option<SubscribeError>> {
        let Subscribe { filter, since, snapshot } = subscribe;
        if *snapshot {
            let taken = live.snapshot(self.streams.options.snapshot_messages).await.map_err(|_| None)?;
            let summary = SessionSummary::new(&taken.row, taken.current_turn);
            self.send(|out| wire::ack(filter, since.as_ref(), true, 0, out));
            self.send(|out| wire::snapshot(&summary, &taken.messages, taken.at, out));
            return Ok(Subscription::new(filter.clone(), taken.at, taken.cursor, None));
        }
        if let Some(since) = since {
            let at = since.position(live.id)?;
            let max = self.streams.options.replay_max;
            let catch_up = match live.catch_up(at, filter, Missed::Ends, max).await {
                Ok(catch_up) => catch_up,
                Err(ReplayError::Expired) => return Err(Some(SubscribeError::cursor_expired())),
                Err(ReplayError::TooLarge(..)) => return Err(Some(SubscribeError::replay_too_large(max))),
                Err(ReplayError::Session(_)) => return Err(None),
            };
            metrics::counter!(metric::WS_REPLAY_EVENTS_TOTAL).increment(catch_up.count);
            let count = catch_up.count;
            self.send(|out| wire::ack(filter, Some(since), false, count, out));
            return Ok(Subscription::new(filter.clone(), at, catch_up.cursor, Some(catch_up)));
        }
        self.send(|out| wire::ack(filter, None, false, 0, out));
        Ok(match self.subscription.take() {
            // A new filter on a live connection: it goes on where it is.
            Some(mut running) => {
                running.filter = filter.clone();
                running
            }
            None => {
                let (at, cursor) = live.ring.look(|_, tail, cursor| (tail, cursor));
                Subscription::new(filter.clone(), at, cursor, None)
            }
        })
    }

    /// Ends the connection with a close frame, if the socket takes it in time.
    async fn close(&mut self, close: Close) {
        let behind = match (&self.subscription, &self.live) {
            (Some(subscription), Ok(live)) => subscription.behind(live),
            _ => 0,
        };
        if close == Close::TooSlow {
            metrics::counter!(metric::WS_SLOW_CLIENT_CLOSED_TOTAL).increment(1);
            metrics::counter!(metric::WS_FRAME_DROPPED_TOTAL).increment(behind + self.out.events() as u64);
            self.warn("client_too_slow");
        }
        if let Some(watcher) = self.subscription.take().and_then(|subscription| subscription._watcher)
            && close == Close::Draining
        {
            watcher.leave_quietly();
        }
        self.out.cut();
        let deadline = self.streams.options.write_deadline;
        let say_goodbye = async {
            while !self.out.is_empty() {
                if let Step::Failed = poll_fn(|cx| self.poll_write(cx)).await {
                    return;
                }
            }
            let frame = CloseFrame { code: close.code().into(), reason: close.reason_json().into() };
            if self.socket.send(Message::Close(Some(frame))).await.is_err() {
                return;
            }
            // Reading on keeps the kernel from resetting the connection under the client's feet.
            let drained = async { while let Some(Ok(_)) = self.socket.next().await {} };
            let _ = tokio::time::timeout(CLOSING, drained).await;
        };
        let _ = tokio::time::timeout(deadline, say_goodbye).await;
    }
}

/// How a frame that cannot be read ends the connection.
fn bad_frame(error: &WsError) -> End {
    match error {
        WsError::Capacity(CapacityError::MessageTooLong { .. }) => End::Close(Close::TooBig),
        WsError::Utf8(_) => End::Close(Close::NotJson),
        _ => End::Gone,
    }
}
