//! One chat stream on its socket: a cursor, a wake-up, and the rules by which it ends.
//!
//! Nothing is read but the client's leaving. What is due goes out in as few writes as can be. A
//! client that cannot keep up is cut; nobody ever waits for it.

mod goodbye;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use socket2::SockRef;
use tokio::io::AsyncWrite as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use turnwire_event::metric;
use turnwire_hub::Seat;
use turnwire_session::{Error, ReplayError};
use turnwire_wire::pc3;

use super::super::connection::BLOCKED;
use super::due::{Due, Tally};
use super::feed::Filled;
use super::{Stream, Taken};

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With the turn.
    Whole,
    /// The client was too slow.
    Slow,
    /// The server goes away.
    Draining,
    /// The turn cannot be told to its end: its session is gone or damaged, or a frame is too large.
    Lost,
    /// The past cannot be read now; coming back may help.
    Broken,
    /// The client left.
    Gone,
}

/// What had been seen before the task went to sleep.
#[derive(Clone, Copy)]
struct Seen {
    phase: u8,
    ring: u64,
}

/// What woke the task.
enum Step {
    Left,
    Look,
}

/// A stream with its socket.
pub(super) struct Connection {
    stream: Stream,
    io: TcpStream,
    due: Due,
    waker: Arc<AtomicWaker>,
    _seats: (Seat, Seat),
    timer: Pin<Box<Sleep>>,
    /// When something was last sent.
    sent: Instant,
    /// Since when the socket takes nothing.
    blocked: Option<Instant>,
}

impl Connection {
    pub(super) fn new(stream: Stream, io: TcpStream, head: Vec<u8>) -> Self {
        let waker = Arc::new(AtomicWaker::new());
        let ring = stream.live.ring.sit(waker.clone());
        let phase = stream.streams.phase.sit(waker.clone());
        let now = Instant::now();
        let mut due = Due::default();
        due.push(Bytes::from(head), Tally::default());
        Self {
            timer: Box::pin(sleep_until(now + stream.streams.options.heartbeat)),
            stream,
            io,
            due,
            waker,
            _seats: (ring, phase),
            sent: now,
            blocked: None,
        }
    }

    /// Runs the stream to its end.
    pub(super) async fn run(mut self) {
        let streams = metrics::gauge!(metric::SSE_STREAMS);
        streams.increment(1.0);
        let end = self.serve().await;
        match end {
            End::Whole | End::Draining | End::Broken => self.goodbye().await,
            End::Lost => {
                self.say_lost();
                self.goodbye().await;
            }
            End::Slow => {
                // What the kernel still holds for this client is given up with it.
                let _ = SockRef::from(&self.io).set_linger(Some(Duration::ZERO));
            }
            End::Gone => {}
        }
        self.settle(end);
        if let Some(attendance) = self.stream.attendance.take()
            && end == End::Draining
        {
            attendance.leave_quietly();
        }
        streams.decrement(1.0);
    }

    async fn serve(&mut self) -> End {
        loop {
            // Taken before the look at the ring, so that no news is missed in between.
            let seen = Seen {
                phase: self.stream.streams.phase.now(),
                ring: self.stream.live.ring.end(),
            };
            if let Some(end) = self.due_end() {
                return end;
            }
            // What waits to be written may be the head alone: the first frames leave with it.
            if self.due.frames() == 0 && !self.stream.feed.is_ended() {
                let stream = &mut self.stream;
                let filled = stream.feed.fill(&stream.live, &mut self.due).await;
                match filled {
                    Ok(Filled::Some) if self.due.frames() == 0 => continue,
                    Ok(Filled::Some | Filled::Nothing) => {}
                    Ok(Filled::Behind) => return End::Slow,
                    Ok(Filled::TooLarge(frames)) => {
                        self.stream.counters.dropped.increment(frames);
                        return End::Lost;
                    }
                    Err(error) => return self.broken(&error),
                }
            }
            match self.step(seen).await {
                Step::Left => return End::Gone,
                Step::Look => {}
            }
        }
    }

    fn broken(&self, error: &ReplayError) -> End {
        match error {
            ReplayError::Session(Error::Quarantined) => {
                self.stream.live.quarantine();
                End::Lost
            }
            ReplayError::Session(Error::SessionNotFound) => End::Lost,
            ReplayError::Session(_) | ReplayError::Expired | ReplayError::TooLarge(..) => {
                End::Broken
            }
        }
    }

    /// Whether one of the rules ends the stream now; also sends a heartbeat that is due.
    fn due_end(&mut self) -> Option<End> {
        let now = Instant::now();
        let (streams, live) = (&self.stream.streams, &self.stream.live);
        let options = &streams.options;
        if self.due.is_empty() && self.stream.feed.is_ended() {
            return Some(End::Whole);
        }
        if self
            .blocked
            .is_some_and(|since| now >= since + options.write_deadline)
        {
            return Some(End::Slow);
        }
        let behind = self.stream.feed.behind(live);
        // Those who attend a turn that has just ended get its ending first.
        let told = behind == 0 && self.stream.feed.cursor().is_some();
        if streams.phase.is_stopped() && told && self.due.frames() == 0 {
            return Some(End::Draining);
        }
        let blocked = self.blocked.is_some_and(|since| now >= since + BLOCKED);
        if blocked
            && behind + self.due.frames() > options.queue_max
            && !self.stream.feed.is_catching_up()
            && !self.stream.feed.is_ended()
        // nothing more can come
        {
            return Some(End::Slow);
        }
        if self.due.is_empty() {
            if behind == 0 && live.ring.is_ended() {
                return Some(End::Lost);
            }
            if now >= self.sent + options.heartbeat {
                self.due
                    .push(Bytes::from_static(pc3::HEARTBEAT), Tally::default());
                self.sent = now;
            }
        }
        None
    }

    /// Waits for the next thing to happen.
    async fn step(&mut self, seen: Seen) -> Step {
        let wake = self.wake_at();
        // A deadline that has moved back is not chased: it is looked up when the timer fires.
        if wake < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(wake);
        }
        poll_fn(move |cx| {
            match self.poll_write(cx) {
                Poll::Ready(Err(_)) => return Poll::Ready(Step::Left),
                Poll::Ready(Ok(())) => return Poll::Ready(Step::Look),
                Poll::Pending => {}
            }
            if self.poll_left(cx).is_ready() {
                return Poll::Ready(Step::Left);
            }
            let timer = self.timer.as_mut().poll(cx);
            if self.poll_bell(seen, cx).is_ready() || timer.is_ready() {
                return Poll::Ready(Step::Look);
            }
            Poll::Pending
        })
        .await
    }

    /// Writes what is due. Ready when the loop should look at something.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.due.is_empty() {
            return Poll::Pending;
        }
        let mut was_blocked = false;
        loop {
            let slices = self.due.slices();
            let written = match slices.as_slice() {
                [one] => Pin::new(&mut self.io).poll_write(cx, one),
                many => Pin::new(&mut self.io).poll_write_vectored(cx, many),
            };
            match written {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(n)) => {
                    drop(slices);
                    was_blocked |= self.blocked.is_some();
                    self.wrote(n);
                    if self.due.is_empty() {
                        // Not worth a round of the loop, as the bell tells if more is due; unless
                        // this was the end, or the timer stands at a deadline.
                        let round = was_blocked || self.stream.feed.is_ended();
                        return if round {
                            Poll::Ready(Ok(()))
                        } else {
                            Poll::Pending
                        };
                    }
                }
                // The loop must know at once, to watch the deadline and the queue.
                Poll::Pending if self.blocked.is_none() => {
                    self.blocked = Some(Instant::now());
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn wrote(&mut self, n: usize) {
        self.blocked = None;
        self.sent = Instant::now();
        let stream = &mut self.stream;
        self.due.advance(n, |tally| {
            stream.counters.add(tally);
            if tally.frames() > 0
                && let Some(began) = stream.began.take()
            {
                let ms = began.elapsed().as_secs_f64() * 1e3;
                stream.counters.ttfe_ms.record(ms);
            }
        });
    }

    /// Ready when the client has left. What it may still send is read and thrown away.
    fn poll_left(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut rest = [0; 512];
        loop {
            match self.io.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => match self.io.try_read(&mut rest) {
                    Ok(0) => return Poll::Ready(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return Poll::Ready(()),
                },
            }
        }
    }

    /// Ready when the ring has something that this stream could take now, when it has gone on
    /// while the socket is stuck, or when the server's phase has changed.
    fn poll_bell(&self, seen: Seen, cx: &mut Context<'_>) -> Poll<()> {
        let ring = &self.stream.live.ring;
        let news = match self.stream.feed.cursor() {
            Some(cursor) if self.due.is_empty() => ring.poll_news(&self.waker, cursor, cx),
            None if self.due.is_empty() => Poll::Ready(()), // more of the past is due
            _ if ring.is_ended() => {
                self.waker.register(cx.waker());
                Poll::Pending
            }
            _ => ring.poll_news(&self.waker, seen.ring, cx),
        };
        if self.stream.streams.phase.now() == seen.phase {
            news
        } else {
            Poll::Ready(())
        }
    }

    /// When to look at the rules again even if nothing happens.
    fn wake_at(&self) -> Instant {
        let options = &self.stream.streams.options;
        match self.blocked {
            None => self.sent + options.heartbeat,
            Some(since) if Instant::now() < since + BLOCKED => since + BLOCKED,
            Some(since) => since + options.write_deadline,
        }
    }
}

/// Runs a stream on the socket it was given.
pub(super) async fn run(stream: Stream, taken: Taken) {
    let Taken {
        io,
        read,
        mut head,
        slot,
    } = taken;
    // Whatever it says, a stream listens to nothing; and the HTTP library's buffer, which this is
    // a piece of, is larger than all that a stream holds.
    drop(read);
    pc3::retry(stream.retry_ms, &mut head);
    Connection::new(stream, io, head).run().await;
    drop(slot);
}
