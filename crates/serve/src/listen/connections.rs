//! The open connections: how many there are, and which of them wait for a request.
//!
//! When all are taken, one that waits is closed for a new one, so that nobody keeps others out with
//! connections that are not used: first those that never sent a request, then those between two
//! requests, each in the order in which they began to wait. There is no time for which a connection
//! may wait safely: a flood of new connections would fill it. A connection whose request is being
//! answered, and a stream, are never closed for another.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::owner_share::{OwnerPermit, TransferPermit};

/// How long a new connection waits for the place of one that is being closed.
const CLOSE_WAIT: Duration = Duration::from_millis(200);

/// The open connections of the listener.
pub(super) struct ConnectionTable {
    slots: Arc<Semaphore>,
    idle: Mutex<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections {
    last_number: u64,
    /// Waiting connections in the order in which they are closed for others.
    waiting: BTreeMap<IdleKey, CancellationToken>,
}

/// The place of an idle connection in the order of closing: those without a request first, then by
/// the time since when they wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IdleKey {
    has_asked: bool,
    number: u64,
}

impl ConnectionTable {
    /// A table with room for `max` connections.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(max)),
            idle: Mutex::default(),
        })
    }

    /// The place of one more connection; closes an idle one if all are taken.
    pub(super) async fn admit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Some(permit);
        }
        if !self.close_idle() {
            return None;
        }
        let permit = Arc::clone(&self.slots).acquire_owned();
        tokio::time::timeout(CLOSE_WAIT, permit).await.ok()?.ok()
    }

    /// Closes the first idle connection in the order of closing; false if none is idle.
    fn close_idle(&self) -> bool {
        let first = self.idle.lock().waiting.pop_first();
        first.map(|(_, closed)| closed.cancel()).is_some()
    }
}

/// One connection in the table: idle, or busy with a request.
pub(super) struct ConnectionState {
    table: Arc<ConnectionTable>,
    /// The key in [`IdleConnections::waiting`] while the connection is idle.
    idle_key: Mutex<Option<IdleKey>>,
    /// Requests whose answers are not written: two for a moment if the client does not wait.
    unwritten: AtomicUsize,
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
            closed: CancellationToken::new(),
        });
        state.set_idle(false);
        state
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
        idle.waiting.insert(key, self.closed.clone());
        drop(idle);
        *self.idle_key.lock() = Some(key);
    }

    /// Marks the connection as busy until the guard is dropped; `None` if it is being closed.
    pub(super) fn begin_request(self: &Arc<Self>) -> Option<BusyGuard> {
        // The end of the answer before may still be on its way.
        let is_admitted = self.is_busy() || self.leave_idle();
        is_admitted.then(|| {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
            BusyGuard(self.clone())
        })
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

/// What an answer holds until its last byte is with the kernel.
pub(super) type HeldByAnswer = (BusyGuard, Option<OwnerPermit>, Option<TransferPermit>);

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

    #[tokio::test]
    async fn answer_is_held_until_its_bytes_are_dropped() {
        let table = ConnectionTable::new(1);
        let state = ConnectionState::new(&table);
        let busy = state.begin_request().expect("an idle connection");
        let mut body = AnswerBody::new(Body::from("answer"), (busy, None, None));
        assert!(!body.is_end_stream());
        let frame = body.frame().await.expect("a frame").expect("no error");
        let mut data = frame.into_data().expect("data");
        assert!(body.is_end_stream());
        drop(body);
        let rest = data.split_off(2);
        drop(data);
        assert_eq!((&rest[..], state.is_busy()), (&b"swer"[..], true));
        // The next request may come before the end of the answer is written.
        let next = state.begin_request().expect("a connection in use");
        drop(rest);
        assert!(state.is_busy());
        drop(next);
        assert!(!state.is_busy());
        let busy = state.begin_request().expect("an idle connection");
        let empty = AnswerBody::new(Body::empty(), (busy, None, None));
        assert!(empty.is_end_stream());
        drop(empty);
        assert!(!state.is_busy());
    }

    #[tokio::test]
    async fn connections_without_a_request_are_closed_first() {
        let table = ConnectionTable::new(3);
        let mut permits = Vec::new();
        for _ in 0..3 {
            permits.push(table.admit().await.expect("room"));
        }
        let [asked, early, late] = [0; 3].map(|_| ConnectionState::new(&table));
        drop(asked.begin_request());
        for closed in [&early, &late, &asked] {
            assert!(!closed.closed.is_cancelled());
            assert!(table.close_idle());
            assert!(closed.closed.is_cancelled());
            assert!(closed.begin_request().is_none(), "its request must not run");
        }
        assert!(!table.close_idle(), "none is idle");
        assert!(table.admit().await.is_none());
    }
}
