//! A gate that holds statuses back until it is told to let go, and notes what it is asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::body::status::Emitted;
use turnwire_event::port::{Emission, Gate, Onward};
use turnwire_event::{Body, EventType};

use super::Gates;

/// How long it holds.
pub const WINDOW: Duration = Duration::from_millis(150);

/// What its turns asked of it.
#[derive(Default)]
pub struct Seen {
    /// Events that came.
    pub taken: usize,
    /// How many events each flush let go, those of none left out.
    pub flushed: Vec<usize>,
}

pub struct Holding {
    held: Vec<Emission>,
    due: Option<Instant>,
    seen: Arc<Mutex<Seen>>,
}

/// Gates that hold, and what they see.
pub fn holding() -> (Gates, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shared = seen.clone();
    let gates: Gates = Arc::new(move || {
        Box::new(Holding {
            held: Vec::new(),
            due: None,
            seen: shared.clone(),
        })
    });
    (gates, seen)
}

impl Gate for Holding {
    fn take(&mut self, emission: Emission, now: Instant, out: Onward<'_>) {
        self.seen.lock().taken += 1;
        if emission.body.kind() == EventType::StatusEmitted {
            self.due.get_or_insert(now + WINDOW);
            self.held.push(emission);
        } else {
            out(emission, None);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.due
    }

    fn flush(&mut self, out: Onward<'_>) {
        self.due = None;
        if !self.held.is_empty() {
            self.seen.lock().flushed.push(self.held.len());
        }
        self.held.drain(..).for_each(|emission| out(emission, None));
    }
}

pub fn status(event_id: &str) -> Body {
    Body::StatusEmitted(Emitted {
        event_id: event_id.into(),
        message: "working".into(),
    })
}
