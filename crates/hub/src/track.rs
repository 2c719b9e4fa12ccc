//! The frame bytes of one wire, stored in runs: frames that one call projected lie next to each
//! other, so that a connection that wants all of them sends one slice.

use std::collections::VecDeque;

use bytes::Bytes;
use smallvec::SmallVec;
use turnwire_event::{EventFilter, EventHead, EventType, TurnId, TypeSet};

use crate::entry::RingEntry;

/// The number of tracks of a [`Ring`](crate::Ring): one for each version of each wire.
pub const TRACK_COUNT: usize = 4;

/// Projects an [`RingEntry`] to the frames of one wire.
///
/// The function appends the frames to the buffer and returns a tag that describes them. Only the
/// wire that writes the tag reads it; see [`FrameRun::select_turn`].
pub type ProjectFn<'a> = &'a dyn Fn(&RingEntry, &mut Vec<u8>) -> u64;

/// What the allocator adds to a buffer.
const BUFFER_BYTES: usize = 24;

/// Bytes of the events in one run: a run leaves the track as a whole, so a large one would keep the
/// memory of evicted events.
const RUN_BYTES_MAX: usize = 64 << 10;

/// Bytes of frames after which one read ends: what a reader whose socket is blocked can hold, beside
/// one larger frame.
const READ_BYTES_MAX: usize = 256 << 10;

/// The event types that end a turn.
const TERMINAL_TYPES: TypeSet = TypeSet::EMPTY
    .with(EventType::TurnCompleted)
    .with(EventType::TurnCancelled);

/// A list with its one item inline: an event that comes alone, as most deltas do, is a run by itself.
type RunList<T> = SmallVec<[T; 1]>;

/// The frames of consecutive entries, projected together by [`FrameTrack::extend`].
#[derive(Debug)]
struct ProjectedRun {
    bytes: Bytes,
    /// The offset behind the frames of each entry.
    ends: RunList<u32>,
    heads: RunList<EventHead>,
    /// The tag that [`ProjectFn`] returned for each entry.
    tags: RunList<u64>,
    /// The turn of all entries, or `None` if they differ or have no turn.
    turn: Option<TurnId>,
    types: TypeSet,
    has_suppressed: bool,
}

impl ProjectedRun {
    fn len(&self) -> u64 {
        self.heads.len() as u64
    }

    /// The memory of the run.
    fn weight(&self) -> usize {
        let per_event = size_of::<EventHead>() + size_of::<u64>() + size_of::<u32>();
        let lists = match self.heads.spilled() {
            true => 3 * BUFFER_BYTES + self.heads.len() * per_event,
            false => 0,
        };
        size_of::<(u64, Self)>() + BUFFER_BYTES + self.bytes.len() + lists
    }
}

/// A range of the frames of one projected run, lent to a reader under the lock of the track.
#[derive(Clone, Copy, Debug)]
pub struct FrameRun<'a> {
    run: &'a ProjectedRun,
    /// The range of entries, as indexes into the projected run.
    from: usize,
    to: usize,
}

impl FrameRun<'_> {
    /// Shortens the range to its first `n` events.
    #[must_use]
    pub fn first(self, n: usize) -> Self {
        Self {
            to: self.to.min(self.from + n),
            ..self
        }
    }

    /// The number of events in the range.
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    /// True if the range covers no event.
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The size of the frames in the range.
    pub fn bytes(&self) -> usize {
        self.start(self.to) - self.start(self.from)
    }

    /// The number of events from the start of the range whose frames fit into `bytes_max`.
    pub fn fitting(&self, bytes_max: usize) -> usize {
        let end = self.start(self.from) + bytes_max;
        self.run.ends[self.from..self.to].partition_point(|frame_end| *frame_end as usize <= end)
    }

    /// The headers of the events in the range, in order.
    pub fn heads(&self) -> &[EventHead] {
        &self.run.heads[self.from..self.to]
    }

    /// The offset of an event's frames in the run.
    fn start(&self, event: usize) -> usize {
        event
            .checked_sub(1)
            .map_or(0, |before| self.run.ends[before] as usize)
    }

    fn slice(&self, from: usize, to: usize) -> Bytes {
        self.run.bytes.slice(self.start(from)..self.start(to))
    }

    /// Passes the frames of the events that match `filter` to `send`, in the fewest slices, each
    /// with its number of events.
    pub fn select(&self, filter: &EventFilter, mut send: impl FnMut(Bytes, usize)) {
        let suppression_matches = !self.run.has_suppressed || filter.includes_suppressed();
        if suppression_matches && filter.passes_all(self.run.types) {
            return send(self.slice(self.from, self.to), self.len());
        }
        let passes = |index: usize| filter.matches(&self.run.heads[index]);
        let mut index = self.from;
        while index < self.to {
            let start = index;
            while index < self.to && passes(index) {
                index += 1;
            }
            if index > start {
                send(self.slice(start, index), index - start);
            }
            while index < self.to && !passes(index) {
                index += 1;
            }
        }
    }

    /// Passes the frames of `turn` to `send`, in the fewest slices, with the headers and the
    /// [`ProjectFn`] tags of their events. Returns true if the turn ends within the range.
    pub fn select_turn(
        &self,
        turn: TurnId,
        mut send: impl FnMut(Bytes, &[EventHead], &[u64]),
    ) -> bool {
        let mut send_range = |from: usize, to: usize| {
            let (heads, tags) = (&self.run.heads[from..to], &self.run.tags[from..to]);
            send(self.slice(from, to), heads, tags);
        };
        if self.run.turn == Some(turn) && !self.run.types.meets(TERMINAL_TYPES) {
            send_range(self.from, self.to);
            return false;
        }
        let is_of_turn = |index: usize| self.run.heads[index].turn == Some(turn);
        let mut index = self.from;
        while index < self.to {
            let start = index;
            let mut ended = false;
            while index < self.to && is_of_turn(index) && !ended {
                ended = self.run.heads[index].kind.is_terminal();
                index += 1;
            }
            if index > start {
                send_range(start, index);
            }
            if ended {
                return true;
            }
            while index < self.to && !is_of_turn(index) {
                index += 1;
            }
        }
        false
    }
}

/// The projected runs of one wire, over the entries of a ring.
#[derive(Debug, Default)]
pub(crate) struct FrameTrack {
    /// Each run with the index of its first entry.
    runs: VecDeque<(u64, ProjectedRun)>,
    /// The index of the first entry that is not projected yet.
    next: u64,
    weight: usize,
}

impl FrameTrack {
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Projects `entries`, the first of which has index `first`, and stores them as runs. Returns the
    /// weight of the runs.
    pub(crate) fn extend(
        &mut self,
        mut first: u64,
        mut entries: &[RingEntry],
        project: ProjectFn<'_>,
    ) -> usize {
        let before = self.weight;
        while !entries.is_empty() {
            let mut bytes = 0;
            let fits = entries.iter().take_while(|entry| {
                bytes += entry.bytes.len();
                bytes <= RUN_BYTES_MAX
            });
            let (run, rest) = entries.split_at(fits.count().max(1));
            self.push_run(first, run, project);
            first += run.len() as u64;
            entries = rest;
        }
        self.weight - before
    }

    fn push_run(&mut self, first: u64, entries: &[RingEntry], project: ProjectFn<'_>) {
        let size: usize = entries.iter().map(|entry| entry.bytes.len() + 48).sum();
        let mut bytes = Vec::with_capacity(size);
        let mut ends = RunList::with_capacity(entries.len());
        let mut tags = RunList::with_capacity(entries.len());
        for entry in entries {
            tags.push(project(entry, &mut bytes));
            ends.push(bytes.len() as u32);
        }
        let turn = entries.first().and_then(|entry| entry.head.turn);
        let run = ProjectedRun {
            bytes: bytes.into(),
            ends,
            heads: entries.iter().map(|entry| entry.head.clone()).collect(),
            tags,
            turn: turn.filter(|_| entries.iter().all(|entry| entry.head.turn == turn)),
            types: entries.iter().map(|entry| entry.head.kind).collect(),
            has_suppressed: entries.iter().any(|entry| entry.head.suppressed),
        };
        self.weight += run.weight();
        self.runs.push_back((first, run));
        self.next = first + entries.len() as u64;
    }

    /// Drops the runs whose entries all have an index below `first`. Returns their weight.
    pub(crate) fn trim(&mut self, first: u64) -> usize {
        let before = self.weight;
        while let Some((_, run)) = self
            .runs
            .pop_front_if(|(index, run)| *index + run.len() <= first)
        {
            self.weight -= run.weight();
        }
        if self.runs.is_empty() {
            self.runs.shrink_to_fit();
        }
        self.next = self.next.max(first);
        before - self.weight
    }

    /// The weight of all runs.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Passes runs to `receive`, starting at index `cursor`, until they cover `events_max` events or
    /// [`READ_BYTES_MAX`]. Returns the index behind the last of them.
    pub(crate) fn read(
        &self,
        cursor: u64,
        events_max: usize,
        receive: &mut dyn FnMut(FrameRun<'_>),
    ) -> u64 {
        let start = self
            .runs
            .partition_point(|(first, run)| first + run.len() <= cursor);
        let mut index = cursor;
        let mut remaining = events_max;
        let mut bytes = 0;
        for (first, run) in self.runs.iter().skip(start) {
            if remaining == 0 || bytes >= READ_BYTES_MAX {
                break;
            }
            bytes += run.bytes.len();
            let from = (index - first) as usize;
            let to = run.heads.len().min(from + remaining);
            remaining -= to - from;
            index = first + to as u64;
            receive(FrameRun { run, from, to });
        }
        index
    }
}

#[cfg(test)]
mod tests;
