//! The counters of turn streams (S1 1.12), counted where frames are written.
//!
//! Each has the five dimensions of S1-133; those that do not apply are empty. Frames of a sub-agent's
//! events count for the sub-agent, all others for the turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Histogram, Label, counter, histogram};
use parking_lot::Mutex;
use turnwire_event::metric::{self, TurnDimensions};

use super::TurnFormat;
use super::emitter_label::{EmitterLabel, EmitterLabels};
use super::tally::{FrameLabels, KindTally};

/// The largest number of dimensions with counters of their own; further ones share counters without
/// dimensions. An operator has a handful of versions and arms.
const DIMENSIONS_MAX: usize = 64;

/// The `TurnCounters` of every wire and set of dimensions, created on first use.
#[derive(Default)]
pub struct CountersByVersion(Mutex<HashMap<(&'static str, TurnDimensions), Arc<TurnCounters>>>);

impl CountersByVersion {
    /// The counters of turns with these dimensions on the wire of `F`.
    pub(super) fn get<F: TurnFormat>(&self, dimensions: &TurnDimensions) -> Arc<TurnCounters> {
        let mut counters = self.0.lock();
        let key = (F::OPEN_STREAMS, dimensions.clone());
        let is_known = counters.contains_key(&key) || counters.len() < DIMENSIONS_MAX;
        let key = match is_known {
            true => key,
            false => (key.0, TurnDimensions::default()),
        };
        let new = |(_, dimensions): &(_, TurnDimensions)| {
            Arc::new(TurnCounters::new(dimensions.clone(), F::frame_labels()))
        };
        counters.entry(key).or_insert_with_key(new).clone()
    }
}

/// The counters of one wire for one set of dimensions.
pub(super) struct TurnCounters {
    dimensions: TurnDimensions,
    /// By the index of the kind in [`TurnFormat::frame_labels`].
    kinds: Vec<FrameLabels>,
    /// The counters of the turn's own frames, by kind.
    by_kind: Vec<KindCounters>,
    /// Those of sub-agents, created on first use.
    by_emitter: Mutex<HashMap<EmitterLabel, Arc<Vec<KindCounters>>>>,
    pub(super) dropped: Counter,
    oversize: Counter,
    first_frame: Histogram,
}

/// The counters of one kind of frame.
struct KindCounters {
    emitted: Counter,
    terminal: Option<Counter>,
    error: Option<Counter>,
}

impl KindCounters {
    fn new(labels: &[(&'static str, String); 5], kind: &FrameLabels) -> Self {
        let labelled = |metric: &'static str, name: &'static str, value: &'static str| {
            let mut labels = metric_labels(labels);
            labels.push(Label::new(name, value));
            counter!(metric, labels)
        };
        Self {
            emitted: labelled(
                metric::STREAM_EVENTS_EMITTED_TOTAL,
                "event_type",
                kind.event_type,
            ),
            terminal: kind
                .terminal
                .map(|end| labelled(metric::STREAM_TERMINAL_FRAME_EMITTED_TOTAL, "type", end)),
            error: kind
                .error_code
                .map(|code| labelled(metric::STREAM_ERROR_FRAME_EMITTED_TOTAL, "code", code)),
        }
    }

    fn increment(&self, count: u64) {
        self.emitted.increment(count);
        for counter in [&self.terminal, &self.error].into_iter().flatten() {
            counter.increment(count);
        }
    }
}

fn metric_labels(labels: &[(&'static str, String); 5]) -> Vec<Label> {
    let labels = labels.iter();
    labels
        .map(|(name, value)| Label::new(*name, value.clone()))
        .collect()
}

impl TurnCounters {
    fn new(dimensions: TurnDimensions, kinds: Vec<FrameLabels>) -> Self {
        let labels = dimensions.labels();
        let counters = |kind: &FrameLabels| KindCounters::new(&labels, kind);
        Self {
            by_kind: kinds.iter().map(counters).collect(),
            by_emitter: Mutex::default(),
            dropped: counter!(
                metric::STREAM_SSE_FRAME_DROPPED_TOTAL,
                metric_labels(&labels)
            ),
            oversize: counter!(metric::STREAM_FRAME_OVERSIZE_TOTAL, metric_labels(&labels)),
            first_frame: histogram!(metric::STREAM_TTFE_SECONDS, metric_labels(&labels)),
            dimensions,
            kinds,
        }
    }

    /// The counters of the frames of one sub-agent, by kind.
    fn of_emitter(&self, emitter: EmitterLabel) -> Arc<Vec<KindCounters>> {
        let mut by_emitter = self.by_emitter.lock();
        let new = || {
            let (vertical, sub_agent_id) = EmitterLabels::global().name(emitter);
            let labels = self.dimensions.labels_of(&vertical, &sub_agent_id);
            let kinds = self.kinds.iter();
            Arc::new(kinds.map(|kind| KindCounters::new(&labels, kind)).collect())
        };
        by_emitter.entry(emitter).or_insert_with(new).clone()
    }

    pub(super) fn record_sent(&self, tally: &KindTally) {
        for &((kind, emitter), count) in &tally.counts {
            let (kind, count) = (usize::from(kind), u64::from(count));
            match emitter {
                EmitterLabel::TURN => self.by_kind[kind].increment(count),
                sub_agent => self.of_emitter(sub_agent)[kind].increment(count),
            }
        }
        if tally.large > 0 {
            self.oversize.increment(tally.large.into());
            tracing::warn!(frames = tally.large, "a frame is above 256 KB");
        }
    }

    pub(super) fn record_first_frame(&self, elapsed: Duration) {
        self.first_frame.record(elapsed);
    }
}
