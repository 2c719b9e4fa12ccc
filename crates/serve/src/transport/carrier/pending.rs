//! Bytes that wait for a socket: slices of shared frames, written together, each with a tally of
//! its frames. A frame counts as sent when the last byte of its slice is out.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;
use smallvec::SmallVec;
use tokio::time::Instant;

/// Slices given to one write: the kernel takes 1,024, few are ever due.
const SLICES_MAX: usize = 64;

/// Memory that an idle connection keeps for its next slices.
const IDLE_BYTES_MAX: usize = 384;

/// The counts of the frames in one slice.
pub(crate) trait FrameTally: Default + Send {
    fn frames(&self) -> u64;

    /// True if one of the frames is too large to be sent.
    fn is_too_large(&self) -> bool {
        false
    }
}

/// The [`FrameTally`] of a wire that counts only events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCount(pub(crate) usize);

impl FrameTally for EventCount {
    fn frames(&self) -> u64 {
        self.0 as u64
    }
}

/// The output of one connection that the socket has not taken yet.
#[derive(Debug)]
pub(crate) struct PendingWrites<T> {
    /// Every slice begins at the start of a frame.
    slices: VecDeque<(Bytes, T)>,
    /// Bytes of the first slice that the socket has taken.
    written: usize,
    /// Frames in slices that are not written to their last byte.
    pub(crate) frames: u64,
    /// Bytes of all slices that are not written to their last byte.
    pub(crate) bytes: usize,
    /// Bytes of slices without a frame: heads, heartbeats, answers to the client.
    pub(crate) control_bytes: usize,
    /// When the socket last took bytes or a control frame was last queued.
    pub(crate) last_sent: Instant,
}

impl<T: FrameTally> PendingWrites<T> {
    pub(crate) fn new() -> Self {
        Self {
            slices: VecDeque::new(),
            written: 0,
            frames: 0,
            bytes: 0,
            control_bytes: 0,
            last_sent: Instant::now(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// True while the first slice is written in part.
    pub(crate) fn is_partial(&self) -> bool {
        self.written > 0
    }

    /// The part of the first slice that the socket has taken.
    pub(crate) fn partial(&self) -> &[u8] {
        let front = self.slices.front();
        front.map_or(&[], |(bytes, _)| &bytes[..self.written])
    }

    pub(crate) fn push(&mut self, frames: Bytes, tally: T) {
        if frames.is_empty() {
            return;
        }
        match tally.frames() {
            0 => self.control_bytes += frames.len(),
            count => self.frames += count,
        }
        self.bytes += frames.len();
        self.slices.push_back((frames, tally));
    }

    /// Queues control bytes: heads, heartbeats and answers to the client.
    pub(crate) fn push_control(&mut self, bytes: Bytes) {
        self.push(bytes, T::default());
        self.last_sent = Instant::now();
    }

    /// The bytes for one write.
    pub(crate) fn slices(&self) -> SmallVec<[IoSlice<'_>; SLICES_MAX]> {
        let mut skip = self.written;
        self.slices
            .iter()
            .take(SLICES_MAX)
            .map(|(bytes, _)| IoSlice::new(&bytes[std::mem::take(&mut skip)..]))
            .collect()
    }

    /// Removes `n` bytes that the socket took; `sent` gets the tally of every slice that is completely
    /// written.
    pub(crate) fn advance(&mut self, mut n: usize, mut sent: impl FnMut(&T)) {
        self.last_sent = Instant::now();
        while let Some((front, tally)) = self.slices.front() {
            let unwritten = front.len() - self.written;
            if n < unwritten {
                self.written += n;
                return;
            }
            n -= unwritten;
            match tally.frames() {
                0 => self.control_bytes -= front.len(),
                count => self.frames -= count,
            }
            self.bytes -= front.len();
            sent(tally);
            self.written = 0;
            self.slices.pop_front();
        }
        if self.slices.capacity() * size_of::<(Bytes, T)>() > IDLE_BYTES_MAX {
            self.slices = VecDeque::new();
        }
    }

    /// Drops everything but the rest of a frame that is written in part. `frame_end` is
    /// [`Framing::frame_end`](super::Framing::frame_end).
    pub(crate) fn truncate(&mut self, frame_end: impl FnOnce(&[u8], usize) -> usize) {
        let front = self.slices.pop_front().filter(|_| self.written > 0);
        self.slices.clear();
        (self.frames, self.bytes, self.control_bytes) = (0, 0, 0);
        let Some((bytes, _)) = front else { return };
        let end = frame_end(&bytes, self.written);
        if self.written < end {
            self.push(bytes.slice(..end), T::default());
        } else {
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::websocket::header;
    use super::*;

    fn frames(texts: &[&str]) -> Bytes {
        let mut out = Vec::new();
        texts
            .iter()
            .for_each(|text| header::text(text.as_bytes(), &mut out));
        out.into()
    }

    fn due(pending: &PendingWrites<EventCount>) -> Vec<u8> {
        let slices = pending.slices();
        slices.iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn any_split_of_writes_gives_the_same_bytes() {
        let parts = [frames(&["one", "two"]), frames(&["three"])];
        let all: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        for step in 1..=all.len() {
            let mut pending = PendingWrites::new();
            for part in &parts {
                pending.push(part.clone(), EventCount(1));
            }
            let mut seen = Vec::new();
            while !pending.is_empty() {
                let bytes = due(&pending);
                let n = step.min(bytes.len());
                seen.extend_from_slice(&bytes[..n]);
                pending.advance(n, |_| {});
            }
            assert_eq!(seen, all);
            assert_eq!(pending.frames, 0);
        }
    }

    #[test]
    fn truncate_keeps_only_the_frame_written_in_part() {
        let mut pending = PendingWrites::new();
        pending.push(frames(&["one", "two"]), EventCount(2));
        pending.push(frames(&["three"]), EventCount(1));
        // One frame of 5 bytes, and 2 bytes of the next.
        pending.advance(7, |_| panic!("no slice is out"));
        pending.truncate(header::frame_end);
        assert_eq!((due(&pending), pending.frames), (b"two".to_vec(), 0));
        pending.advance(3, |_| {});
        assert!(pending.is_empty());
        pending.push(frames(&["four"]), EventCount(1));
        pending.truncate(header::frame_end);
        assert!(pending.is_empty(), "nothing was written in part");
    }

    #[test]
    fn control_bytes_count_until_their_slice_is_out() {
        let mut pending = PendingWrites::new();
        pending.push_control(frames(&["pong"]));
        pending.push(frames(&["event"]), EventCount(1));
        assert_eq!((pending.control_bytes, pending.frames), (6, 1));
        assert_eq!(pending.bytes, 13);
        pending.advance(5, |_| panic!("no slice is out"));
        assert_eq!((pending.control_bytes, pending.bytes), (6, 13));
        pending.advance(1, |_| {});
        assert_eq!((pending.control_bytes, pending.frames), (0, 1));
        assert_eq!(pending.bytes, 7);
    }
}
