//! One connection of the session wire: its subscription, and the rules that the wire adds to the
//! carrier's: a time to subscribe, pings with a position, an end of its own for drained servers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use turnwire_event::body::bus::HandlerWarning;
use turnwire_event::metric;
use turnwire_identity::Caller;
use turnwire_session::{BusNotice, Error, LiveSession};
use turnwire_wire::session::{self as wire, SessionCloseReason};

use super::super::Streams;
use super::super::carrier::websocket::{WebSocket, header};
use super::super::carrier::{Backlog, Carrier, CloseReason, EventCount, Fill, Limits, Wire};
use super::super::phase::{ServerPhase, Shutdown};
use super::delivery::TurnDeliveries;
use super::format::EventWrites;
use super::subscription::Subscription;
use crate::access::live_identity::LiveIdentity;

/// How often a draining server checks whether the last commit of a turn is done: the ring has no
/// event for it.
const DRAIN_CHECK: Duration = Duration::from_millis(50);

/// The [`Wire`] of one connection of the session wire.
pub(super) struct SessionStream {
    pub(super) streams: Arc<Streams>,
    /// The session, or the reason for which a subscribe is refused.
    pub(super) live: Result<Arc<LiveSession>, Error>,
    /// The connection's name in the log.
    pub(super) name: String,
    pub(super) waker: Arc<AtomicWaker>,
    /// How long the client is who it is; `None` if that does not end.
    pub(super) identity: Option<Arc<LiveIdentity>>,
    pub(super) subscription: Option<Subscription>,
    pub(super) subscribe_deadline: Instant,
    pub(super) unanswered_pings: u32,
    /// The nonce of the last ping.
    pub(super) last_nonce: u64,
    /// The spans of the turns that the connection delivers.
    pub(super) deliveries: TurnDeliveries,
}

impl SessionStream {
    pub(super) fn new(
        streams: Arc<Streams>,
        (live, caller): (Result<Arc<LiveSession>, Error>, &Caller),
        name: String,
    ) -> Self {
        let waker = Arc::new(AtomicWaker::new());
        Self {
            identity: streams.identities.register(caller, waker.clone()),
            subscribe_deadline: subscribe_deadline(&streams),
            deliveries: TurnDeliveries::new(streams.tracer.clone()),
            streams,
            live,
            name,
            waker,
            subscription: None,
            unanswered_pings: 0,
            last_nonce: 0,
        }
    }

    /// The [`Carrier`] of the connection on its socket.
    pub(super) fn carrier(self, socket: WebSocket<TcpStream>) -> Carrier<Self> {
        let waker = self.waker.clone();
        let live = self.live.as_ref().ok();
        let ring_guard = live.map(|live| live.ring.register(waker.clone()));
        Carrier::new(self, socket, EventWrites::new(), waker, ring_guard)
    }

    /// The [`Subscription`] and its session, once the client has subscribed.
    fn subscribed(&self) -> Option<(&Subscription, &Arc<LiveSession>)> {
        self.subscription.as_ref().zip(self.live.as_ref().ok())
    }

    fn is_draining(&self) -> bool {
        self.streams.phase.shutdown() != Shutdown::None
    }

    pub(super) fn warn(&self, reason: &'static str) {
        if let Ok(live) = &self.live {
            live.emit_notice(BusNotice::Warning {
                subscription: self.name.clone(),
                reason,
            });
        }
    }
}

/// When a client that connects now, or whose subscribe was refused, must have subscribed.
pub(super) fn subscribe_deadline(streams: &Streams) -> Instant {
    Instant::now() + Duration::from_millis(streams.settings.subscribe_wait_ms)
}

/// Queues a frame of the server's own.
pub(super) fn send(pending: &mut EventWrites, write: impl FnOnce(&mut Vec<u8>)) {
    let mut payload = Vec::new();
    write(&mut payload);
    let mut frame = Vec::with_capacity(payload.len() + 10);
    header::text(&payload, &mut frame);
    pending.push_control(Bytes::from(frame));
}

impl Wire for SessionStream {
    type Framing = WebSocket<TcpStream>;
    type Tally = EventCount;
    const OPEN_CONNECTIONS: &'static str = metric::WS_CONNECTIONS;

    fn phase(&self) -> &ServerPhase {
        &self.streams.phase
    }

    fn identity(&self) -> Option<&LiveIdentity> {
        self.identity.as_deref()
    }

    fn limits(&self) -> Limits {
        Limits::new(&self.streams.settings)
    }

    fn backlog(&self) -> Backlog {
        let subscribed = self.subscribed();
        subscribed.map_or_else(Backlog::default, |(subscription, live)| {
            subscription.backlog(live)
        })
    }

    fn passing_lag(&mut self, backlog: Backlog) -> u64 {
        match (&mut self.subscription, &self.live) {
            (Some(subscription), Ok(live)) => subscription.passing_lag(live),
            _ => backlog.lag,
        }
    }

    async fn fill(&mut self, pending: &mut EventWrites) -> Result<bool, CloseReason> {
        let (Some(subscription), Ok(live)) = (&mut self.subscription, &self.live) else {
            return Ok(false);
        };
        let filled = subscription.fill(live, pending).await;
        if pending.is_empty() {
            subscription.record_live(live);
        }
        match filled {
            Ok(Fill::Progress) => Ok(true),
            Ok(Fill::Idle) => Ok(false),
            Ok(Fill::Overrun) => Err(CloseReason::TooSlow),
            Ok(Fill::TooLarge(_)) => Err(CloseReason::FrameTooLarge),
            Err(error) => Err(CloseReason::of_replay(&error, live)),
        }
    }

    fn early_close(&self, now: Instant) -> Option<CloseReason> {
        if self.subscription.is_some() {
            return None;
        }
        if self.is_draining() {
            return Some(CloseReason::Draining);
        }
        let is_late = now >= self.subscribe_deadline;
        is_late.then_some(CloseReason::Rejected(SessionCloseReason::SubscribeTimeout))
    }

    fn idle_close(&self) -> Option<CloseReason> {
        let (_, live) = self.subscribed()?;
        let is_settled = || live.current_turn().is_none() && live.sequencer.is_settled();
        CloseReason::of_ring(live).or_else(|| {
            let has_drained = self.is_draining() && is_settled();
            has_drained.then_some(CloseReason::Draining)
        })
    }

    fn heartbeat_interval(&self) -> Option<Duration> {
        let ping = || Duration::from_millis(self.streams.settings.ping_ms);
        self.subscription.is_some().then(ping)
    }

    fn heartbeat(&mut self, pending: &mut EventWrites) -> Result<(), CloseReason> {
        let Some((subscription, live)) = self.subscribed() else {
            return Ok(());
        };
        if self.unanswered_pings >= self.streams.settings.ping_misses {
            return Err(CloseReason::Rejected(SessionCloseReason::PingTimeout));
        }
        let (at, positions) = (subscription.cursor.at, subscription.positions(live));
        self.unanswered_pings += 1;
        self.last_nonce += 1;
        let nonce = self.last_nonce.to_string();
        send(pending, |out| {
            wire::write_ping(&nonce, at, positions.as_ref(), out);
        });
        Ok(())
    }

    fn next_check(&self) -> Option<Instant> {
        match &self.subscription {
            None => Some(self.subscribe_deadline),
            Some(_) if self.is_draining() => Some(Instant::now() + DRAIN_CHECK),
            Some(subscription) => subscription.next_lookup(),
        }
    }

    async fn receive(
        &mut self,
        message: Message,
        pending: &mut EventWrites,
    ) -> Result<(), CloseReason> {
        let handled = self.handle(message, pending).await;
        handled.map_err(CloseReason::Rejected)
    }

    fn record_lag(&mut self, backlog: Backlog) {
        // A look first: all connections share this word, and it seldom changes.
        if backlog.lag <= self.streams.lag_max.load(Ordering::Relaxed) {
            return;
        }
        let lag = self.passing_lag(backlog);
        if self.streams.lag_max.fetch_max(lag, Ordering::Relaxed) < lag {
            metrics::gauge!(metric::WS_QUEUE_DEPTH_MAX).set(lag as f64);
        }
    }

    fn record_drained(&mut self) {
        if let (Some(subscription), Ok(live)) = (&mut self.subscription, &self.live) {
            subscription.record_live(live);
            // What the ring still has for the client may be the end of the turn.
            if self.deliveries.is_open() && subscription.backlog(live).lag == 0 {
                self.deliveries.record_drained(live);
            }
        }
    }

    fn record_sent(&mut self, tally: &EventCount) {
        if tally.0 > 0 {
            self.streams.events_sent.increment(tally.0 as u64);
            if let Ok(live) = &self.live {
                self.deliveries.record_sent(live, tally.0 as u64);
            }
        }
    }

    fn closing(&mut self, reason: CloseReason, pending: &mut EventWrites) {
        self.deliveries.close(reason.label());
        // A client that closed the connection itself stays a watcher until it is answered.
        if matches!(reason, CloseReason::PeerClosed | CloseReason::PeerGone) {
            return;
        }
        if matches!(reason, CloseReason::TooSlow | CloseReason::CursorExpired) {
            metrics::counter!(metric::WS_SLOW_CLIENT_CLOSED_TOTAL).increment(1);
            metrics::counter!(metric::WS_FRAME_DROPPED_TOTAL).increment(pending.frames);
            if let (Some(subscription), Ok(live)) = (&mut self.subscription, &self.live) {
                subscription.record_dropped(live, &self.streams.tasks);
            }
            self.warn(HandlerWarning::CLIENT_TOO_SLOW);
        }
        let subscription = self.subscription.take();
        if let Some(watcher) = subscription.and_then(|subscription| subscription.watcher)
            && reason.leaves_quietly()
        {
            watcher.leave_quietly();
        }
    }
}
