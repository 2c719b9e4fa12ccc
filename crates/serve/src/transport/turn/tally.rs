//! The tally of frames: how many of which kind are in a slice, so that frames are counted when they
//! are written.

use smallvec::SmallVec;

use super::super::carrier::FrameTally;

/// A kind of frame of a wire, with the labels under which [`TurnCounters`](super::counters) count it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameMark {
    pub(crate) event_type: &'static str,
    /// The type of a frame that ends its turn.
    pub(crate) terminal: Option<&'static str>,
    /// The code of a frame that reports an error.
    pub(crate) error_code: Option<&'static str>,
}

/// A frame above this is sent, and counted as too large (D-15).
const FRAME_TARGET: usize = 256 << 10;

/// A frame above this is not sent, and its stream ends (D-15).
const FRAME_MAX: usize = 16 << 20;

/// A bit of the [`word`] of an event: its frame is above [`FRAME_TARGET`].
const LARGE: u64 = 1 << 32;
/// A bit of the [`word`] of an event: its frame is above [`FRAME_MAX`].
const TOO_LARGE: u64 = 1 << 33;

/// The word that the ring keeps of an event with `bytes` bytes of frames: its
/// [`marks`](super::TurnFormat::write_frames) and its size class.
pub(super) fn word(marks: u32, bytes: usize) -> u64 {
    let size = match bytes {
        0..=FRAME_TARGET => 0,
        _ if bytes <= FRAME_MAX => LARGE,
        _ => TOO_LARGE,
    };
    u64::from(marks) | size
}

/// The kinds of the frames of an event with this word, as indexes of
/// [`TurnFormat::marks`](super::TurnFormat::marks).
pub(super) fn marks(word: u64) -> impl Iterator<Item = u8> {
    let bytes = (word as u32).to_le_bytes().into_iter();
    bytes.filter_map(|byte| byte.checked_sub(1))
}

/// The number of frames of each kind. A slice has one or two kinds, mostly.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MarkTally {
    /// The index of a kind and its number of frames.
    pub(super) counts: SmallVec<[(u8, u32); 2]>,
    /// The number of frames above [`FRAME_TARGET`].
    pub(super) large: u32,
    is_too_large: bool,
}

impl FrameTally for MarkTally {
    fn frames(&self) -> u64 {
        self.counts.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    fn is_too_large(&self) -> bool {
        self.is_too_large
    }
}

impl MarkTally {
    /// Counts `frames` frames of one kind.
    pub(super) fn count(&mut self, mark: u8, frames: u32) {
        match self.counts.iter_mut().find(|(other, _)| *other == mark) {
            Some((_, count)) => *count += frames,
            None => self.counts.push((mark, frames)),
        }
    }

    /// Counts the frames of an event by its [`word`], without its first `skip`.
    pub(super) fn add(&mut self, word: u64, skip: usize) {
        self.large += u32::from(word & LARGE != 0);
        self.is_too_large |= word & TOO_LARGE != 0;
        marks(word).skip(skip).for_each(|mark| self.count(mark, 1));
    }

    /// Counts all frames of adjacent events. Their words are mostly equal, and equal words are read
    /// once.
    pub(super) fn add_all(&mut self, words: &[u64]) {
        for same in words.chunk_by(PartialEq::eq) {
            let word = same[0];
            // Large frames are rare and counted one by one.
            if word > u64::from(u32::MAX) {
                same.iter().for_each(|word| self.add(*word, 0));
                continue;
            }
            marks(word).for_each(|mark| self.count(mark, same.len() as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use turnwire_wire::pc3::Mark;

    use super::super::super::carrier::pending::PendingWrites;
    use super::*;

    fn marks(of: &[Mark]) -> u32 {
        of.iter()
            .rev()
            .fold(0, |bits, mark| bits << 8 | (mark.index() as u32 + 1))
    }

    fn text(n: u32) -> (Bytes, MarkTally) {
        let mut tally = MarkTally::default();
        (0..n).for_each(|_| tally.add(word(marks(&[Mark::Text]), 10), 0));
        (Bytes::from(vec![b'x'; n as usize * 10]), tally)
    }

    // LAW-11
    #[test]
    fn frames_count_when_their_last_byte_is_written() {
        let mut pending = PendingWrites::new();
        for n in [3, 1] {
            let (bytes, tally) = text(n);
            pending.push(bytes, tally);
        }
        assert_eq!(pending.frames, 4);
        let mut sent = 0;
        for step in [29, 1, 9, 1] {
            pending.advance(step, |tally| sent += tally.frames());
        }
        assert_eq!(sent, 4);
        assert!(pending.is_empty());
        let (bytes, tally) = text(2);
        pending.push(bytes, tally);
        pending.advance(19, |_| panic!("not yet"));
        assert_eq!(pending.frames, 2);
    }

    // LAW-11
    #[test]
    fn equal_words_count_as_often_as_they_occur() {
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
                let (mut one_by_one, mut at_once) = (MarkTally::default(), MarkTally::default());
                words[from..to]
                    .iter()
                    .for_each(|word| one_by_one.add(*word, 0));
                at_once.add_all(&words[from..to]);
                assert_eq!(at_once, one_by_one, "{from}..{to}");
            }
        }
    }

    // D-15
    #[test]
    fn large_frame_is_counted_and_skipped_frames_are_not() {
        let mut tally = MarkTally::default();
        tally.add(
            word(marks(&[Mark::Usage, Mark::Completed]), FRAME_TARGET + 1),
            1,
        );
        assert_eq!(tally.large, 1);
        assert_eq!(tally.counts[..], [(Mark::Completed.index() as u8, 1)]);
        assert!(!tally.is_too_large);
        tally.add(word(marks(&[Mark::Text]), FRAME_MAX + 1), 0);
        assert!(tally.is_too_large);
    }
}
