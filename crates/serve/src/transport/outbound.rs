//! What is due to one connection: slices of shared frames, written together.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

use super::frame::end_of_frame_at;

/// Slices given to one write: the kernel takes 1,024, few are ever due.
const SLICES_MAX: usize = 64;

/// Framed bytes waiting for the socket. Every slice begins with a frame's header.
#[derive(Default)]
pub(super) struct Outbound {
    slices: VecDeque<(Bytes, usize)>,
    /// Bytes of the first slice already written.
    written: usize,
    /// Events in the slices.
    events: usize,
    /// Bytes of answers to the client's own frames.
    answers: usize,
}

impl Outbound {
    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// Events not wholly written.
    pub(super) fn events(&self) -> usize {
        self.events
    }

    /// Whether a slice is partly written.
    pub(super) fn is_partial(&self) -> bool {
        self.written > 0
    }

    pub(super) fn push(&mut self, frames: Bytes, events: usize) {
        if !frames.is_empty() {
            self.events += events;
            self.slices.push_back((frames, events));
        }
    }

    /// Queues an answer to a frame of the client's.
    pub(super) fn answer(&mut self, frame: Bytes) {
        self.answers += frame.len();
        self.push(frame, 0);
    }

    /// Bytes of answers that the client has not taken.
    pub(super) fn answers(&self) -> usize {
        self.answers
    }

    /// The bytes due, for one write.
    pub(super) fn slices(&self) -> smallvec::SmallVec<[IoSlice<'_>; SLICES_MAX]> {
        let mut skip = self.written;
        self.slices
            .iter()
            .take(SLICES_MAX)
            .map(|(bytes, _)| IoSlice::new(&bytes[std::mem::take(&mut skip)..]))
            .collect()
    }

    /// `n` bytes were taken by the socket; gives back how many events are wholly out by it.
    pub(super) fn advance(&mut self, mut n: usize) -> usize {
        let before = self.events;
        while let Some((front, events)) = self.slices.front() {
            let left = front.len() - self.written;
            if n < left {
                self.written += n;
                return before - self.events;
            }
            n -= left;
            self.events -= events;
            if *events == 0 {
                self.answers = self.answers.saturating_sub(front.len());
            }
            self.written = 0;
            self.slices.pop_front();
        }
        // An idle connection keeps nothing.
        if self.slices.capacity() > 8 {
            self.slices = VecDeque::new();
        }
        before - self.events
    }

    /// Drops all but the rest of the frame that is half written; gives back how many events
    /// will not be delivered. The half frame's own slice counts as undelivered in part.
    pub(super) fn cut(&mut self) -> usize {
        let dropped = self.events;
        let half = self.slices.pop_front().filter(|_| self.written > 0);
        self.slices.clear();
        self.events = 0;
        if let Some((bytes, _)) = half {
            let end = end_of_frame_at(&bytes, self.written);
            if self.written < end {
                self.slices.push_back((bytes.slice(..end), 0));
            } else {
                self.written = 0;
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::*;

    fn frames(texts: &[&str]) -> Bytes {
        let mut out = Vec::new();
        texts
            .iter()
            .for_each(|text| frame::text(text.as_bytes(), &mut out));
        out.into()
    }

    fn due(outbound: &Outbound) -> Vec<u8> {
        outbound
            .slices()
            .iter()
            .flat_map(|slice| slice.to_vec())
            .collect()
    }

    #[test]
    fn any_split_of_writes_gives_the_same_bytes() {
        let parts = [frames(&["one", "two"]), frames(&["three"])];
        let whole: Vec<u8> = parts.iter().flat_map(|p| p.to_vec()).collect();
        for step in 1..=whole.len() {
            let mut outbound = Outbound::default();
            parts.iter().for_each(|part| outbound.push(part.clone(), 1));
            let mut seen = Vec::new();
            while !outbound.is_empty() {
                let bytes = due(&outbound);
                let n = step.min(bytes.len());
                seen.extend_from_slice(&bytes[..n]);
                outbound.advance(n);
            }
            assert_eq!(seen, whole);
            assert_eq!(outbound.events(), 0);
        }
    }

    #[test]
    fn a_cut_finishes_the_frame_at_hand_and_no_more() {
        let mut outbound = Outbound::default();
        outbound.push(frames(&["one", "two"]), 2);
        outbound.push(frames(&["three"]), 1);
        assert_eq!(outbound.advance(7), 0); // one whole frame of 5, and 2 bytes of the next
        assert_eq!(outbound.cut(), 3);
        assert_eq!(due(&outbound), b"two"[..].to_vec());
        outbound.advance(3);
        assert!(outbound.is_empty());
        outbound.push(frames(&["four"]), 1);
        assert_eq!(outbound.cut(), 1);
        assert!(outbound.is_empty(), "nothing was half written");
    }
}
