//! Frame bytes of one wire, in runs: the frames made together stand together, so that a
//! connection that wants them all sends one slice.

use std::collections::VecDeque;

use bytes::Bytes;
use turnwire_event::{EventType, Filter, Head, TurnId, TypeSet};

use crate::entry::Entry;

/// How many kinds of frame bytes a ring can keep (wires and their versions).
pub const TRACKS: usize = 4;

/// What makes the frames of one wire. It appends the frames of an event to the bytes and says
/// what they are, in a word that only the maker and the reader of the wire understand.
pub type Project<'a> = &'a dyn Fn(&Entry, &mut Vec<u8>) -> u64;

/// The types that end a turn.
const ENDS: TypeSet = TypeSet::EMPTY
    .with(EventType::TurnCompleted)
    .with(EventType::TurnCancelled);

/// Frames that were made together.
#[derive(Debug)]
struct Made {
    bytes: Bytes,
    /// Where each frame ends.
    ends: Vec<u32>,
    heads: Vec<Head>,
    /// What was said of the frames of each event.
    words: Vec<u64>,
    /// The turn that every event belongs to, if there is just one.
    turn: Option<TurnId>,
    types: TypeSet,
    any_hidden: bool,
}

impl Made {
    fn len(&self) -> u64 {
        self.heads.len() as u64
    }
}

/// Part of the frames that were made together, lent for a look.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    made: &'a Made,
    /// The part that is meant, as frame numbers.
    from: usize,
    to: usize,
}

impl Run<'_> {
    /// The first `n` events of it.
    #[must_use]
    pub fn first(self, n: usize) -> Self {
        Self {
            to: self.to.min(self.from + n),
            ..self
        }
    }

    /// How many events it covers.
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    /// Whether it covers none.
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The heads of the events it covers.
    pub fn heads(&self) -> &[Head] {
        &self.made.heads[self.from..self.to]
    }

    fn slice(&self, from: usize, to: usize) -> Bytes {
        let start = |frame: usize| {
            if frame == 0 {
                0
            } else {
                self.made.ends[frame - 1] as usize
            }
        };
        self.made.bytes.slice(start(from)..start(to))
    }

    /// The bytes that pass `filter`, as few slices as can be, with the number of events in them.
    pub fn select(&self, filter: &Filter, mut put: impl FnMut(Bytes, usize)) {
        let unasked = !self.made.any_hidden || filter.includes_suppressed();
        if unasked && filter.passes_all(self.made.types) {
            return put(self.slice(self.from, self.to), self.len());
        }
        let passes = |at: usize| filter.matches(&self.made.heads[at]);
        let mut at = self.from;
        while at < self.to {
            let begin = at;
            while at < self.to && passes(at) {
                at += 1;
            }
            if at > begin {
                put(self.slice(begin, at), at - begin);
            }
            while at < self.to && !passes(at) {
                at += 1;
            }
        }
    }

    /// The bytes that belong to `turn`, as few slices as can be, with the heads of their events
    /// and what was said of them. Gives back whether the turn ends among them.
    pub fn of_turn(&self, turn: TurnId, mut put: impl FnMut(Bytes, &[Head], &[u64])) -> bool {
        let mut lend = |from: usize, to: usize| {
            let (heads, words) = (&self.made.heads[from..to], &self.made.words[from..to]);
            put(self.slice(from, to), heads, words);
        };
        if self.made.turn == Some(turn) && !self.made.types.meets(ENDS) {
            lend(self.from, self.to);
            return false;
        }
        let mine = |at: usize| self.made.heads[at].turn == Some(turn);
        let mut at = self.from;
        while at < self.to {
            let begin = at;
            let mut ended = false;
            while at < self.to && mine(at) && !ended {
                ended = self.made.heads[at].kind.is_terminal();
                at += 1;
            }
            if at > begin {
                lend(begin, at);
            }
            if ended {
                return true;
            }
            while at < self.to && !mine(at) {
                at += 1;
            }
        }
        false
    }
}

/// The runs of one wire, over the entries of a ring.
#[derive(Debug, Default)]
pub(crate) struct Track {
    /// The number of the first entry of each run, and the run.
    runs: VecDeque<(u64, Made)>,
    /// The number of the first entry that has no frame yet.
    next: u64,
}

impl Track {
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Makes one run of `entries`, which begin at number `first`.
    pub(crate) fn extend(&mut self, first: u64, entries: &[Entry], project: Project<'_>) {
        let size: usize = entries.iter().map(|entry| entry.bytes.len() + 48).sum();
        let mut bytes = Vec::with_capacity(size);
        let mut ends = Vec::with_capacity(entries.len());
        let mut words = Vec::with_capacity(entries.len());
        for entry in entries {
            words.push(project(entry, &mut bytes));
            ends.push(bytes.len() as u32);
        }
        let turn = entries.first().and_then(|entry| entry.head.turn);
        let made = Made {
            bytes: bytes.into(),
            ends,
            heads: entries.iter().map(|entry| entry.head.clone()).collect(),
            words,
            turn: turn.filter(|_| entries.iter().all(|entry| entry.head.turn == turn)),
            types: entries.iter().map(|entry| entry.head.kind).collect(),
            any_hidden: entries.iter().any(|entry| entry.head.suppressed),
        };
        self.runs.push_back((first, made));
        self.next = first + entries.len() as u64;
    }

    /// Forgets runs that lie wholly before entry `first`.
    pub(crate) fn trim(&mut self, first: u64) {
        while self
            .runs
            .front()
            .is_some_and(|(at, made)| at + made.len() <= first)
        {
            self.runs.pop_front();
        }
        self.next = self.next.max(first);
    }

    /// Lends runs from entry `cursor` on, until `events_max` events are in them; gives the number
    /// of the entry after the last.
    pub(crate) fn read(
        &self,
        cursor: u64,
        events_max: usize,
        take: &mut dyn FnMut(Run<'_>),
    ) -> u64 {
        let begin = self
            .runs
            .partition_point(|(first, made)| first + made.len() <= cursor);
        let mut at = cursor;
        let mut left = events_max;
        for (first, made) in self.runs.iter().skip(begin) {
            if left == 0 {
                break;
            }
            let from = (at - first) as usize;
            let to = made.heads.len().min(from + left);
            left -= to - from;
            at = first + to as u64;
            take(Run { made, from, to });
        }
        at
    }
}
