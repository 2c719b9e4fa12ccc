//! The open connections: how many there are, and which of them wait for a request.
//!
//! When all are taken, one that waits is closed for a new one, so that nobody keeps others out with
//! connections that are not used: the first that sent no request in [`FIRST_REQUEST_WAIT`], else the
//! one that waits longest. A new connection is safe for that time unless all others are newer: those
//! who keep places with connections between two requests lose them first. A connection whose request
//! is being answered, and a stream, are never closed for another.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::owner_share::{OwnerPermit, TransferPermit};

/// How long a new connection waits for the place of one that is being closed, before the next one is
/// closed for it. Closing takes one run of a task.
const CLOSE_WAIT: Duration = Duration::from_millis(50);

/// How many connections are closed for one new connection at most: accepting others waits meanwhile.
const CLOSE_TRIES: usize = 4;

/// How long a connection may wait for its first request before it is preferred for closing: a client
/// sends the request together with the end of the handshake.
const FIRST_REQUEST_WAIT: Duration = Duration::from_millis(100);

/// The open connections of the listener.
pub(super) struct ConnectionTable {
    slots: Arc<Semaphore>,
    idle: Mutex<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections {
    last_number: u64,
    waiting: BTreeMap<IdleKey, IdleEntry>,
}

/// The key of an idle connection: whether it has sent a request, and the order in which connections
/// began to wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IdleKey {
    has_asked: bool,
    number: u64,
}

struct IdleEntry {
    since: Instant,
    closed: CancellationToken,
}

impl IdleConnections {
    /// The connection that is closed next for another.
    fn next_to_close(&self) -> Option<IdleKey> {
        let asked_from = IdleKey {
            has_asked: true,
            number: 0,
        };
        let unasked = self.waiting.range(..asked_from).next();
        if let Some((key, entry)) = unasked
            && entry.since.elapsed() >= FIRST_REQUEST_WAIT
        {
            return Some(*key);
        }
        let asked = self.waiting.range(asked_from..).next();
        let keys = [unasked, asked].into_iter().flatten().map(|(key, _)| *key);
        keys.min_by_key(|key| key.number)
    }
}

impl ConnectionTable {
    /// A table with room for `max` connections.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(max)),
            idle: Mutex::default(),
        })
    }

    /// The place of one more connection; closes an idle one if all are taken, and the next if that
    /// one does not end at once.
    pub(super) async fn admit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Some(permit);
        }
        for _ in 0..CLOSE_TRIES {
            if !self.close_idle() {
                return None;
            }
            let permit = Arc::clone(&self.slots).acquire_owned();
            if let Ok(permit) = tokio::time::timeout(CLOSE_WAIT, permit).await {
                return permit.ok();
            }
        }
        None
    }

    /// Closes the idle connection that is next; false if none is idle.
    fn close_idle(&self) -> bool {
        let mut idle = self.idle.lock();
        let key = idle.next_to_close();
        let entry = key.and_then(|key| idle.waiting.remove(&key));
        drop(idle);
        entry.map(|entry| entry.closed.cancel()).is_some()
    }
}

/// One connection in the table: idle, or busy with a request.
pub(super) struct ConnectionState {
    table: Arc<ConnectionTable>,
    /// The key in [`IdleConnections::waiting`] while the connection is idle.
    idle_key: Mutex<Option<IdleKey>>,
    /// Requests whose answers are not written: two for a moment if the client does not wait.
    unwritten: AtomicUsize,
    accepted_at: Instant,
    has_asked: AtomicBool,
    /// True if a request came while the connection was being closed.
    is_refused: AtomicBool,
    /// When the answer that is being written must be with the kernel.
    answer_deadline: Mutex<Option<Instant>>,
    /// Cancelled when the connection must make room for another.
    pub(super) closed: CancellationToken,
}

impl ConnectionState {
    /// A connection that waits for its first request.
    pub(super) fn new(table: &Arc<ConnectionTable>) -> Arc<Self> {
        let state = Arc::new(Self {
            table: table.clone(),
            idle_key: Mutex::new(None),
            unwritten: AtomicUsize::new(0),
            accepted_at: Instant::now(),
            has_asked: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
            answer_deadline: Mutex::new(None),
            closed: CancellationToken::new(),
        });
        state.set_idle(false);
        state
    }

    /// True while the first request may be on its way, and after one that was not begun.
    pub(super) fn awaits_answer(&self) -> bool {
        let is_new = self.accepted_at.elapsed() < FIRST_REQUEST_WAIT;
        let has_asked = self.has_asked.load(Ordering::Relaxed);
        self.is_refused.load(Ordering::Relaxed) || is_new && !has_asked
    }

    /// True from the head of a request to the end of its answer.
    pub(super) fn is_busy(&self) -> bool {
        self.unwritten.load(Ordering::Relaxed) > 0
    }

    fn set_idle(&self, has_asked: bool) {
        let mut idle = self.table.idle.lock();
        idle.last_number += 1;
        let key = IdleKey {
            has_asked,
            number: idle.last_number,
        };
        let entry = IdleEntry {
            since: Instant::now(),
            closed: self.closed.clone(),
        };
        idle.waiting.insert(key, entry);
        drop(idle);
        *self.idle_key.lock() = Some(key);
    }

    /// Marks the connection as busy until the guard is dropped; `None` if it is being closed.
    pub(super) fn begin_request(self: &Arc<Self>) -> Option<BusyGuard> {
        // The end of the answer before may still be on its way.
        let is_admitted = self.is_busy() || self.leave_idle();
        self.is_refused.store(!is_admitted, Ordering::Relaxed);
        is_admitted.then(|| {
            self.has_asked.store(true, Ordering::Relaxed);
            self.unwritten.fetch_add(1, Ordering::Relaxed);
            BusyGuard(self.clone())
        })
    }

    /// Sets the deadline of an answer, until the guard is dropped. Answers are written one after the
    /// other, so there is one at a time.
    pub(super) fn begin_answer(self: &Arc<Self>, deadline: Instant) -> AnswerGuard {
        *self.answer_deadline.lock() = Some(deadline);
        AnswerGuard(self.clone())
    }

    /// The deadline of the answer that is being written.
    pub(super) fn answer_deadline(&self) -> Option<Instant> {
        *self.answer_deadline.lock()
    }

    /// Leaves the list of idle connections for good: the socket is taken over.
    pub(super) fn retire(&self) {
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        self.leave_idle();
    }

    /// Leaves the list of idle connections; false if the connection is not on it.
    fn leave_idle(&self) -> bool {
        let key = self.idle_key.lock().take();
        let entry = key.and_then(|key| self.table.idle.lock().waiting.remove(&key));
        entry.is_some()
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        self.leave_idle();
    }
}

/// A request that is being answered; the connection is idle again when this is dropped.
pub(super) struct BusyGuard(Arc<ConnectionState>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        if self.0.unwritten.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.set_idle(true);
        }
    }
}

/// An answer that is being written; it has no deadline any more when this is dropped.
pub(super) struct AnswerGuard(Arc<ConnectionState>);

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        *self.0.answer_deadline.lock() = None;
    }
}

/// What an answer holds until its last byte is with the kernel.
pub(super) struct HeldByAnswer {
    pub(super) _busy: BusyGuard,
    pub(super) _answer: AnswerGuard,
    pub(super) _owner: Option<OwnerPermit>,
    pub(super) _transfer: Option<TransferPermit>,
}

/// The body of an answer. The HTTP library drops it as soon as the last frame is in its buffer, which
/// a client that does not read keeps in memory: so every frame holds what the answer holds.
pub(super) struct AnswerBody {
    body: Body,
    held: Arc<HeldByAnswer>,
}

/// The bytes of one frame of an answer.
struct HeldFrame {
    data: Bytes,
    _held: Arc<HeldByAnswer>,
}

impl AsRef<[u8]> for HeldFrame {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl AnswerBody {
    /// A body of which nothing is written yet.
    pub(super) fn new(body: Body, held: HeldByAnswer) -> Self {
        let held = Arc::new(held);
        Self { body, held }
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        let hold = |data| {
            let _held = self.held.clone();
            Bytes::from_owner(HeldFrame { data, _held })
        };
        frame.map_ok(|frame| frame.map_data(hold))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn held(state: &Arc<ConnectionState>) -> HeldByAnswer {
        HeldByAnswer {
            _busy: state.begin_request().expect("an idle connection"),
            _answer: state.begin_answer(Instant::now()),
            _owner: None,
            _transfer: None,
        }
    }

    #[tokio::test]
    async fn answer_is_held_until_its_bytes_are_dropped() {
        let table = ConnectionTable::new(1);
        let state = ConnectionState::new(&table);
        let mut body = AnswerBody::new(Body::from("answer"), held(&state));
        assert!(!body.is_end_stream());
        let frame = body.frame().await.expect("a frame").expect("no error");
        let mut data = frame.into_data().expect("data");
        assert!(body.is_end_stream());
        drop(body);
        let rest = data.split_off(2);
        drop(data);
        assert_eq!((&rest[..], state.is_busy()), (&b"swer"[..], true));
        assert!(state.answer_deadline().is_some());
        // The next request may come before the end of the answer is written.
        let next = state.begin_request().expect("a connection in use");
        drop(rest);
        assert!(state.is_busy());
        assert!(state.answer_deadline().is_none());
        drop(next);
        assert!(!state.is_busy());
        let empty = AnswerBody::new(Body::empty(), held(&state));
        assert!(empty.is_end_stream());
        drop(empty);
        assert!(!state.is_busy());
    }

    /// A table that is full, and its connections.
    async fn full_table<const N: usize>() -> (Arc<ConnectionTable>, [Arc<ConnectionState>; N]) {
        let table = ConnectionTable::new(N);
        for _ in 0..N {
            table.admit().await.expect("room").forget();
        }
        let states = [(); N].map(|()| ConnectionState::new(&table));
        (table, states)
    }

    #[track_caller]
    fn assert_closes(table: &ConnectionTable, next: &Arc<ConnectionState>) {
        assert!(!next.closed.is_cancelled());
        assert!(table.close_idle());
        assert!(next.closed.is_cancelled());
        assert!(next.begin_request().is_none(), "its request must not run");
    }

    #[tokio::test(start_paused = true)]
    async fn connections_late_with_a_request_are_closed_first() {
        let (table, [asked, early, late]) = full_table().await;
        drop(asked.begin_request());
        tokio::time::advance(FIRST_REQUEST_WAIT).await;
        for next in [&early, &late, &asked] {
            assert_closes(&table, next);
        }
        assert!(!table.close_idle(), "none is idle");
        assert!(table.admit().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn new_connection_outlives_those_between_requests() {
        let (table, [first, second]) = full_table().await;
        for state in [&first, &second] {
            drop(state.begin_request());
        }
        let new = ConnectionState::new(&table);
        let newer = ConnectionState::new(&table);
        for next in [&first, &second, &new, &newer] {
            assert_closes(&table, next);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn stuck_connection_does_not_keep_a_new_one_out() {
        let (table, [_stuck, second]) = full_table().await;
        let ending = second.clone();
        let slots = table.slots.clone();
        tokio::spawn(async move {
            ending.closed.cancelled().await;
            slots.add_permits(1);
        });
        assert!(table.admit().await.is_some());
    }

    #[tokio::test]
    async fn retired_connection_is_never_idle_again() {
        let (table, [state]) = full_table().await;
        let busy = state.begin_request();
        state.retire();
        drop(busy);
        assert!(!table.close_idle());
    }
}
