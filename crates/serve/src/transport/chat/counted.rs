//! The counters of chat frames (S1 1.12), counted where frames are written.
//!
//! Each has the five dimensions of S1-133; what does not apply is empty. A turn of one agent has
//! only the version of its definition.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::{Counter, Histogram, Label, counter, histogram};
use parking_lot::Mutex;
use turnwire_event::metric;
use turnwire_wire::pc3::Mark;

use super::due::Tally;

/// Versions that have counters of their own. An operator has a handful; a hundred is a mistake,
/// and from there on they are counted together.
const VERSIONS_MAX: usize = 64;

/// The counters of every version, made when first wanted.
#[derive(Default)]
pub struct Counted(Mutex<HashMap<String, Arc<Counters>>>);

impl Counted {
    /// The counters of turns of this version of the agent's definition.
    pub(super) fn of(&self, version: &str) -> Arc<Counters> {
        let mut all = self.0.lock();
        if let Some(known) = all.get(version) {
            return known.clone();
        }
        let version = if all.len() < VERSIONS_MAX {
            version
        } else {
            ""
        };
        let counters = all
            .entry(version.to_owned())
            .or_insert_with(|| Arc::new(Counters::new(version)));
        counters.clone()
    }
}

/// The counters of one version.
pub(super) struct Counters {
    emitted: Vec<Counter>,
    /// Beside `emitted`: of the terminal's type, and of the error's code.
    terminal: Vec<Option<Counter>>,
    error: Vec<Option<Counter>>,
    pub(super) dropped: Counter,
    pub(super) oversize: Counter,
    pub(super) ttfe_ms: Histogram,
}

impl Counters {
    fn new(version: &str) -> Self {
        let with = |more: Option<(&'static str, &'static str)>| {
            let mut labels: Vec<Label> = metric::dimensions(version)
                .into_iter()
                .map(|(name, value)| Label::new(name, value))
                .collect();
            labels.extend(more.map(|(name, value)| Label::new(name, value)));
            labels
        };
        let each = |name: &'static str, of: fn(Mark) -> Option<(&'static str, &'static str)>| {
            let counter = |mark: &Mark| of(*mark).map(|label| counter!(name, with(Some(label))));
            Mark::ALL.iter().map(counter).collect::<Vec<_>>()
        };
        let emitted = |mark: &Mark| {
            let label = ("event_type", mark.event_type());
            counter!(metric::STREAM_EVENTS_EMITTED_TOTAL, with(Some(label)))
        };
        Self {
            emitted: Mark::ALL.iter().map(emitted).collect(),
            terminal: each(metric::STREAM_TERMINAL_FRAME_EMITTED_TOTAL, |mark| {
                mark.terminal().map(|kind| ("type", kind))
            }),
            error: each(metric::STREAM_ERROR_FRAME_EMITTED_TOTAL, |mark| {
                mark.error_code().map(|code| ("code", code))
            }),
            dropped: counter!(metric::STREAM_SSE_FRAME_DROPPED_TOTAL, with(None)),
            oversize: counter!(metric::STREAM_FRAME_OVERSIZE_TOTAL, with(None)),
            ttfe_ms: histogram!(metric::STREAM_TTFE_MS, with(None)),
        }
    }

    /// Frames that are out.
    pub(super) fn add(&self, tally: &Tally) {
        for &(mark, count) in tally.counts() {
            let (at, count) = (mark.index(), u64::from(count));
            self.emitted[at].increment(count);
            for more in [&self.terminal[at], &self.error[at]].into_iter().flatten() {
                more.increment(count);
            }
        }
        if tally.large() > 0 {
            self.oversize.increment(tally.large().into());
            tracing::warn!(frames = tally.large(), "a frame is above 256 KB");
        }
    }
}
