//! The tally of chat frames: how many of which kind are in a slice, so that frames are counted when
//! they are written.

use smallvec::SmallVec;
use turnwire_wire::pc3::{Mark, Marks};

use super::super::carrier::pending::FrameTally;
use super::super::turn::TurnTally;

/// A frame above this is sent, and counted as too large (D-15).
const FRAME_TARGET: usize = 256 << 10;

/// A frame above this is not sent, and its stream ends (D-15).
const FRAME_MAX: usize = 16 << 20;

/// Stands beside the [`Marks`] in the word of an event: its frame is above [`FRAME_TARGET`].
const LARGE: u64 = 1 << 32;
/// As [`LARGE`]: its frame is above [`FRAME_MAX`].
const TOO_LARGE: u64 = 1 << 33;

/// The word of an event that gave `bytes` bytes of frames.
pub(super) fn word(marks: Marks, bytes: usize) -> u64 {
    let size = match bytes {
        0..=FRAME_TARGET => 0,
        _ if bytes <= FRAME_MAX => LARGE,
        _ => TOO_LARGE,
    };
    u64::from(marks.bits()) | size
}

/// The number of frames of each kind. A slice has one or two kinds, mostly.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MarkTally {
    counts: SmallVec<[(Mark, u32); 2]>,
    large: u32,
    is_too_large: bool,
}

impl MarkTally {
    fn count(&mut self, mark: Mark, frames: u32) {
        match self.counts.iter_mut().find(|(other, _)| *other == mark) {
            Some((_, count)) => *count += frames,
            None => self.counts.push((mark, frames)),
        }
    }

    pub(super) fn counts(&self) -> &[(Mark, u32)] {
        &self.counts
    }

    /// The number of frames above [`FRAME_TARGET`].
    pub(super) fn large(&self) -> u32 {
        self.large
    }

    /// Counts the complete blocks at the beginning of a slice.
    pub(super) fn of_blocks(written: &[u8]) -> Self {
        let mut tally = Self::default();
        let text = String::from_utf8_lossy(written);
        // The bytes after the last end of a block are no block yet.
        let complete = text.rfind("\n\n").map_or("", |end| &text[..end]);
        for mark in complete.split("\n\n").filter_map(mark_of) {
            tally.count(mark, 1);
        }
        tally
    }
}

impl FrameTally for MarkTally {
    fn frames(&self) -> u64 {
        self.counts.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    fn is_too_large(&self) -> bool {
        self.is_too_large
    }
}

impl TurnTally for MarkTally {
    fn add(&mut self, word: u64, skip: usize) {
        self.large += u32::from(word & LARGE != 0);
        self.is_too_large |= word & TOO_LARGE != 0;
        for mark in Marks::from_bits(word as u32).iter().skip(skip) {
            self.count(mark, 1);
        }
    }

    /// Adjacent events mostly have the same word, which is then read once.
    fn add_all(&mut self, words: &[u64]) {
        for same in words.chunk_by(PartialEq::eq) {
            let word = same[0];
            // Large frames are rare and counted one by one.
            if word > u64::from(u32::MAX) {
                same.iter().for_each(|word| self.add(*word, 0));
                continue;
            }
            self.add(word, 0);
            let others = same.len() as u32 - 1;
            for mark in Marks::from_bits(word as u32).iter() {
                let counted = self.counts.iter_mut().find(|(other, _)| *other == mark);
                counted.into_iter().for_each(|(_, count)| *count += others);
            }
        }
    }
}

/// The kind of frame that a block is.
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
    use bytes::Bytes;

    use super::super::super::carrier::pending::PendingWrites;
    use super::*;

    fn marks(of: &[Mark]) -> Marks {
        let bits = of
            .iter()
            .rev()
            .fold(0, |bits, mark| bits << 8 | (mark.index() as u32 + 1));
        Marks::from_bits(bits)
    }

    fn text(n: u32) -> (Bytes, MarkTally) {
        let mut tally = MarkTally::default();
        (0..n).for_each(|_| tally.add(word(marks(&[Mark::Text]), 10), 0));
        (Bytes::from(vec![b'x'; n as usize * 10]), tally)
    }

    #[test]
    fn law_11_frames_count_when_their_last_byte_is_out() {
        let mut pending = PendingWrites::new();
        for n in [3, 1] {
            let (bytes, tally) = text(n);
            pending.push(bytes, tally);
        }
        assert_eq!(pending.frames(), 4);
        let mut sent = 0;
        for step in [29, 1, 9, 1] {
            pending.advance(step, |tally| sent += tally.frames());
        }
        assert_eq!(sent, 4);
        assert!(pending.is_empty());
        let (bytes, tally) = text(2);
        pending.push(bytes, tally);
        pending.advance(19, |_| panic!("not yet"));
        assert_eq!(pending.frames(), 2);
    }

    #[test]
    fn law_11_of_a_slice_that_is_cut_the_frames_that_are_out_count() {
        let block = |event: &str, more: &str| {
            format!("id: x-0\nevent: {event}\ndata: {{\"event_type\":\"{event}\"{more}}}\n\n")
        };
        let error = block("error", ",\"error\":{\"code\":\"RATE_LIMIT_ERROR\"}");
        let all = [block("text", ""), block("text", ""), error].concat();
        let mut tally = MarkTally::default();
        let three = marks(&[Mark::Text, Mark::Text, Mark::ErrorRateLimit]);
        tally.add(word(three, 9), 0);
        let two = block("text", "").len() * 2;
        for (written, counts) in [
            (two - 1, vec![(Mark::Text, 1)]),
            (two, vec![(Mark::Text, 2)]),
            (all.len() - 1, vec![(Mark::Text, 2)]),
        ] {
            let mut pending = PendingWrites::new();
            pending.push(Bytes::from(all.clone()), tally.clone());
            pending.advance(written, |_| panic!("not complete"));
            let partial = MarkTally::of_blocks(pending.partial());
            assert_eq!((partial.counts().to_vec(), pending.frames()), (counts, 3));
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
                let (mut one_by_one, mut at_once) = (MarkTally::default(), MarkTally::default());
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
        let mut tally = MarkTally::default();
        tally.add(
            word(marks(&[Mark::Usage, Mark::Completed]), FRAME_TARGET + 1),
            1,
        );
        assert_eq!(tally.large(), 1);
        assert_eq!(tally.counts(), [(Mark::Completed, 1)]);
        assert!(!tally.is_too_large);
        tally.add(word(marks(&[Mark::Text]), FRAME_MAX + 1), 0);
        assert!(tally.is_too_large);
    }
}
