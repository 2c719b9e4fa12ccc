//! The tally of frames: how many of which kind are in a slice, so that frames are counted when they
//! are written.

use smallvec::SmallVec;

use super::super::carrier::pending::FrameTally;

/// A kind of frame of a wire, as it is counted.
pub trait FrameMark: Copy + PartialEq + Send + Sync + 'static {
    /// Every kind; fewer than 255.
    const ALL: &'static [Self];

    /// The kind's place in [`FrameMark::ALL`].
    fn index(self) -> usize;
    /// The kind's name in metrics.
    fn event_type(self) -> &'static str;
    /// The type of a frame that ends its turn.
    fn terminal(self) -> Option<&'static str>;
    /// The code of a frame that reports an error.
    fn error_code(self) -> Option<&'static str>;
}

/// A frame above this is sent, and counted as too large (D-15).
const FRAME_TARGET: usize = 256 << 10;

/// A frame above this is not sent, and its stream ends (D-15).
const FRAME_MAX: usize = 16 << 20;

/// Stands beside the marks in the word of an event: its frame is above [`FRAME_TARGET`].
const LARGE: u64 = 1 << 32;
/// As [`LARGE`]: its frame is above [`FRAME_MAX`].
const TOO_LARGE: u64 = 1 << 33;

/// The word of an event that gave `bytes` bytes of frames: `marks` has the index of up to four
/// frames, a byte each, plus one.
pub(crate) fn word(marks: u32, bytes: usize) -> u64 {
    let size = match bytes {
        0..=FRAME_TARGET => 0,
        _ if bytes <= FRAME_MAX => LARGE,
        _ => TOO_LARGE,
    };
    u64::from(marks) | size
}

fn marks<M: FrameMark>(word: u64) -> impl Iterator<Item = M> {
    let mark = |byte: u8| M::ALL.get(usize::from(byte).wrapping_sub(1)).copied();
    (word as u32).to_le_bytes().into_iter().filter_map(mark)
}

/// The number of frames of an event with this word.
pub(super) fn frames_of(word: u64) -> usize {
    let bytes = (word as u32).to_le_bytes().into_iter();
    bytes.filter(|byte| *byte != 0).count()
}

/// The number of frames of each kind. A slice has one or two kinds, mostly.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MarkTally<M> {
    counts: SmallVec<[(M, u32); 2]>,
    large: u32,
    is_too_large: bool,
}

impl<M> Default for MarkTally<M> {
    fn default() -> Self {
        Self {
            counts: SmallVec::new(),
            large: 0,
            is_too_large: false,
        }
    }
}

impl<M: FrameMark> FrameTally for MarkTally<M> {
    fn frames(&self) -> u64 {
        self.counts.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    fn is_too_large(&self) -> bool {
        self.is_too_large
    }
}

impl<M: FrameMark> MarkTally<M> {
    pub(crate) fn count(&mut self, mark: M, frames: u32) {
        match self.counts.iter_mut().find(|(other, _)| *other == mark) {
            Some((_, count)) => *count += frames,
            None => self.counts.push((mark, frames)),
        }
    }

    pub(crate) fn counts(&self) -> &[(M, u32)] {
        &self.counts
    }

    /// The number of frames above [`FRAME_TARGET`].
    pub(super) fn large(&self) -> u32 {
        self.large
    }

    /// Counts the frames of one event without its first `skip`.
    pub(super) fn add(&mut self, word: u64, skip: usize) {
        self.large += u32::from(word & LARGE != 0);
        self.is_too_large |= word & TOO_LARGE != 0;
        for mark in marks(word).skip(skip) {
            self.count(mark, 1);
        }
    }

    /// Counts all frames of adjacent events.
    /// They mostly have the same word, which is then read once.
    pub(super) fn add_all(&mut self, words: &[u64]) {
        for same in words.chunk_by(PartialEq::eq) {
            let word = same[0];
            // Large frames are rare and counted one by one.
            if word > u64::from(u32::MAX) {
                same.iter().for_each(|word| self.add(*word, 0));
                continue;
            }
            self.add(word, 0);
            let others = same.len() as u32 - 1;
            for mark in marks::<M>(word) {
                let counted = self.counts.iter_mut().find(|(other, _)| *other == mark);
                counted.into_iter().for_each(|(_, count)| *count += others);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use turnwire_wire::pc3::Mark;

    use super::super::super::carrier::pending::PendingWrites;
    use super::*;

    type ChatTally = MarkTally<Mark>;

    fn marks(of: &[Mark]) -> u32 {
        of.iter()
            .rev()
            .fold(0, |bits, mark| bits << 8 | (mark.index() as u32 + 1))
    }

    fn text(n: u32) -> (Bytes, ChatTally) {
        let mut tally = ChatTally::default();
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
    fn law_11_the_same_said_of_many_counts_as_often() {
        let words = [
            word(marks(&[Mark::Text]), 10),
            word(marks(&[Mark::Text]), 10),
            word(marks(&[Mark::Text]), FRAME_TARGET + 1),
            word(marks(&[Mark::Text]), FRAME_TARGET + 1),
            word(0, 0),
            word(marks(&[Mark::Text, Mark::Text, Mark::Usage]), 10),
            word(marks(&[Mark::Text, Mark::Text, Mark::Usage]), 10),
            word(marks(&[Mark::Text]), 10),
        ];
        for from in 0..words.len() {
            for to in from..=words.len() {
                let (mut one_by_one, mut at_once) = (ChatTally::default(), ChatTally::default());
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
        let mut tally = ChatTally::default();
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
