//! One loop for every stream: it takes frames from a [`Wire`], writes them through a [`Framing`],
//! and applies the rules by which a connection ends.
//!
//! ```text
//!   store, ring ─▶ SessionCursor ─▶ FrameFormat, Selection ─▶ PendingWrites ─▶ Framing ─▶ socket
//!                                   (projection of `wire`)    Carrier: lag bound, write deadline,
//!                                                             heartbeat, drain, close, counters
//! ```
//!
//! A connection has no queue of its own: it is a cursor and at most one stretch of frames. A
//! client that does not keep up is closed, and nobody ever waits for it.

pub(crate) mod close;
pub(crate) mod pending;
pub(crate) mod framing;
pub(crate) mod event_stream;
pub(crate) mod websocket;
pub(crate) mod cursor;
pub(crate) mod wire;
#[cfg(test)]
mod tests;

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
use close::CloseReason;
use framing::{ByteStream as _, FinalWrites, Framing};
use pending::PendingWrites;
use wire::{Backlog, Wire};

/// How long a socket must take nothing before the lag bound applies: a client that is busy with a
/// burst reads something every few milliseconds, a frozen one never again.
const BLOCKED_MIN: Duration = Duration::from_millis(50);

/// Answers that a client may leave unread before its frames are no longer read: TCP then makes it
/// wait, and the write deadline ends it.
const CONTROL_BYTES_MAX: usize = 64 << 10;

/// Why the task woke up.
enum Wakeup<I> {
    Received(I),
    Closed(CloseReason),
    Check,
}

/// A wire on its socket.
pub(crate) struct Carrier<W: Wire> {
    wire: W,
    framing: W::Framing,
    pending: PendingWrites<W::Tally>,
    /// Woken by the rings of the wire and by the server's phase.
    waker: Arc<AtomicWaker>,
    _seats: (Option<WakerGuard>, WakerGuard),
    timer: Pin<Box<Sleep>>,
    /// Since when the socket takes nothing.
    blocked_since: Option<Instant>,
}

impl<W: Wire> Carrier<W> {
    /// A carrier that is woken through `waker`, which has `ring_seat` at the ring of the wire's
    /// session. `pending` may have a head that leaves with the first frames.
    pub(crate) fn new(
        wire: W,
        framing: W::Framing,
        pending: PendingWrites<W::Tally>,
        waker: Arc<AtomicWaker>,
        ring_seat: Option<WakerGuard>,
    ) -> Self {
        let phase_seat = wire.phase().sit(waker.clone());
        let now = Instant::now();
        let mut carrier = Self {
            wire,
            framing,
            pending,
            waker,
            _seats: (ring_seat, phase_seat),
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
        let reason = self.serve().await;
        self.wire.closing(reason, &mut self.pending);
        Box::pin(self.close(reason)).await;
        self.wire.closed(reason, &self.pending);
        open.decrement(1.0);
    }

    async fn serve(&mut self) -> CloseReason {
        loop {
            // Taken before the look at the ring, so that no news is missed in between.
            let (shutdown, backlog) = (self.wire.phase().shutdown(), self.wire.backlog());
            if let Some(reason) = self.check(shutdown, backlog) {
                return reason;
            }
            if self.wire.may_fill(&self.pending) {
                match self.wire.fill(&mut self.pending).await {
                    Ok(true) if self.wire.is_complete() || self.wire.may_fill(&self.pending) => {
                        continue;
                    }
                    Ok(_) => {}
                    Err(reason) => return reason,
                }
            }
            match self.wait(shutdown, backlog.newest).await {
                Wakeup::Received(inbound) => {
                    let received = self.wire.receive(inbound, &mut self.pending);
                    if let Err(reason) = Box::pin(received).await {
                        return reason;
                    }
                }
                Wakeup::Closed(reason) => return reason,
                Wakeup::Check => {}
            }
        }
    }

    /// The rule that ends the connection now, if there is one. Also queues a heartbeat that is due.
    fn check(&mut self, shutdown: Shutdown, backlog: Backlog) -> Option<CloseReason> {
        let now = Instant::now();
        let limits = self.wire.limits();
        let has_blocked_for = |time| self.blocked_since.is_some_and(|since| now >= since + time);
        if self.pending.is_empty() && self.wire.is_complete() {
            return Some(CloseReason::Complete);
        }
        if has_blocked_for(limits.write_deadline) {
            return Some(CloseReason::TooSlow);
        }
        // Frames that are due go out first, the ends of turns among them.
        let is_delivered = !backlog.has_more && self.wire.may_fill(&self.pending);
        if is_delivered && shutdown == Shutdown::Stopped {
            return Some(CloseReason::Draining);
        }
        if let Some(reason) = self.wire.early_close(now) {
            return Some(reason);
        }
        self.wire.record_lag(backlog.lag);
        if backlog.is_bounded
            && has_blocked_for(BLOCKED_MIN)
            && backlog.lag + self.pending.frames() > limits.lag_max
        {
            return Some(CloseReason::TooSlow);
        }
        if !self.pending.is_empty() {
            return None;
        }
        if backlog.lag == 0
            && let Some(reason) = self.wire.idle_close()
        {
            return Some(reason);
        }
        let interval = self.wire.heartbeat_interval()?;
        if now < self.pending.last_sent() + interval {
            return None;
        }
        self.wire.heartbeat(&mut self.pending).err()
    }

    /// When to look at the rules again even if nothing happens.
    fn next_check(&self, now: Instant) -> Instant {
        let Some(since) = self.blocked_since else {
            let interval = self.wire.heartbeat_interval();
            let heartbeat = interval.map(|interval| self.pending.last_sent() + interval);
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

    /// Waits for the next thing to happen, and writes in the meantime.
    async fn wait(
        &mut self,
        shutdown: Shutdown,
        newest: u64,
    ) -> Wakeup<<W::Framing as Framing>::Inbound> {
        let next_check = self.next_check(Instant::now());
        // A deadline that has moved back is not chased: it is looked up when the timer fires.
        if next_check < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(next_check);
        }
        poll_fn(move |cx| {
            match self.poll_write(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(Wakeup::Check),
                Poll::Ready(Err(_)) => return Poll::Ready(Wakeup::Closed(CloseReason::PeerGone)),
                Poll::Pending => {}
            }
            let leaves_answers = self.pending.control_bytes() >= CONTROL_BYTES_MAX
                || self.framing.has_control() && self.blocked_since.is_some();
            if !leaves_answers && let Poll::Ready(received) = self.framing.poll_read(cx) {
                return Poll::Ready(match received {
                    Ok(inbound) => Wakeup::Received(inbound),
                    Err(reason) => Wakeup::Closed(reason),
                });
            }
            if self.poll_news(shutdown, newest, cx).is_ready()
                || self.timer.as_mut().poll(cx).is_ready()
            {
                return Poll::Ready(Wakeup::Check);
            }
            Poll::Pending
        })
        .await
    }

    /// Writes what is pending. Ready when the rules should be looked at.
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

    /// The socket takes nothing. The rules are looked at once, to set the timer to the deadline.
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
        if has_news || self.wire.phase().shutdown() != shutdown {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Writes the last bytes that `reason` allows.
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
