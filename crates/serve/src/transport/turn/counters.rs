//! The counters of turn streams (S1 1.12), counted where frames are written.
//!
//! Each has the five dimensions of S1-133; those that do not apply are empty. A turn of one agent
//! has only the version of its definition.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Histogram, Label, counter, histogram};
use parking_lot::Mutex;
use turnwire_event::metric;

use super::TurnFormat;
use super::tally::{FrameLabels, KindTally};

/// The largest number of versions with counters of their own; further ones share counters without a
/// version. An operator has a handful.
const VERSIONS_MAX: usize = 64;

/// The `TurnCounters` of every wire and version of the agent's definition, created on first use.
#[derive(Default)]
pub struct CountersByVersion(Mutex<HashMap<(&'static str, String), Arc<TurnCounters>>>);

impl CountersByVersion {
    /// The counters of `version` on the wire of `F`.
    pub(super) fn get<F: TurnFormat>(&self, version: &str) -> Arc<TurnCounters> {
        let mut by_version = self.0.lock();
        let key = (F::OPEN_STREAMS, version.to_owned());
        let is_known = by_version.contains_key(&key) || by_version.len() < VERSIONS_MAX;
        let key = if is_known {
            key
        } else {
            (key.0, String::new())
        };
        let new =
            |(_, version): &(_, String)| Arc::new(TurnCounters::new(version, &F::frame_labels()));
        by_version.entry(key).or_insert_with_key(new).clone()
    }
}

/// The counters of one wire for one version of the agent's definition.
pub(super) struct TurnCounters {
    /// By the index of the kind in [`TurnFormat::frame_labels`].
    by_kind: Vec<KindCounters>,
    pub(super) dropped: Counter,
    oversize: Counter,
    first_frame_ms: Histogram,
}

/// The counters of one kind of frame.
struct KindCounters {
    emitted: Counter,
    terminal: Option<Counter>,
    error: Option<Counter>,
}

impl TurnCounters {
    fn new(version: &str, kinds: &[FrameLabels]) -> Self {
        let labels = || -> Vec<Label> {
            let dimensions = metric::dimensions(version).into_iter();
            dimensions
                .map(|(name, value)| Label::new(name, value))
                .collect()
        };
        let labelled = |metric: &'static str, name: &'static str, value: &'static str| {
            let mut labels = labels();
            labels.push(Label::new(name, value));
            counter!(metric, labels)
        };
        let counters = |kind: &FrameLabels| KindCounters {
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
        };
        Self {
            by_kind: kinds.iter().map(counters).collect(),
            dropped: counter!(metric::STREAM_SSE_FRAME_DROPPED_TOTAL, labels()),
            oversize: counter!(metric::STREAM_FRAME_OVERSIZE_TOTAL, labels()),
            first_frame_ms: histogram!(metric::STREAM_TTFE_MS, labels()),
        }
    }

    pub(super) fn record_sent(&self, tally: &KindTally) {
        for &(kind, count) in &tally.counts {
            let (counters, count) = (&self.by_kind[usize::from(kind)], u64::from(count));
            counters.emitted.increment(count);
            for counter in [&counters.terminal, &counters.error].into_iter().flatten() {
                counter.increment(count);
            }
        }
        if tally.large > 0 {
            self.oversize.increment(tally.large.into());
            tracing::warn!(frames = tally.large, "a frame is above 256 KB");
        }
    }

    pub(super) fn record_first_frame(&self, elapsed: Duration) {
        self.first_frame_ms.record(elapsed.as_secs_f64() * 1e3);
    }
}
