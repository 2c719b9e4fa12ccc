//! The [`Tracer`]: decides which turns are recorded, and keeps the spans of those that run.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use turnwire_event::port::{
    CommittedBatch, MeasuredSpan, SpanValue, StartingTurn, TracedEvent, TurnTracer,
};
use turnwire_event::trace::{trace_id_bytes, trace_id_of};
use turnwire_event::{Clock, SpanId, TurnId};

use crate::drops::{DropReason, count_dropped};
use crate::exporter::{Exporter, ExporterError};
use crate::open_turn::OpenTurn;
use crate::options::OtlpOptions;
use crate::queue::SpanQueue;
use crate::sampler::Sampler;
use crate::span::{SpanKind, SpanStart, SpanTrace};

/// The most turns that are recorded at once: as many as run by default, with their workers.
const TURNS_MAX: usize = 2_048;
/// The turns that ended last whose deliveries and late calls are still recorded.
const ENDED_MAX: usize = 1_024;

/// Where spans of a turn belong that are measured outside of its events.
#[derive(Clone, Debug)]
pub(crate) struct TurnTarget {
    pub(crate) trace: SpanTrace,
    pub(crate) turn: SpanId,
}

#[derive(Default)]
struct RecordedTurns {
    open: HashMap<TurnId, OpenTurn>,
    ended: HashMap<TurnId, TurnTarget>,
    /// The keys of `ended`, oldest first.
    ended_order: VecDeque<TurnId>,
}

impl RecordedTurns {
    fn len(&self) -> usize {
        self.open.len() + self.ended.len()
    }

    fn target(&self, turn: TurnId) -> Option<TurnTarget> {
        let open = self.open.get(&turn).map(|open| TurnTarget {
            trace: open.trace.clone(),
            turn: open.span(),
        });
        open.or_else(|| self.ended.get(&turn).cloned())
    }

    fn end(&mut self, turn: TurnId) {
        let Some(target) = self.target(turn) else {
            return;
        };
        self.open.remove(&turn);
        if self.ended.insert(turn, target).is_none() {
            self.ended_order.push_back(turn);
        }
        if self.ended_order.len() > ENDED_MAX
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }
}

/// Records the spans of the turns that its [`Sampler`] selects.
pub struct Tracer {
    sampler: Sampler,
    clock: Arc<dyn Clock>,
    queue: Arc<SpanQueue>,
    turns: Mutex<RecordedTurns>,
    /// The number of recorded turns: events of others are not looked up while it is 0.
    recorded: AtomicUsize,
}

impl Tracer {
    /// Starts the export on the current runtime. `clock` gives the times of measured spans, as those
    /// of events.
    pub fn start(
        options: OtlpOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Arc<Self>, Exporter), ExporterError> {
        let sampler = options.sampler;
        let exporter = Exporter::start(options)?;
        let tracer = Self::new(sampler, clock, Arc::clone(exporter.queue()));
        Ok((Arc::new(tracer), exporter))
    }

    fn new(sampler: Sampler, clock: Arc<dyn Clock>, queue: Arc<SpanQueue>) -> Self {
        Self {
            sampler,
            clock,
            queue,
            turns: Mutex::default(),
            recorded: AtomicUsize::new(0),
        }
    }

    /// The place of measured spans of a turn that runs or has just ended, if it is recorded.
    pub(crate) fn target(&self, turn: TurnId) -> Option<TurnTarget> {
        if self.recorded.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.turns.lock().target(turn)
    }

    /// Records a measured span of a turn.
    pub(crate) fn write(&self, target: &TurnTarget, measured: MeasuredSpan) {
        // The duration is exact; the wall clock has whole milliseconds, like the times of events.
        let ended = self.nanos_of(measured.ended);
        let duration = measured.ended.saturating_duration_since(measured.started);
        let start = SpanStart {
            name: measured.name,
            kind: match measured.is_client {
                true => SpanKind::Client,
                false => SpanKind::Internal,
            },
            span: measured.span,
            parent: Some(measured.parent),
            has_remote_parent: false,
            started: ended.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
            attributes: measured.attributes,
        };
        let mut span = Vec::with_capacity(384);
        start.write(&target.trace, ended, measured.failure.as_deref(), &mut span);
        self.queue.push(span);
    }

    /// The wall clock at `instant`, in nanoseconds.
    fn nanos_of(&self, instant: Instant) -> u64 {
        let now = u64::try_from(self.clock.now().as_millis()).unwrap_or(0);
        let ago = u64::try_from(instant.elapsed().as_nanos()).unwrap_or(u64::MAX);
        now.saturating_mul(1_000_000).saturating_sub(ago)
    }

    fn update_count(&self, turns: &RecordedTurns) {
        self.recorded.store(turns.len(), Ordering::Relaxed);
    }
}

impl TurnTracer for Tracer {
    fn begin(&self, turn: StartingTurn<'_>) -> bool {
        let Some(trace_id) = trace_id_bytes(&trace_id_of(turn.trace, turn.turn_id)) else {
            return false;
        };
        let caller = turn.trace.map(|_| turn.caller.sampled);
        if !self.sampler.is_sampled(trace_id, caller) {
            return false;
        }
        let mut turns = self.turns.lock();
        if turns.open.len() >= TURNS_MAX {
            drop(turns);
            count_dropped(DropReason::Limit, 1);
            // The caller and the services may record the trace all the same.
            return true;
        }
        if let Some(open) = OpenTurn::new(&turn) {
            turns.open.insert(turn.turn_id, open);
        }
        self.update_count(&turns);
        true
    }

    fn discard(&self, turn: TurnId) {
        let mut turns = self.turns.lock();
        turns.open.remove(&turn);
        self.update_count(&turns);
    }

    fn observe(&self, event: TracedEvent<'_>) {
        if self.recorded.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut turns = self.turns.lock();
        let Some(open) = turns.open.get_mut(&event.turn_id) else {
            return;
        };
        if open.observe(&event, &mut |span| self.queue.push(span)) {
            turns.end(event.turn_id);
            self.update_count(&turns);
        }
    }

    fn record_commit(&self, turn: TurnId, batch: CommittedBatch) {
        let Some(target) = self.target(turn) else {
            return;
        };
        let events = i64::try_from(batch.events).unwrap_or(i64::MAX);
        let parent = target.turn;
        self.record(
            turn,
            MeasuredSpan {
                name: "commit".to_owned(),
                is_client: false,
                span: random_span(),
                parent,
                started: batch.began,
                ended: batch.ended,
                failure: None,
                attributes: vec![("turnwire.log.events", SpanValue::Int(events))],
            },
        );
    }

    fn record(&self, turn: TurnId, span: MeasuredSpan) {
        let mut turns = self.turns.lock();
        if turns.open.get_mut(&turn).is_some_and(|open| !open.admit()) {
            return;
        }
        let target = turns.target(turn);
        drop(turns);
        if let Some(target) = target {
            self.write(&target, span);
        }
    }
}

/// A span id that nothing else names.
pub(crate) fn random_span() -> SpanId {
    SpanId::of_bits(getrandom::u64().unwrap_or(1))
}

#[cfg(test)]
mod tests;
