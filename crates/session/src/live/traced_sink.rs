//! What stands between a sequencer and its ring where spans of turns are recorded: the tracer reads
//! each event on its way.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::EventLane;
use turnwire_event::port::{CommittedBatch, TracedEvent, TurnTracer};
use turnwire_hub::Ring;
use turnwire_log::{EventSink, ReleasedEvent, SessionAppend};

use super::transcript::Transcript;

/// Hands every event to the tracer, then to the ring.
struct TracedSink {
    ring: Arc<Ring<Transcript>>,
    tracer: Arc<dyn TurnTracer>,
}

/// The sink of a session's sequencer: its ring, behind the tracer if there is one.
pub(crate) fn traced_sink(
    ring: &Arc<Ring<Transcript>>,
    tracer: Option<&Arc<dyn TurnTracer>>,
) -> Arc<dyn EventSink> {
    let ring = Arc::clone(ring);
    match tracer.map(Arc::clone) {
        None => ring,
        Some(tracer) => Arc::new(TracedSink { ring, tracer }),
    }
}

impl EventSink for TracedSink {
    fn publish(&self, events: &mut Vec<ReleasedEvent>) {
        for event in events.iter() {
            // Deltas are most of the events, and begin and end nothing.
            let is_stored = event.head.kind.lane() == EventLane::Persisted;
            if let Some(turn_id) = event.head.turn.filter(|_| is_stored) {
                self.tracer.observe(TracedEvent {
                    turn_id,
                    actor: &event.head.actor,
                    body: &event.body,
                    time: event.time,
                    trace: event.trace.as_deref(),
                });
            }
        }
        self.ring.publish(events);
    }

    fn committed(&self, batch: &SessionAppend, began: Instant) {
        let ended = Instant::now();
        let mut turns = batch.records.iter().filter_map(|record| record.turn);
        let Some(mut turn) = turns.next() else { return };
        // A batch rarely has events of two turns. Each run of events of one turn is a commit of it.
        let mut events = 1;
        for next in turns {
            if next != turn {
                let batch = CommittedBatch {
                    began,
                    ended,
                    events,
                };
                self.tracer.record_commit(turn, batch);
                (turn, events) = (next, 0);
            }
            events += 1;
        }
        let batch = CommittedBatch {
            began,
            ended,
            events,
        };
        self.tracer.record_commit(turn, batch);
    }

    fn quarantined(&self) {
        self.ring.quarantined();
    }
}
