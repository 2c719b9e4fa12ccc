//! A gate that holds statuses back until it is flushed, and records its calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::port::{Emission, EventGate, GateOutput};
use turnwire_event::{Body, EventType};

use super::GateFactory;

/// The time that the gate holds a status back.
pub const WINDOW: Duration = Duration::from_millis(150);

/// The calls of a [`HoldingGate`].
#[derive(Default)]
pub struct GateRecorder {
    /// The number of events that the gate took.
    pub taken: usize,
    /// The number of events of each flush that was not empty.
    pub flushed: Vec<usize>,
}

pub struct HoldingGate {
    held: Vec<Emission>,
    due: Option<Instant>,
    seen: Arc<Mutex<GateRecorder>>,
}

/// A factory of [`HoldingGate`]s, and the recorder of their calls.
pub fn holding_gates() -> (GateFactory, Arc<Mutex<GateRecorder>>) {
    let seen = Arc::new(Mutex::new(GateRecorder::default()));
    let shared = seen.clone();
    let gates: GateFactory = Arc::new(move || {
        Box::new(HoldingGate {
            held: Vec::new(),
            due: None,
            seen: shared.clone(),
        })
    });
    (gates, seen)
}

impl EventGate for HoldingGate {
    fn take(&mut self, emission: Emission, now: Instant, out: GateOutput<'_>) {
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

    fn flush(&mut self, out: GateOutput<'_>) {
        self.due = None;
        if !self.held.is_empty() {
            self.seen.lock().flushed.push(self.held.len());
        }
        self.held.drain(..).for_each(|emission| out(emission, None));
    }
}

pub fn status(event_id: &str) -> Body {
    Body::StatusEmitted(StatusEmitted {
        event_id: event_id.into(),
        message: "working".into(),
        invocation_id: None,
    })
}
