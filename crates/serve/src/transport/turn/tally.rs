//! The tally of frames: how many of which kind are in a slice, so that frames are counted when they
//! are written.

use smallvec::SmallVec;

use super::super::carrier::FrameTally;
use super::emitter_label::EmitterLabel;

/// The metric labels of one kind of frame: [`TurnCounters`](super::counters) count its frames under
/// them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLabels {
    pub(crate) event_type: &'static str,
    /// The event type, if the frame ends its turn.
    pub(crate) terminal: Option<&'static str>,
    /// The code of a frame that reports an error.
    pub(crate) error_code: Option<&'static str>,
}

/// A frame above this is sent, and counted as too large (D-15).
const FRAME_TARGET: usize = 256 << 10;

/// A frame above this is not sent, and its stream ends (D-15).
const FRAME_MAX: usize = 16 << 20;

/// A bit of a [`frame_tag`]: the frames are above [`FRAME_TARGET`].
const LARGE: u64 = 1 << 32;
/// A bit of a [`frame_tag`]: the frames are above [`FRAME_MAX`].
const TOO_LARGE: u64 = 1 << 33;
/// The first of the eight bits of a [`frame_tag`] that hold the [`EmitterLabel`].
const EMITTER_SHIFT: u32 = 40;

/// The tag that the ring stores beside the frames of an event: their packed
/// [kinds](super::TurnFormat::write_frames), the size class of their `bytes` bytes, and who emitted it.
pub(super) fn frame_tag(packed_kinds: u32, bytes: usize, emitter: EmitterLabel) -> u64 {
    let size = match bytes {
        0..=FRAME_TARGET => 0,
        _ if bytes <= FRAME_MAX => LARGE,
        _ => TOO_LARGE,
    };
    u64::from(packed_kinds) | size | u64::from(emitter.0) << EMITTER_SHIFT
}

fn emitter_in_tag(tag: u64) -> EmitterLabel {
    EmitterLabel((tag >> EMITTER_SHIFT) as u8)
}

/// The kinds of the frames with this [`frame_tag`], as indexes of
/// [`TurnFormat::frame_labels`](super::TurnFormat::frame_labels).
pub(super) fn kinds_in_tag(tag: u64) -> impl Iterator<Item = u8> {
    let bytes = (tag as u32).to_le_bytes().into_iter();
    bytes.filter_map(|byte| byte.checked_sub(1))
}

/// The number of frames of each kind in a slice. Most slices have one or two kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KindTally {
    /// The index of a kind, who emitted it, and its number of frames.
    pub(super) counts: SmallVec<[((u8, EmitterLabel), u32); 2]>,
    /// The number of frames above [`FRAME_TARGET`].
    pub(super) large: u32,
    is_too_large: bool,
}

impl FrameTally for KindTally {
    fn frames(&self) -> u64 {
        self.counts.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    fn is_too_large(&self) -> bool {
        self.is_too_large
    }
}

impl KindTally {
    /// Counts `frames` frames of one kind and emitter.
    pub(super) fn count(&mut self, kind: u8, emitter: EmitterLabel, frames: u32) {
        let key = (kind, emitter);
        match self.counts.iter_mut().find(|(other, _)| *other == key) {
            Some((_, count)) => *count += frames,
            None => self.counts.push((key, frames)),
        }
    }

    /// Counts the frames of an event by their [`frame_tag`], without the first `skip` frames.
    pub(super) fn add(&mut self, tag: u64, skip: usize) {
        self.large += u32::from(tag & LARGE != 0);
        self.is_too_large |= tag & TOO_LARGE != 0;
        let (kinds, emitter) = (kinds_in_tag(tag).skip(skip), emitter_in_tag(tag));
        kinds.for_each(|kind| self.count(kind, emitter, 1));
    }

    /// Counts all frames of adjacent events by their [`frame_tag`]s. Adjacent tags are mostly
    /// equal, so a run of equal tags is decoded once.
    pub(super) fn add_all(&mut self, tags: &[u64]) {
        for equal_tags in tags.chunk_by(PartialEq::eq) {
            let tag = equal_tags[0];
            // Large frames are rare and counted one by one.
            if tag & (LARGE | TOO_LARGE) != 0 {
                equal_tags.iter().for_each(|tag| self.add(*tag, 0));
                continue;
            }
            let events = equal_tags.len() as u32;
            let emitter = emitter_in_tag(tag);
            kinds_in_tag(tag).for_each(|kind| self.count(kind, emitter, events));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use turnwire_wire::pc3::FrameKind;

    use super::super::super::carrier::pending::PendingWrites;
    use super::*;

    fn packed(kinds: &[FrameKind]) -> u32 {
        kinds
            .iter()
            .rev()
            .fold(0, |bits, kind| bits << 8 | (kind.index() as u32 + 1))
    }

    fn text(n: u32) -> (Bytes, KindTally) {
        let mut tally = KindTally::default();
        (0..n).for_each(|_| {
            tally.add(
                frame_tag(packed(&[FrameKind::Text]), 10, EmitterLabel::TURN),
                0,
            )
        });
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
    fn equal_tags_count_as_often_as_they_occur() {
        let tags = [
            frame_tag(packed(&[FrameKind::Text]), 10, EmitterLabel::TURN),
            frame_tag(packed(&[FrameKind::Text]), 10, EmitterLabel::TURN),
            frame_tag(
                packed(&[FrameKind::Text]),
                FRAME_TARGET + 1,
                EmitterLabel::TURN,
            ),
            frame_tag(
                packed(&[FrameKind::Text]),
                FRAME_TARGET + 1,
                EmitterLabel::TURN,
            ),
            frame_tag(0, 0, EmitterLabel::TURN),
            frame_tag(
                packed(&[FrameKind::Text, FrameKind::Text, FrameKind::Usage]),
                10,
                EmitterLabel(2),
            ),
            frame_tag(
                packed(&[FrameKind::Text, FrameKind::Text, FrameKind::Usage]),
                10,
                EmitterLabel(2),
            ),
            frame_tag(
                packed(&[FrameKind::Text]),
                FRAME_TARGET + 1,
                EmitterLabel(3),
            ),
            frame_tag(packed(&[FrameKind::Status]), 10, EmitterLabel(255)),
            frame_tag(packed(&[FrameKind::Text]), 10, EmitterLabel::TURN),
        ];
        for from in 0..tags.len() {
            for to in from..=tags.len() {
                let (mut one_by_one, mut at_once) = (KindTally::default(), KindTally::default());
                tags[from..to]
                    .iter()
                    .for_each(|tag| one_by_one.add(*tag, 0));
                at_once.add_all(&tags[from..to]);
                assert_eq!(at_once, one_by_one, "{from}..{to}");
            }
        }
    }

    // D-15
    #[test]
    fn large_frame_is_counted_and_skipped_frames_are_not() {
        let mut tally = KindTally::default();
        tally.add(
            frame_tag(
                packed(&[FrameKind::Usage, FrameKind::Completed]),
                FRAME_TARGET + 1,
                EmitterLabel::TURN,
            ),
            1,
        );
        assert_eq!(tally.large, 1);
        assert_eq!(
            tally.counts[..],
            [((FrameKind::Completed.index() as u8, EmitterLabel::TURN), 1)]
        );
        assert!(!tally.is_too_large);
        tally.add(
            frame_tag(
                packed(&[FrameKind::Text]),
                FRAME_MAX + 1,
                EmitterLabel::TURN,
            ),
            0,
        );
        assert!(tally.is_too_large);
    }
}
