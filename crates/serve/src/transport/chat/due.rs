//! What is due to one chat stream: slices of shared frames with what is in them, so that frames
//! are counted when they are written and not when they are meant.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;
use smallvec::SmallVec;
use turnwire_wire::pc3::{Mark, Marks};

/// Slices given to one write: the kernel takes 1,024, few are ever due.
const SLICES_MAX: usize = 64;

/// A frame above this is sent, and counted as too large (D-15).
const FRAME_TARGET: usize = 256 << 10;

/// A frame above this is not sent, and its stream ends (D-15).
const FRAME_MAX: usize = 16 << 20;

/// Stands beside the marks of an event in the word that a ring keeps of it: its frame is large.
const LARGE: u64 = 1 << 32;
/// As `LARGE`: its frame is too large to be sent.
const TOO_LARGE: u64 = 1 << 33;

/// The word for an event that gave `bytes` bytes of frames.
pub(super) fn word(marks: Marks, bytes: usize) -> u64 {
    let size = match bytes {
        0..=FRAME_TARGET => 0,
        _ if bytes <= FRAME_MAX => LARGE,
        _ => TOO_LARGE,
    };
    u64::from(marks.bits()) | size
}

/// How many frames an event gave, of which this is the word.
pub(super) fn frames_of(word: u64) -> usize {
    Marks::from_bits(word as u32).len()
}

/// How many frames of which kind. A slice has one or two kinds, mostly.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tally {
    counts: SmallVec<[(Mark, u32); 2]>,
    large: u32,
    too_large: bool,
}

impl Tally {
    /// Takes in what was said of an event, without its first `skip` frames.
    pub(super) fn add(&mut self, word: u64, skip: usize) {
        self.large += u32::from(word & LARGE != 0);
        self.too_large |= word & TOO_LARGE != 0;
        for mark in Marks::from_bits(word as u32).iter().skip(skip) {
            self.count(mark, 1);
        }
    }

    fn count(&mut self, mark: Mark, more: u32) {
        match self.counts.iter_mut().find(|(known, _)| *known == mark) {
            Some((_, count)) => *count += more,
            None => self.counts.push((mark, more)),
        }
    }

    /// Takes in what was said of events that follow each other: mostly the same of all, which is
    /// then read once.
    pub(super) fn add_all(&mut self, words: &[u64]) {
        for same in words.chunk_by(PartialEq::eq) {
            let word = same[0];
            // Beside the marks stands what is seldom so, and is taken in one by one.
            if word > u64::from(u32::MAX) {
                same.iter().for_each(|word| self.add(*word, 0));
                continue;
            }
            self.add(word, 0);
            let more = same.len() as u32 - 1;
            for mark in Marks::from_bits(word as u32).iter() {
                let known = self.counts.iter_mut().find(|(known, _)| *known == mark);
                known.into_iter().for_each(|(_, count)| *count += more);
            }
        }
    }

    /// How many frames in all.
    pub(super) fn frames(&self) -> u64 {
        self.counts.iter().map(|(_, n)| u64::from(*n)).sum()
    }

    /// How many of each kind.
    pub(super) fn counts(&self) -> &[(Mark, u32)] {
        &self.counts
    }

    /// Whether one of them is too large to be sent.
    pub(super) fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// How many were above the target.
    pub(super) fn large(&self) -> u32 {
        self.large
    }
}

/// Bytes waiting for the socket.
#[derive(Default)]
pub(super) struct Due {
    slices: VecDeque<(Bytes, Tally)>,
    /// Bytes of the first slice already written.
    written: usize,
}

impl Due {
    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    pub(super) fn push(&mut self, frames: Bytes, tally: Tally) {
        if !frames.is_empty() {
            self.slices.push_back((frames, tally));
        }
    }

    /// The end, whatever was written: gives what is out of the slice at hand, and how many frames
    /// will never be.
    pub(super) fn give_up(&mut self) -> (Tally, u64) {
        let due = self.frames();
        let front = self.slices.front().map(|(bytes, _)| &bytes[..self.written]);
        let out = front.map(blocks_in).unwrap_or_default();
        self.slices.clear();
        let left = due - out.frames().min(due);
        (out, left)
    }

    /// Frames not wholly written, as far as is known: a slice counts until its last byte is out.
    pub(super) fn frames(&self) -> u64 {
        self.slices.iter().map(|(_, tally)| tally.frames()).sum()
    }

    /// The bytes due, for one write.
    pub(super) fn slices(&self) -> SmallVec<[IoSlice<'_>; SLICES_MAX]> {
        let mut skip = self.written;
        self.slices
            .iter()
            .take(SLICES_MAX)
            .map(|(bytes, _)| IoSlice::new(&bytes[std::mem::take(&mut skip)..]))
            .collect()
    }

    /// `n` bytes were taken by the socket; `out` is told what is wholly out by it.
    pub(super) fn advance(&mut self, mut n: usize, mut out: impl FnMut(&Tally)) {
        while let Some((front, tally)) = self.slices.front() {
            let left = front.len() - self.written;
            if n < left {
                self.written += n;
                return;
            }
            n -= left;
            out(tally);
            self.written = 0;
            self.slices.pop_front();
        }
        // An idle stream keeps nothing.
        if self.slices.capacity() > 4 {
            self.slices = VecDeque::new();
        }
    }
}

/// The frames that are whole in the beginning of a slice.
fn blocks_in(written: &[u8]) -> Tally {
    let mut tally = Tally::default();
    let text = String::from_utf8_lossy(written);
    // What comes after the last end of a block is no block yet.
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    for mark in whole.split("\n\n").filter_map(mark_of) {
        tally.count(mark, 1);
    }
    tally
}

/// What kind of frame a block is.
fn mark_of(block: &str) -> Option<Mark> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let event = field("event: ")?;
    let data: serde_json::Value = serde_json::from_str(field("data: ")?).ok()?;
    let code = data["error"]["code"].as_str();
    // Two kinds of error share a code: the one that ends the turn and the one that does not.
    let goes_on = data["is_final"] == false;
    let is = |mark: &&Mark| {
        mark.event_type() == event
            && mark.error_code().or(mark.cancel_code()) == code
            && (event != "error" || mark.terminal().is_none() == goes_on)
    };
    Mark::ALL.iter().find(is).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(of: &[Mark]) -> Marks {
        let bits = of
            .iter()
            .rev()
            .fold(0, |bits, mark| bits << 8 | (mark.index() as u32 + 1));
        Marks::from_bits(bits)
    }

    fn text(n: u32) -> (Bytes, Tally) {
        let mut tally = Tally::default();
        (0..n).for_each(|_| tally.add(word(marks(&[Mark::Text]), 10), 0));
        (Bytes::from(vec![b'x'; n as usize * 10]), tally)
    }

    #[test]
    fn law_11_frames_count_when_their_last_byte_is_out() {
        let mut due = Due::default();
        for n in [3, 1] {
            let (bytes, tally) = text(n);
            due.push(bytes, tally);
        }
        assert_eq!(due.frames(), 4);
        let mut out = 0;
        for step in [29, 1, 9, 1] {
            due.advance(step, |tally| out += tally.frames());
        }
        assert_eq!(out, 4);
        assert!(due.is_empty());
        let (bytes, tally) = text(2);
        due.push(bytes, tally);
        due.advance(19, |_| panic!("not yet"));
        assert_eq!(due.frames(), 2);
    }

    #[test]
    fn law_11_of_a_slice_that_is_cut_the_frames_that_are_out_count() {
        let block = |event: &str, more: &str| {
            format!("id: x-0\nevent: {event}\ndata: {{\"event_type\":\"{event}\"{more}}}\n\n")
        };
        let error = block("error", ",\"error\":{\"code\":\"RATE_LIMIT_ERROR\"}");
        let all = [block("text", ""), block("text", ""), error].concat();
        let mut tally = Tally::default();
        tally.add(
            word(marks(&[Mark::Text, Mark::Text, Mark::ErrorRateLimit]), 9),
            0,
        );
        let two = block("text", "").len() * 2;
        for (written, counts, left) in [
            (two - 1, vec![(Mark::Text, 1)], 2),
            (two, vec![(Mark::Text, 2)], 1),
            (all.len() - 1, vec![(Mark::Text, 2)], 1),
        ] {
            let mut due = Due::default();
            due.push(Bytes::from(all.clone()), tally.clone());
            due.advance(written, |_| panic!("not whole"));
            let (out, lost) = due.give_up();
            assert_eq!((out.counts().to_vec(), lost), (counts, left));
        }
        assert_eq!(
            mark_of(all.rsplit("\n\n").nth(1).expect("the error")),
            Some(Mark::ErrorRateLimit)
        );
        for (ends, mark) in [(true, Mark::ErrorEnvelope), (false, Mark::ReportedEnvelope)] {
            let more =
                format!(",\"error\":{{\"code\":\"CCS_ENVELOPE_ERROR\"}},\"is_final\":{ends}");
            assert_eq!(mark_of(&block("error", &more)), Some(mark));
        }
    }

    #[test]
    fn law_11_the_same_said_of_many_counts_as_often() {
        let words = [
            word(marks(&[Mark::Text]), 10),
            word(marks(&[Mark::Text]), 10),
            word(marks(&[Mark::Text]), FRAME_TARGET + 1),
            word(marks(&[Mark::Text]), FRAME_TARGET + 1),
            word(Marks::NONE, 0),
            word(marks(&[Mark::Text, Mark::Text, Mark::Usage]), 10),
            word(marks(&[Mark::Text, Mark::Text, Mark::Usage]), 10),
            word(marks(&[Mark::Text]), 10),
        ];
        for from in 0..words.len() {
            for to in from..=words.len() {
                let (mut one_by_one, mut at_once) = (Tally::default(), Tally::default());
                words[from..to]
                    .iter()
                    .for_each(|word| one_by_one.add(*word, 0));
                at_once.add_all(&words[from..to]);
                assert_eq!(at_once, one_by_one, "{from}..{to}");
            }
        }
    }

    #[test]
    fn d_15_a_large_frame_is_counted_and_skipped_frames_are_not() {
        let mut tally = Tally::default();
        tally.add(
            word(marks(&[Mark::Usage, Mark::Completed]), FRAME_TARGET + 1),
            1,
        );
        assert_eq!(tally.large(), 1);
        assert_eq!(tally.counts(), [(Mark::Completed, 1)]);
        assert!(!tally.is_too_large());
        tally.add(word(marks(&[Mark::Text]), FRAME_MAX + 1), 0);
        assert!(tally.is_too_large());
    }
}
