//! A bell: wakes everyone who has a seat. What it was rung for, they look up themselves.
//!
//! One waker a viewer, registered without touching anything the others share; a notification
//! queue behind one lock would be taken twice by every viewer for every event.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// The wakers of everyone who listens.
#[derive(Debug, Default)]
pub struct Bell {
    seats: Mutex<(u64, HashMap<u64, Arc<AtomicWaker>>)>,
    taken: AtomicUsize,
}

impl Bell {
    /// Takes a seat for `waker`; leaving it is dropping the seat.
    pub fn sit(self: &Arc<Self>, waker: Arc<AtomicWaker>) -> Seat {
        let mut seats = self.seats.lock();
        seats.0 += 1;
        let number = seats.0;
        seats.1.insert(number, waker);
        self.taken.store(seats.1.len(), Ordering::Release);
        Seat {
            bell: self.clone(),
            number,
        }
    }

    /// How many seats are taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Wakes everyone.
    pub fn ring(&self) {
        for waker in self.seats.lock().1.values() {
            waker.wake();
        }
    }
}

/// A place at a bell.
#[derive(Debug)]
pub struct Seat {
    bell: Arc<Bell>,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.bell.seats.lock();
        seats.1.remove(&self.number);
        self.bell.taken.store(seats.1.len(), Ordering::Release);
        // A crowd that has left must not keep its memory.
        if seats.1.is_empty() {
            seats.1.shrink_to_fit();
        }
    }
}
