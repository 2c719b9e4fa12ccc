//! The lines of standard input, read by their own thread: a read from a terminal cannot be
//! cancelled when something else happens first.

use std::io::{self, BufRead, Read as _};
use std::time::Instant;

use tokio::sync::mpsc;

/// The longest line: above the default body limit of a server, so that the server refuses longer
/// messages, and small enough that a pipe without line ends cannot fill the memory.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// A line, or the reason why it cannot be read.
pub(crate) type Line = Result<String, String>;

/// A [`Line`] with the time at which it was complete: a line that was complete before a question was
/// shown does not answer it.
#[derive(Debug)]
pub(crate) struct TypedLine {
    pub(crate) line: Line,
    pub(crate) typed_at: Instant,
}

impl TypedLine {
    /// A line that is complete now.
    pub(crate) fn now(line: Line) -> Self {
        let typed_at = Instant::now();
        Self { line, typed_at }
    }
}

/// The lines of standard input; closed at its end. One line is read ahead. The thread ends with the
/// input, or when the receiver is dropped.
pub(crate) fn lines() -> mpsc::Receiver<TypedLine> {
    let (send, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        for number in 1u64.. {
            let Some(line) = read(&mut input, LINE_BYTES_MAX) else {
                return;
            };
            let line = line.map_err(|reason| format!("line {number} of the input {reason}"));
            let is_last = line.is_err();
            if send.blocking_send(TypedLine::now(line)).is_err() || is_last {
                return;
            }
        }
    });
    lines
}

/// The next line without its end; `None` at the end of the input.
fn read(input: &mut impl BufRead, bytes_max: u64) -> Option<Line> {
    let mut line = Vec::new();
    Some(match input.take(bytes_max).read_until(b'\n', &mut line) {
        Ok(0) => return None,
        Ok(length) if length as u64 == bytes_max && line.last() != Some(&b'\n') => {
            Err(format!("is longer than {bytes_max} bytes"))
        }
        Ok(_) => match String::from_utf8(line) {
            Ok(line) => Ok(line.trim().to_owned()),
            Err(_) => Err("is not UTF-8 text".to_owned()),
        },
        Err(error) => Err(format!("cannot be read: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_input_and_have_limits() {
        let mut input: &[u8] = b" one \r\n\nlast";
        let all: Vec<_> = std::iter::from_fn(|| read(&mut input, 100)).collect();
        let line = |text: &str| Ok(text.to_owned());
        assert_eq!(all, [line("one"), line(""), line("last")]);
        let long = read(&mut b"12345\n".as_slice(), 5);
        assert_eq!(long, Some(Err("is longer than 5 bytes".to_owned())));
        assert_eq!(read(&mut b"1234\n".as_slice(), 5), Some(line("1234")));
        let bytes = read(&mut b"\xff\n".as_slice(), 5);
        assert_eq!(bytes, Some(Err("is not UTF-8 text".to_owned())));
    }
}
