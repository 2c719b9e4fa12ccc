//! The state of one connection that its transport, its calls and its supervisor share: how much
//! the server has sent, which calls are open, and the fault that ends the connection. A server that
//! sends too much is disconnected instead of slowed down, because its messages are held in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

/// Bytes of one message. A result has 1 MiB at most; the base64 of an image, which is only
/// described to the model, may have more.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Bytes of all messages in a [`WINDOW`]: eight of the largest.
const WINDOW_BYTES_MAX: usize = 64 << 20;
const WINDOW: Duration = Duration::from_secs(10);
/// Notifications and requests of a server in a second; further ones are dropped. A turn reports two
/// progress steps in a second.
const NOTIFICATIONS_MAX: usize = 200;
/// How long a server may read nothing of its standard input while a message waits.
pub(super) const WRITE_STALL_MAX: Duration = Duration::from_secs(10);

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectionFault {
    #[error("it sent more than {MESSAGE_BYTES_MAX} bytes without the end of a message")]
    MessageTooLarge,
    #[error("it sent more than {WINDOW_BYTES_MAX} bytes in {} s", WINDOW.as_secs())]
    TooManyBytes,
    #[error("it read none of its input for {} s", WRITE_STALL_MAX.as_secs())]
    InputStalled,
    #[error("it could not be reached")]
    Unreachable,
    #[error("it does not respond to pings")]
    Unresponsive,
    #[error("it closed the connection")]
    Closed,
}

/// A count that starts from zero again after a while.
#[derive(Debug, Default)]
struct Window {
    start: Option<Instant>,
    count: usize,
}

impl Window {
    fn add(&mut self, count: usize, length: Duration) -> usize {
        if self.start.is_none_or(|start| start.elapsed() >= length) {
            self.start = Some(Instant::now());
            self.count = 0;
        }
        self.count = self.count.saturating_add(count);
        self.count
    }
}

/// The shared state of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionHealth {
    received: Mutex<Window>,
    received_total: AtomicU64,
    notifications: Mutex<Window>,
    /// The server has sent output that cannot be the beginning of a message.
    pub(super) stray_output: AtomicBool,
    /// The first fault; the supervisor waits for it.
    fault: watch::Sender<Option<ConnectionFault>>,
    /// Asks the supervisor for a ping.
    pub(super) probe: Notify,
    /// The deadlines of the open calls.
    calls: watch::Sender<Vec<Instant>>,
}

impl ConnectionHealth {
    /// Counts `bytes` from the server.
    pub(super) fn receive(&self, bytes: usize) -> Result<(), ConnectionFault> {
        self.received_total
            .fetch_add(bytes as u64, Ordering::Relaxed);
        if self.received.lock().add(bytes, WINDOW) > WINDOW_BYTES_MAX {
            return Err(self.fail(ConnectionFault::TooManyBytes));
        }
        Ok(())
    }

    /// Bytes from the server in total.
    pub(super) fn received_total(&self) -> u64 {
        self.received_total.load(Ordering::Relaxed)
    }

    /// Counts a notification or request of the server; false if it exceeds the rate.
    pub(super) fn allow_notification(&self) -> bool {
        let mut notifications = self.notifications.lock();
        notifications.add(1, Duration::from_secs(1)) <= NOTIFICATIONS_MAX
    }

    /// Has the supervisor end the connection. The first fault counts.
    pub(crate) fn fail(&self, fault: ConnectionFault) -> ConnectionFault {
        self.fault.send_if_modified(|current| {
            let is_first = current.is_none();
            current.get_or_insert(fault);
            is_first
        });
        fault
    }

    pub(crate) fn fault(&self) -> Option<ConnectionFault> {
        *self.fault.borrow()
    }

    /// Waits for a fault.
    pub(crate) async fn failed(&self) -> ConnectionFault {
        let mut fault = self.fault.subscribe();
        loop {
            if let Some(fault) = *fault.borrow_and_update() {
                return fault;
            }
            // `self` holds the sender, so this never fails.
            let _ = fault.changed().await;
        }
    }

    /// Has the supervisor ping the server: a call was late, or a response broke off.
    pub(crate) fn request_probe(&self) {
        self.probe.notify_one();
    }

    /// Registers a call that is open until the guard is dropped.
    pub(crate) fn begin_call(self: &Arc<Self>, deadline: Instant) -> OpenCallGuard {
        self.calls.send_modify(|calls| calls.push(deadline));
        let health = Arc::clone(self);
        OpenCallGuard { health, deadline }
    }

    /// The latest deadline of the open calls that have time left.
    pub(super) fn latest_deadline(&self) -> Option<Instant> {
        let latest = self.calls.borrow().iter().max().copied();
        latest.filter(|deadline| *deadline > Instant::now())
    }

    /// Waits until no open call has time left, `latest` at most.
    pub(super) async fn calls_over(&self, latest: Instant) {
        let mut calls = self.calls.subscribe();
        let no_time_left = calls.wait_for(|calls| {
            let now = Instant::now();
            calls.iter().all(|deadline| *deadline <= now)
        });
        let _ = timeout_at(latest, no_time_left).await;
    }
}

/// An open call of a [`ConnectionHealth`].
#[derive(Debug)]
pub(crate) struct OpenCallGuard {
    health: Arc<ConnectionHealth>,
    deadline: Instant,
}

impl Drop for OpenCallGuard {
    fn drop(&mut self) {
        self.health.calls.send_modify(|calls| {
            if let Some(own) = calls.iter().position(|call| *call == self.deadline) {
                calls.swap_remove(own);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn too_many_bytes_in_one_window_are_a_fault() {
        let health = ConnectionHealth::default();
        for _ in 0..2 {
            assert_eq!(health.receive(WINDOW_BYTES_MAX), Ok(()));
            tokio::time::advance(WINDOW).await;
        }
        assert_eq!(health.receive(WINDOW_BYTES_MAX), Ok(()));
        assert_eq!(health.fault(), None);
        let fault = ConnectionFault::TooManyBytes;
        assert_eq!(health.receive(1), Err(fault));
        health.fail(ConnectionFault::Unreachable);
        assert_eq!(health.failed().await, fault, "the first fault counts");
    }

    #[tokio::test(start_paused = true)]
    async fn notifications_beyond_the_rate_are_not_allowed() {
        let health = ConnectionHealth::default();
        let allowed = |n: u32| (0..n).filter(|_| health.allow_notification()).count();
        assert_eq!(allowed(500), NOTIFICATIONS_MAX);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(allowed(500), NOTIFICATIONS_MAX);
    }
}
