//! The wakers of the tasks that wait for one source of events.
//!
//! Every waiting task registers an `AtomicWaker` of its own, so that re-arming it touches no
//! shared state. With one shared notification queue, each waiter would take the queue's lock
//! twice for every event. A wake carries no data: the task reads the ring to see what changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// A set of registered wakers; [`wake_all`](WakerSet::wake_all) wakes all of them.
#[derive(Debug, Default)]
pub struct WakerSet {
    registered: Mutex<RegisteredWaker>,
    /// The number of registered wakers, readable without the lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct RegisteredWaker {
    last_id: u64,
    wakers: HashMap<u64, Arc<AtomicWaker>>,
}

impl WakerSet {
    /// Registers `waker` until the returned [`WakerGuard`] is dropped.
    pub fn register(self: &Arc<Self>, waker: Arc<AtomicWaker>) -> WakerGuard {
        let mut registered = self.registered.lock();
        registered.last_id += 1;
        let id = registered.last_id;
        registered.wakers.insert(id, waker);
        self.count.store(registered.wakers.len(), Ordering::Release);
        WakerGuard {
            set: self.clone(),
            id,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Wakes every registered task.
    pub fn wake_all(&self) {
        for waker in self.registered.lock().wakers.values() {
            waker.wake();
        }
    }
}

/// The registration of one waker in a [`WakerSet`]; dropping the guard removes the waker.
#[derive(Debug)]
pub struct WakerGuard {
    set: Arc<WakerSet>,
    id: u64,
}

impl Drop for WakerGuard {
    fn drop(&mut self) {
        let mut registered = self.set.registered.lock();
        registered.wakers.remove(&self.id);
        self.set
            .count
            .store(registered.wakers.len(), Ordering::Release);
        // Return the memory of a large audience once its last connection has closed.
        if registered.wakers.is_empty() {
            registered.wakers.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn dropped_guard_is_woken_no_more() {
        let set = Arc::<WakerSet>::default();
        let counts: [Arc<WakeCount>; 2] = Default::default();
        let wakers = counts.each_ref().map(|count| {
            let waker = Arc::new(AtomicWaker::new());
            waker.register(&Waker::from(Arc::clone(count)));
            waker
        });
        let [first, _second] = wakers.clone().map(|waker| set.register(waker));
        assert_eq!(set.len(), 2);
        drop(first);
        assert_eq!(set.len(), 1);
        set.wake_all();
        let woken = counts.map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
    }
}
