//! The chat wire (pc3) as server-sent events: the blocks of [`turnwire_wire::pc3`] are its frames.

use tokio::net::TcpStream;
use turnwire_event::{Clock as _, Event, TurnId, metric};
use turnwire_hub::RingEntry;
use turnwire_session::SystemClock;
use turnwire_wire::pc3::{self, FrameCursor, Mark, WireVersion};

use super::super::carrier::cursor::FrameFormat;
use super::super::carrier::event_stream::EventStream;
use super::super::turn::{FrameMark, MarkTally, TurnFormat, word};

/// One version of the chat wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChatFormat(pub(super) WireVersion);

impl FrameFormat for ChatFormat {
    type Tally = MarkTally<Mark>;

    /// The session wire has the first track.
    fn track(self) -> usize {
        match self.0 {
            WireVersion::V05 => 1,
            WireVersion::V04 => 2,
        }
    }

    fn write(self, entry: &RingEntry, out: &mut Vec<u8>) -> u64 {
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
    type Mark = Mark;
    const OPEN_STREAMS: &'static str = metric::SSE_STREAMS;
    const HEARTBEAT: &'static [u8] = pc3::HEARTBEAT;

    fn write_after(
        self,
        event: &Event,
        client_cursor: Option<&FrameCursor>,
        out: &mut Vec<u8>,
    ) -> u64 {
        let begin = out.len();
        let marks = match client_cursor {
            Some(cursor) => pc3::project_after(event, self.0, cursor, out),
            None => pc3::project(event, self.0, out),
        };
        word(marks.bits(), out.len() - begin)
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
        let marks = pc3::write_lost(self.0, turn.into(), SystemClock.now(), out);
        word(marks.bits(), out.len() - begin)
    }

    fn tally_partial(partial: &[u8]) -> MarkTally<Mark> {
        let mut tally = MarkTally::default();
        let text = String::from_utf8_lossy(partial);
        // The bytes after the last end of a block are no block yet.
        let complete = text.rfind("\n\n").map_or("", |end| &text[..end]);
        for mark in complete.split("\n\n").filter_map(mark_of) {
            tally.count(mark, 1);
        }
        tally
    }
}

/// The kind of frame that a block is.
fn mark_of(block: &str) -> Option<Mark> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let event = field("event: ")?;
    let data: serde_json::Value = serde_json::from_str(field("data: ")?).ok()?;
    let code = data["error"]["code"].as_str();
    // Two kinds of error share a code: the one that ends the turn and the one that does not.
    let goes_on = data["is_final"] == false;
    let is = |mark: &&Mark| {
        mark.event_type() == event
            && mark.error_code().or(mark.cancel_code()) == code
            && (event != "error" || mark.terminal_type().is_none() == goes_on)
    };
    Mark::ALL.iter().find(is).copied()
}

impl FrameMark for Mark {
    const ALL: &'static [Self] = Mark::ALL;

    fn index(self) -> usize {
        self.index()
    }

    fn event_type(self) -> &'static str {
        self.event_type()
    }

    fn terminal(self) -> Option<&'static str> {
        self.terminal_type()
    }

    fn error_code(self) -> Option<&'static str> {
        self.error_code()
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

    #[test]
    fn law_11_of_a_slice_that_is_cut_the_frames_that_are_out_count() {
        let block = |event: &str, more: &str| {
            format!("id: x-0\nevent: {event}\ndata: {{\"event_type\":\"{event}\"{more}}}\n\n")
        };
        let error = block("error", ",\"error\":{\"code\":\"RATE_LIMIT_ERROR\"}");
        let all = [block("text", ""), block("text", ""), error].concat();
        let two = block("text", "").len() * 2;
        for (written, counts) in [
            (two - 1, vec![(Mark::Text, 1)]),
            (two, vec![(Mark::Text, 2)]),
            (all.len() - 1, vec![(Mark::Text, 2)]),
        ] {
            let partial = ChatFormat::tally_partial(&all.as_bytes()[..written]);
            assert_eq!(partial.counts(), counts);
        }
        assert_eq!(
            mark_of(all.rsplit("\n\n").nth(1).expect("the error")),
            Some(Mark::ErrorRateLimit)
        );
        for (ends, mark) in [(true, Mark::ErrorEnvelope), (false, Mark::ReportedEnvelope)] {
            let more =
                format!(",\"error\":{{\"code\":\"CCS_ENVELOPE_ERROR\"}},\"is_final\":{ends}");
            assert_eq!(mark_of(&block("error", &more)), Some(mark));
        }
    }
}
