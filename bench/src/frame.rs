//! WebSocket frames as far as counting needs them: headers are read, bodies are skipped.
//!
//! The load client must cost less than the server it measures, so nothing is unpacked, copied or
//! parsed beyond the header, except the first bytes of a body where the caller asks for them.
//! Bytes may be cut anywhere between two calls.

/// The operation code of a text frame.
pub const TEXT: u8 = 1;
/// The operation code of a close frame.
pub const CLOSE: u8 = 8;

/// A text frame as a server sends it.
pub fn text(payload: &[u8]) -> Vec<u8> {
    let mut frame = header(payload.len(), 0);
    frame.extend_from_slice(payload);
    frame
}

/// A text frame as a client sends it. The mask is all zeros, which is a legal key and leaves the
/// payload readable in a trace.
pub fn client_text(payload: &[u8]) -> Vec<u8> {
    let mut frame = header(payload.len(), 0x80);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

fn header(len: usize, mask: u8) -> Vec<u8> {
    let mut frame = vec![0x80 | TEXT];
    match len {
        0..=125 => frame.push(mask | len as u8),
        126..=65_535 => {
            frame.push(mask | 126);
            frame.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            frame.push(mask | 127);
            frame.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    frame
}

/// Finds the ends of frames in a stream of bytes.
#[derive(Debug)]
pub struct FrameCounter {
    header: [u8; 14],
    have: usize,
    body: u64,
    opcode: u8,
    keep: usize,
    prefix: Vec<u8>,
}

impl FrameCounter {
    /// A counter that hands over the first `keep` bytes of each body.
    pub fn new(keep: usize) -> Self {
        Self {
            header: [0; 14],
            have: 0,
            body: 0,
            opcode: 0,
            keep,
            prefix: Vec::new(),
        }
    }

    /// Takes more bytes; calls `done` with operation code and first bytes at the end of each
    /// frame. A close frame hands over its whole body, which is short.
    pub fn feed(&mut self, mut bytes: &[u8], mut done: impl FnMut(u8, &[u8])) {
        while !bytes.is_empty() {
            if self.body == 0 {
                bytes = self.take_header(bytes);
            }
            if self.body > 0 {
                bytes = self.take_body(bytes);
            }
            if self.have == 0 && self.body == 0 {
                done(self.opcode, &self.prefix);
                self.prefix.clear();
            }
        }
    }

    /// Whether the stream stands between two frames.
    pub fn at_boundary(&self) -> bool {
        self.have == 0 && self.body == 0
    }

    /// Collects a header; once it is whole, `have` is 0 again and `body` is what follows.
    fn take_header<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let mut consumed = 0;
        loop {
            let need = match self.have {
                0 | 1 => 2,
                _ => header_len(self.header[1]),
            };
            if self.have >= 2 && self.have >= need {
                break;
            }
            let missing = (need - self.have).min(bytes.len() - consumed);
            if missing == 0 {
                return &[];
            }
            self.header[self.have..self.have + missing]
                .copy_from_slice(&bytes[consumed..consumed + missing]);
            self.have += missing;
            consumed += missing;
        }
        self.opcode = self.header[0] & 0x0f;
        self.body = body_len(&self.header);
        self.have = 0;
        &bytes[consumed..]
    }

    fn take_body<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let now = bytes
            .len()
            .min(usize::try_from(self.body).unwrap_or(usize::MAX));
        let keep = if self.opcode == CLOSE { 125 } else { self.keep };
        if self.prefix.len() < keep {
            let copied = now.min(keep - self.prefix.len());
            self.prefix.extend_from_slice(&bytes[..copied]);
        }
        self.body -= now as u64;
        &bytes[now..]
    }
}

fn header_len(second: u8) -> usize {
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    mask + match second & 0x7f {
        126 => 4,
        127 => 10,
        _ => 2,
    }
}

fn body_len(header: &[u8; 14]) -> u64 {
    match header[1] & 0x7f {
        126 => u64::from(u16::from_be_bytes([header[2], header[3]])),
        127 => header[2..10]
            .iter()
            .fold(0, |len, &byte| (len << 8) | u64::from(byte)),
        short => u64::from(short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(counter: &mut FrameCounter, bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut frames = Vec::new();
        counter.feed(bytes, |opcode, prefix| {
            frames.push((opcode, prefix.to_vec()));
        });
        frames
    }

    #[test]
    fn frames_are_parsed_at_any_chunking() {
        let bodies: [&[u8]; 5] = [b"", b"hello", &[7; 125], &[8; 400], &[9; 70_000]];
        let stream: Vec<u8> = bodies.iter().flat_map(|body| text(body)).collect();
        let wanted: Vec<_> = bodies
            .iter()
            .map(|body| (TEXT, body[..body.len().min(8)].to_vec()))
            .collect();
        for step in [1, 2, 3, 5, 131, 4096, stream.len()] {
            let mut counter = FrameCounter::new(8);
            let frames: Vec<_> = stream
                .chunks(step)
                .flat_map(|chunk| seen(&mut counter, chunk))
                .collect();
            assert_eq!(frames, wanted, "cut every {step} bytes");
            assert!(counter.at_boundary());
        }
    }

    #[test]
    fn masked_frames_and_closes_are_read() {
        let mut counter = FrameCounter::new(3);
        assert_eq!(
            seen(&mut counter, &client_text(b"subscribe")),
            [(TEXT, b"sub".to_vec())]
        );
        let close = [&[0x88, 6, 0x03, 0xf0][..], b"slow"].concat();
        assert_eq!(
            seen(&mut counter, &close),
            [(CLOSE, b"\x03\xf0slow".to_vec())]
        );
    }
}
