//! Headers of the WebSocket text frames that a server sends: no mask, never fragmented.

const TEXT: u8 = 0x81;

/// Appends the header of a text frame with `len` bytes of payload.
pub(crate) fn text_header(len: usize, out: &mut Vec<u8>) {
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
pub(crate) fn text(payload: &[u8], out: &mut Vec<u8>) {
    text_header(payload.len(), out);
    out.extend_from_slice(payload);
}

/// The end of the frame that the byte at `offset` belongs to; `frames` begins with a header.
pub(crate) fn frame_end(frames: &[u8], offset: usize) -> usize {
    let length = |bytes: Option<&[u8]>| {
        let bytes = bytes.unwrap_or_default().iter();
        bytes.fold(0, |len, &byte| len << 8 | usize::from(byte))
    };
    let mut at = 0;
    while let Some(&short) = frames.get(at + 1) {
        let (header, len) = match short {
            126 => (4, length(frames.get(at + 2..at + 4))),
            127 => (10, length(frames.get(at + 2..at + 10))),
            len => (2, usize::from(len)),
        };
        let end = at + header + len;
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
                assert_eq!(frame_end(&frames, offset), end);
            }
            from = end;
        }
    }
}
