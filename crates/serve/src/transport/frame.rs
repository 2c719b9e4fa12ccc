//! WebSocket framing of text the server sends: one header, no mask, never split.

use turnwire_hub::Entry;
use turnwire_wire::session::event_frame;

const TEXT: u8 = 0x81;

/// Appends the header of a text frame of `len` bytes.
fn header(len: usize, out: &mut Vec<u8>) {
    out.push(TEXT);
    match len {
        0..=125 => out.push(len as u8),
        126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
}

/// Appends a text frame.
pub(super) fn text(payload: &[u8], out: &mut Vec<u8>) {
    header(payload.len(), out);
    out.extend_from_slice(payload);
}

/// Appends the frame of an event.
pub(super) fn event(json: &[u8], out: &mut Vec<u8>) {
    use turnwire_wire::session::server::{EVENT_PREFIX, EVENT_SUFFIX};
    header(EVENT_PREFIX.len() + json.len() + EVENT_SUFFIX.len(), out);
    event_frame(json, out);
}

/// Makes the frame of a ring's entry; there is nothing to say of it.
pub(super) fn project(entry: &Entry, out: &mut Vec<u8>) -> u64 {
    event(&entry.bytes, out);
    0
}

/// Where the frame ends that the byte at `offset` belongs to; `frames` begins with a header.
pub(super) fn end_of_frame_at(frames: &[u8], offset: usize) -> usize {
    let mut at = 0;
    while at < frames.len() {
        let Some(&short) = frames.get(at + 1) else {
            break;
        };
        let (head, len) = match short {
            126 => (
                4,
                frames
                    .get(at + 2..at + 4)
                    .map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]]))),
            ),
            127 => (
                10,
                frames
                    .get(at + 2..at + 10)
                    .map_or(0, |b| b.iter().fold(0, |n, &b| n << 8 | usize::from(b))),
            ),
            len => (2, usize::from(len)),
        };
        let end = at + head + len;
        if offset < end {
            return end.min(frames.len());
        }
        at = end;
    }
    frames.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_use_the_shortest_form_and_ends_are_found() {
        let mut frames = Vec::new();
        let mut ends = Vec::new();
        for len in [0, 125, 126, 65_535, 65_536] {
            text(&vec![b'x'; len], &mut frames);
            ends.push(frames.len());
        }
        assert_eq!(ends, [2, 129, 259, 65_798, 131_344]);
        let mut from = 0;
        for end in ends {
            for offset in [from, (from + end) / 2, end - 1] {
                assert_eq!(end_of_frame_at(&frames, offset), end);
            }
            from = end;
        }
    }
}
