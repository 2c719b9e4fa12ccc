//! The chat wire (pc3) as server-sent events: the blocks of [`turnwire_wire::pc3`] are its frames.

use tokio::net::TcpStream;
use turnwire_event::{Clock as _, Event, TurnId, metric};
use turnwire_hub::Entry;
use turnwire_session::SystemClock;
use turnwire_wire::pc3::{self, Cursor, Marks, Version};

use super::super::carrier::cursor::FrameFormat;
use super::super::carrier::event_stream::EventStream;
use super::super::turn::TurnFormat;
use super::counters::ChatCounters;
use super::tally::{MarkTally, word};

/// One version of the chat wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChatFormat(pub(super) Version);

impl FrameFormat for ChatFormat {
    type Tally = MarkTally;

    /// The session wire has the first track.
    fn track(self) -> usize {
        match self.0 {
            Version::V05 => 1,
            Version::V04 => 2,
        }
    }

    fn write(self, entry: &Entry, out: &mut Vec<u8>) -> u64 {
        match Event::read(&entry.bytes) {
            Ok(event) => self.write_after(&event, None, out),
            Err(error) => {
                tracing::error!(at = %entry.head.position, %error, "an event cannot be read");
                0
            }
        }
    }
}

impl TurnFormat for ChatFormat {
    type Framing = EventStream<TcpStream>;
    type Counters = ChatCounters;
    const OPEN_STREAMS: &'static str = metric::SSE_STREAMS;
    const HEARTBEAT: &'static [u8] = pc3::HEARTBEAT;

    fn write_after(self, event: &Event, client_cursor: Option<&Cursor>, out: &mut Vec<u8>) -> u64 {
        let begin = out.len();
        let marks = match client_cursor {
            Some(cursor) => pc3::project_after(event, self.0, cursor, out),
            None => pc3::project(event, self.0, out),
        };
        word(marks, out.len() - begin)
    }

    fn frames_of(word: u64) -> usize {
        Marks::from_bits(word as u32).len()
    }

    fn skip_frames(frames: &[u8], skip: usize) -> usize {
        let Some(last) = skip.checked_sub(1) else {
            return 0;
        };
        let pairs = frames.windows(2).enumerate();
        let mut ends = pairs.filter(|(_, pair)| *pair == b"\n\n");
        ends.nth(last).map_or(frames.len(), |(at, _)| at + 2)
    }

    fn write_lost(self, turn: TurnId, out: &mut Vec<u8>) -> u64 {
        let begin = out.len();
        let marks = pc3::lost(self.0, turn.into(), SystemClock.now(), out);
        word(marks, out.len() - begin)
    }

    fn tally_partial(partial: &[u8]) -> MarkTally {
        MarkTally::of_blocks(partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_frames_skips_complete_blocks() {
        let frames = b"id: a-0\ndata: 1\n\nid: a-1\ndata: 2\n\ndata: [DONE]\n\n";
        let skip = |count| &frames[ChatFormat::skip_frames(frames, count)..];
        assert_eq!(skip(0), frames);
        assert!(skip(1).starts_with(b"id: a-1\n"));
        assert!(skip(2).starts_with(b"data: [DONE]"));
        for beyond in [3, 4, 10] {
            assert!(skip(beyond).is_empty());
        }
    }
}
