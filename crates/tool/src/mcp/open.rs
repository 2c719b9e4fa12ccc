//! The calls that are open on one connection, each with the time that it has: a server that says
//! nothing may be at one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The calls of a connection.
#[derive(Debug, Default)]
pub(crate) struct Open {
    calls: Mutex<Calls>,
    /// One call less. Only the keeper of the connection waits here.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    until: BTreeMap<u64, Instant>,
}

impl Open {
    /// A call that has until `until`; it is open as long as this is held.
    pub(crate) fn begin(self: &Arc<Self>, until: Instant) -> OpenGuard {
        let mut calls = self.calls.lock();
        let call = calls.next;
        calls.next += 1;
        calls.until.insert(call, until);
        let open = Arc::clone(self);
        OpenGuard { open, call }
    }

    /// Until when the last of the open calls has time; none if no call has any.
    pub(crate) fn until(&self) -> Option<Instant> {
        let last = self.calls.lock().until.values().max().copied();
        last.filter(|until| *until > Instant::now())
    }

    /// Waits until no open call has time, `most` at the latest.
    pub(crate) async fn over(&self, most: Instant) {
        while let Some(until) = self.until()
            && most > Instant::now()
        {
            tokio::select! {
                () = self.ended.notified() => {}
                () = sleep_until(until.min(most)) => {}
            }
        }
    }
}

/// One open call.
#[derive(Debug)]
pub(crate) struct OpenGuard {
    open: Arc<Open>,
    call: u64,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.open.calls.lock().until.remove(&self.call);
        self.open.ended.notify_one();
    }
}
