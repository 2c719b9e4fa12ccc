//! Server-sent events as far as counting needs them: the head of the answer is read, blocks are
//! counted by the blank line that ends each, and nothing is unpacked.
//!
//! Bytes may be cut anywhere between two calls.

use std::fmt;
use std::io;

/// The end of the last block of a turn.
const DONE: [u8; 8] = *b"[DONE]\n\n";

/// The last block of a turn.
pub const SENTINEL: &[u8] = b"data: [DONE]\n\n";

/// The head of a stream's answer, as short as it may be.
pub const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                        Connection: close\r\n\r\n";

/// The longest head that is looked at.
const HEAD_MAX: usize = 8 * 1024;

/// An answer that is no stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAStream {
    /// Its status; 0 if it has none.
    pub status: u16,
    /// What came with it.
    pub text: String,
}

impl fmt::Display for NotAStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no stream: {}", self.text)
    }
}

impl std::error::Error for NotAStream {}

impl From<NotAStream> for io::Error {
    fn from(refused: NotAStream) -> Self {
        Self::other(refused)
    }
}

/// Finds the ends of blocks in the bytes of an answer.
#[derive(Debug, Default)]
pub struct BlockCounter {
    /// The head as far as it has come; none once it is passed.
    head: Option<Vec<u8>>,
    passed: bool,
    /// The last bytes of the body.
    tail: [u8; 8],
}

impl BlockCounter {
    /// Takes more bytes of an answer from its first byte on; gives the blocks that end in them.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<u64, NotAStream> {
        let body = match self.passed {
            true => bytes,
            false => self.take_head(bytes)?,
        };
        let Some(&first) = body.first() else {
            return Ok(0);
        };
        let across = u64::from(self.tail[7] == b'\n' && first == b'\n');
        let prefix_len = body.len().min(8);
        self.tail.rotate_left(prefix_len);
        self.tail[8 - prefix_len..].copy_from_slice(&body[body.len() - prefix_len..]);
        Ok(across + blank_lines(body))
    }

    /// Whether the last block of a turn was the last thing that came.
    pub fn is_done(&self) -> bool {
        self.tail == DONE
    }

    /// Collects the head; gives what stands behind it.
    fn take_head<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], NotAStream> {
        let head = self.head.get_or_insert_default();
        let before = head.len();
        head.extend_from_slice(bytes);
        let end = head.windows(4).position(|four| four == b"\r\n\r\n");
        if end.is_none() && head.len() < HEAD_MAX {
            return Ok(&[]);
        }
        let text = || String::from_utf8_lossy(head).into_owned();
        let status = text().split(' ').nth(1).and_then(|code| code.parse().ok());
        match (status, end) {
            (Some(200), Some(end)) => {
                self.head = None;
                self.passed = true;
                Ok(&bytes[end + 4 - before..])
            }
            (status, _) => Err(NotAStream {
                status: status.unwrap_or_default(),
                text: text(),
            }),
        }
    }
}

/// How often two line ends follow each other, counted in pieces that a byte can hold: that is
/// what the compiler makes wide instructions of.
fn blank_lines(bytes: &[u8]) -> u64 {
    let second = bytes.get(1..).unwrap_or_default();
    let both = bytes.chunks(255).zip(second.chunks(255));
    both.map(|(one, two)| {
        let pairs = one.iter().zip(two);
        let blank_lines = pairs.map(|(&a, &b)| u8::from(a == b'\n') & u8::from(b == b'\n'));
        u64::from(blank_lines.sum::<u8>())
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_parsed_at_any_chunking() {
        let long = format!("data: {}\n\n", "x".repeat(1_000));
        let blocks = ["retry: 5\nid: a\ndata: 1\n\n", &long, "id: b\ndata: 2\n\n"];
        let mut stream = HEAD.as_bytes().to_vec();
        blocks
            .iter()
            .for_each(|block| stream.extend_from_slice(block.as_bytes()));
        stream.extend_from_slice(SENTINEL);
        for step in [1, 2, 3, 7, 254, 255, 256, stream.len()] {
            let mut counter = BlockCounter::default();
            let mut blank_lines = 0;
            for chunk in stream.chunks(step) {
                assert!(!counter.is_done());
                blank_lines += counter.feed(chunk).expect("a stream");
            }
            assert_eq!(
                (blank_lines, counter.is_done()),
                (4, true),
                "cut every {step}"
            );
        }
    }

    #[test]
    fn non_stream_answer_reports_its_status() {
        let mut counter = BlockCounter::default();
        assert_eq!(counter.feed(b"HTTP/1.1 409 Con"), Ok(0));
        let refused = counter.feed(b"flict\r\n\r\n{}").expect_err("no stream");
        assert_eq!(refused.status, 409);
    }
}
