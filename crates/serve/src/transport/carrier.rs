//! One loop for every stream: the [`Carrier`] takes frames from a [`Wire`], writes them through a
//! [`Framing`], and applies the rules by which a connection ends.
//!
//! ```text
//!   store, ring ─▶ SessionCursor ─▶ FrameFormat, Selection ─▶ PendingWrites ─▶ Framing ─▶ socket
//!                                   (projection of `wire`)    Carrier: lag bound, write deadline,
//!                                                             heartbeat, drain, close, counters
//! ```
//!
//! A connection has no queue of its own: it is a [`SessionCursor`] and at most one run of pending
//! frames. A client that does not keep up is closed and delays no other.

pub(crate) mod close;
pub(crate) mod pending;
pub(crate) mod framing;
pub(crate) mod event_stream;
pub(crate) mod websocket;
pub(crate) mod cursor;
pub(crate) mod wire;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use turnwire_hub::WakerGuard;

use super::phase::Shutdown;
use framing::{ByteStream as _, FinalWrites};

pub(crate) use close::CloseReason;
pub(crate) use cursor::{
    Backlog, Fill, FrameFormat, PageStep, RING_EVENTS_MAX, Selection, SessionCursor, count_stored,
};
pub(crate) use framing::Framing;
pub(crate) use pending::{EventCount, FrameTally, PendingWrites};
pub(crate) use wire::{Limits, Wire};

/// How long a socket must be blocked before the lag bound applies: a client that is busy with a
/// burst reads every few milliseconds, a frozen one never again.
const BLOCKED_MIN: Duration = Duration::from_millis(50);
/// The lag of a blocked client from which its events are counted: less than the smallest ring holds.
const COUNTED_LAG_MIN: u64 = 8;

/// Bytes of answers that a client may leave unread before its frames are no longer read: TCP then
/// makes the client wait, and the write deadline closes the connection.
const CONTROL_BYTES_MAX: usize = 64 << 10;

/// A [`Wire`] on its socket.
pub(crate) struct Carrier<W: Wire> {
    wire: W,
    framing: W::Framing,
    pending: PendingWrites<W::Tally>,
    /// Woken by the rings of the wire and by the [`ServerPhase`](super::phase::ServerPhase).
    waker: Arc<AtomicWaker>,
    _waker_guards: (Option<WakerGuard>, WakerGuard),
    timer: Pin<Box<Sleep>>,
    /// Since when the socket has been blocked.
    blocked_since: Option<Instant>,
}

impl<W: Wire> Carrier<W> {
    /// A carrier that is woken through `waker`, which `ring_guard` registers at the ring of the
    /// wire's session. `pending` may contain a head that is written with the first frames.
    pub(crate) fn new(
        wire: W,
        framing: W::Framing,
        pending: PendingWrites<W::Tally>,
        waker: Arc<AtomicWaker>,
        ring_guard: Option<WakerGuard>,
    ) -> Self {
        let phase_guard = wire.phase().register(waker.clone());
        let now = Instant::now();
        let mut carrier = Self {
            wire,
            framing,
            pending,
            waker,
            _waker_guards: (ring_guard, phase_guard),
            timer: Box::pin(sleep_until(now)),
            blocked_since: None,
        };
        let first_check = carrier.next_check(now);
        carrier.timer.as_mut().reset(first_check);
        carrier
    }

    /// Runs the connection to its end.
    pub(crate) async fn run(mut self) {
        let open = metrics::gauge!(W::OPEN_CONNECTIONS);
        open.increment(1.0);
        let Err(reason) = self.serve().await;
        self.wire.closing(reason, &mut self.pending);
        Box::pin(self.close(reason)).await;
        self.wire.closed(reason, &self.pending);
        open.decrement(1.0);
    }

    /// Delivers until there is a reason to close.
    async fn serve(&mut self) -> Result<Infallible, CloseReason> {
        loop {
            // Taken before the look at the ring, so that no news is missed in between.
            let (shutdown, backlog) = (self.wire.phase().shutdown(), self.wire.backlog());
            self.check(shutdown, backlog)?;
            if self.wire.may_fill(&self.pending)
                && self.wire.fill(&mut self.pending).await?
                && (self.wire.is_complete() || self.wire.may_fill(&self.pending))
            {
                continue;
            }
            if let Some(inbound) = self.wait(shutdown, backlog.newest).await? {
                let received = self.wire.receive(inbound, &mut self.pending);
                Box::pin(received).await?;
            }
        }
    }

    /// Fails with the reason to close the connection now, if there is one. Also queues a heartbeat
    /// that is due.
    fn check(&mut self, shutdown: Shutdown, backlog: Backlog) -> Result<(), CloseReason> {
        let now = Instant::now();
        let limits = self.wire.limits();
        // Before anything else: no further frame is for this client.
        if let Some(reason) = self.identity_end() {
            return Err(reason);
        }
        let has_blocked_for = |time| self.blocked_since.is_some_and(|since| now >= since + time);
        if self.pending.is_empty() && self.wire.is_complete() {
            return Err(CloseReason::Complete);
        }
        if has_blocked_for(limits.write_deadline) {
            return Err(CloseReason::TooSlow);
        }
        // Frames that are due go out first, the ends of turns among them.
        let is_delivered = !backlog.has_more && self.wire.may_fill(&self.pending);
        if is_delivered && shutdown == Shutdown::Stopped {
            return Err(CloseReason::Draining);
        }
        if let Some(reason) = self.wire.early_close(now) {
            return Err(reason);
        }
        self.wire.record_lag(backlog);
        let (is_blocked, pending) = (has_blocked_for(BLOCKED_MIN), self.pending.frames);
        // Counted early, while the events that the filter hides are still in the ring.
        if backlog.is_bounded
            && is_blocked
            && (backlog.lag >= COUNTED_LAG_MIN || backlog.lag + pending > limits.lag_max)
            && self.wire.passing_lag(backlog) + pending > limits.lag_max
        {
            return Err(CloseReason::TooSlow);
        }
        if !self.pending.is_empty() {
            return Ok(());
        }
        if backlog.lag == 0
            && let Some(reason) = self.wire.idle_close()
        {
            return Err(reason);
        }
        match self.wire.heartbeat_interval() {
            Some(interval) if now >= self.pending.last_sent + interval => {
                self.wire.heartbeat(&mut self.pending)
            }
            _ => Ok(()),
        }
    }

    /// The reason to close a connection whose identity has ended.
    fn identity_end(&self) -> Option<CloseReason> {
        CloseReason::of_identity(self.wire.identity()?.state())
    }

    /// When to [`check`](Self::check) again if nothing happens.
    fn next_check(&self, now: Instant) -> Instant {
        let Some(since) = self.blocked_since else {
            let interval = self.wire.heartbeat_interval();
            let heartbeat = interval.map(|interval| self.pending.last_sent + interval);
            let checks = [heartbeat, self.wire.next_check()];
            let first = checks.into_iter().flatten().min();
            return first.unwrap_or(now + self.wire.limits().write_deadline);
        };
        // No heartbeat is due while something waits to be written.
        if now < since + BLOCKED_MIN {
            since + BLOCKED_MIN
        } else {
            since + self.wire.limits().write_deadline
        }
    }

    /// Writes pending frames until a frame of the client arrives, the client ends the connection, or
    /// [`check`](Self::check) should run.
    async fn wait(
        &mut self,
        shutdown: Shutdown,
        newest: u64,
    ) -> Result<Option<<W::Framing as Framing>::Inbound>, CloseReason> {
        let next_check = self.next_check(Instant::now());
        // A deadline that has moved back is not chased: it is looked up when the timer fires.
        if next_check < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(next_check);
        }
        poll_fn(move |cx| {
            match self.poll_write(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(None)),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(CloseReason::PeerGone)),
                Poll::Pending => {}
            }
            let leaves_answers = self.pending.control_bytes >= CONTROL_BYTES_MAX
                || self.framing.has_control() && self.blocked_since.is_some();
            if !leaves_answers && let Poll::Ready(received) = self.framing.poll_read(cx) {
                return Poll::Ready(received.map(Some));
            }
            if self.poll_news(shutdown, newest, cx).is_ready()
                || self.timer.as_mut().poll(cx).is_ready()
            {
                return Poll::Ready(Ok(None));
            }
            Poll::Pending
        })
        .await
    }

    /// Writes pending frames. Ready when [`check`](Self::check) should run.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.framing.poll_ready(cx, self.pending.is_partial()) {
            Poll::Ready(Ok(true)) => self.blocked_since = None,
            Poll::Ready(Ok(false)) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return self.set_blocked(),
        }
        if self.pending.is_empty() {
            return Poll::Pending;
        }
        let mut was_blocked = false;
        loop {
            let slices = self.pending.slices();
            let written = self.framing.io().poll_write_slices(cx, &slices);
            drop(slices);
            match written {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(n)) => {
                    let wire = &mut self.wire;
                    self.pending.advance(n, |tally| wire.record_sent(tally));
                    self.framing.set_mid_frame(self.pending.is_partial());
                    was_blocked |= self.blocked_since.take().is_some();
                    if self.pending.is_empty() {
                        self.wire.record_drained();
                        // Not worth a round of the loop, as a ring wakes the task if there is
                        // more; unless the stream ends here, the framing has waited for this, or
                        // the timer stands at a write deadline.
                        let needs_check =
                            was_blocked || self.framing.has_control() || self.wire.is_complete();
                        return if needs_check {
                            Poll::Ready(Ok(()))
                        } else {
                            Poll::Pending
                        };
                    }
                }
                Poll::Pending => return self.set_blocked(),
            }
        }
    }

    /// Notes that the socket is blocked. Ready the first time, so that the timer is set to the deadline.
    fn set_blocked(&mut self) -> Poll<io::Result<()>> {
        match self.blocked_since {
            Some(_) => Poll::Pending,
            None => {
                self.blocked_since = Some(Instant::now());
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Ready when the wire has frames that could be sent now, when there are new events while the
    /// socket is blocked, or when the server's phase has changed.
    fn poll_news(&self, shutdown: Shutdown, newest: u64, cx: &mut Context<'_>) -> Poll<()> {
        // Registered before the look: news in between finds the waker.
        self.waker.register(cx.waker());
        let backlog = self.wire.backlog();
        let has_news = if self.pending.is_empty() {
            backlog.has_more || backlog.has_ended
        } else {
            backlog.newest != newest
        };
        let has_ended = || self.identity_end().is_some();
        if has_news || self.wire.phase().shutdown() != shutdown || has_ended() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Makes the [`FinalWrites`] of a connection that closes for `reason`.
    async fn close(&mut self, reason: CloseReason) {
        let write_deadline = self.wire.limits().write_deadline;
        let time = match self.framing.begin_close(reason, write_deadline) {
            FinalWrites::Nothing => return,
            FinalWrites::Pending(time) => time,
            FinalWrites::PartialFrame(time) => {
                self.pending.truncate(W::Framing::frame_end);
                time
            }
        };
        let last_bytes = async {
            if self.flush().await.is_ok() {
                self.framing.close(reason).await;
            }
        };
        let _ = timeout(time, last_bytes).await;
    }

    async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| {
            loop {
                match self.poll_write(cx) {
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    _ if self.pending.is_empty() => return Poll::Ready(Ok(())),
                    // Blocked for the first time: polled again, so that the socket wakes the task.
                    Poll::Ready(Ok(())) => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }
}
