//! The counters of turn streams (S1 1.12), counted where frames are written.
//!
//! Each has the five dimensions of S1-133; those that do not apply are empty. A turn of one agent
//! has only the version of its definition.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Histogram, Label, counter, histogram};
use parking_lot::Mutex;
use turnwire_event::metric;

use super::tally::{FrameMark, MarkTally};

/// Definition versions with counters of their own. An operator has a handful; a hundred is a
/// mistake, and from there on they are counted together.
const VERSIONS_MAX: usize = 64;

/// The counters of every version of the agent's definition, created on first use.
pub struct CountersByVersion<M>(Mutex<HashMap<String, Arc<TurnCounters<M>>>>);

impl<M> Default for CountersByVersion<M> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<M: FrameMark> CountersByVersion<M> {
    pub(crate) fn get(&self, version: &str) -> Arc<TurnCounters<M>> {
        let mut by_version = self.0.lock();
        if let Some(counters) = by_version.get(version) {
            return counters.clone();
        }
        let version = if by_version.len() < VERSIONS_MAX {
            version
        } else {
            ""
        };
        let counters = by_version
            .entry(version.to_owned())
            .or_insert_with(|| Arc::new(TurnCounters::new(version)));
        counters.clone()
    }
}

/// The counters of one version.
pub(crate) struct TurnCounters<M> {
    /// By [`FrameMark::index`], as are the two below.
    emitted: Vec<Counter>,
    /// Of marks that end a turn, by their type.
    terminal: Vec<Option<Counter>>,
    /// Of marks with an error code, by the code.
    error: Vec<Option<Counter>>,
    dropped: Counter,
    oversize: Counter,
    first_frame_ms: Histogram,
    marks: PhantomData<fn() -> M>,
}

impl<M: FrameMark> TurnCounters<M> {
    fn new(version: &str) -> Self {
        let with = |extra: Option<(&'static str, &'static str)>| {
            let mut labels: Vec<Label> = metric::dimensions(version)
                .into_iter()
                .map(|(name, value)| Label::new(name, value))
                .collect();
            labels.extend(extra.map(|(name, value)| Label::new(name, value)));
            labels
        };
        let each = |name: &'static str, of: fn(M) -> Option<(&'static str, &'static str)>| {
            let counter = |mark: &M| of(*mark).map(|label| counter!(name, with(Some(label))));
            M::ALL.iter().map(counter).collect::<Vec<_>>()
        };
        let emitted = |mark: &M| {
            let label = ("event_type", mark.event_type());
            counter!(metric::STREAM_EVENTS_EMITTED_TOTAL, with(Some(label)))
        };
        Self {
            emitted: M::ALL.iter().map(emitted).collect(),
            terminal: each(metric::STREAM_TERMINAL_FRAME_EMITTED_TOTAL, |mark| {
                mark.terminal().map(|kind| ("type", kind))
            }),
            error: each(metric::STREAM_ERROR_FRAME_EMITTED_TOTAL, |mark| {
                mark.error_code().map(|code| ("code", code))
            }),
            dropped: counter!(metric::STREAM_SSE_FRAME_DROPPED_TOTAL, with(None)),
            oversize: counter!(metric::STREAM_FRAME_OVERSIZE_TOTAL, with(None)),
            first_frame_ms: histogram!(metric::STREAM_TTFE_MS, with(None)),
            marks: PhantomData,
        }
    }

    pub(super) fn record_sent(&self, tally: &MarkTally<M>) {
        for &(mark, count) in tally.counts() {
            let (index, count) = (mark.index(), u64::from(count));
            self.emitted[index].increment(count);
            let labelled = [&self.terminal[index], &self.error[index]];
            for counter in labelled.into_iter().flatten() {
                counter.increment(count);
            }
        }
        if tally.large() > 0 {
            self.oversize.increment(tally.large().into());
            tracing::warn!(frames = tally.large(), "a frame is above 256 KB");
        }
    }

    pub(super) fn record_dropped(&self, frames: u64) {
        self.dropped.increment(frames);
    }

    pub(super) fn record_first_frame(&self, elapsed: Duration) {
        self.first_frame_ms.record(elapsed.as_secs_f64() * 1e3);
    }
}
