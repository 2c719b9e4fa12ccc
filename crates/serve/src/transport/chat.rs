//! The chat wire (pc3) as server-sent events: the blocks of [`turnwire_wire::pc3`] are its frames.

use tokio::net::TcpStream;
use turnwire_event::{Clock as _, Event, EventType, TurnResponseId, metric};
use turnwire_hub::RingEntry;
use turnwire_session::SystemClock;
use turnwire_wire::pc3::{self, FrameCursor, FrameKind, WireVersion};

use super::carrier::FrameFormat;
use super::carrier::event_stream::{EventStream, complete_blocks, skip_blocks};
use super::turn::{FrameLabels, KindTally, TurnFormat};

/// The [`TurnFormat`] of one version of the chat wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChatFormat(pub(crate) WireVersion);

impl FrameFormat for ChatFormat {
    type Tally = KindTally;

    /// The session wire has the first track.
    fn track(self) -> usize {
        match self.0 {
            WireVersion::V05 => 1,
            WireVersion::V04 => 2,
        }
    }

    fn write(self, entry: &RingEntry, out: &mut Vec<u8>) -> u64 {
        self.write_entry(entry, out)
    }
}

impl TurnFormat for ChatFormat {
    type Framing = EventStream<TcpStream>;
    const OPEN_STREAMS: &'static str = metric::SSE_STREAMS;
    const HEARTBEAT: &'static [u8] = pc3::HEARTBEAT;

    fn frame_labels() -> Vec<FrameLabels> {
        let labels = |kind: &FrameKind| FrameLabels {
            event_type: kind.event_type(),
            terminal: kind.terminal_type(),
            error_code: kind.error_code(),
        };
        FrameKind::ALL.iter().map(labels).collect()
    }

    fn write_frames(
        self,
        event: &Event,
        client_cursor: Option<&FrameCursor>,
        out: &mut Vec<u8>,
    ) -> u32 {
        let kinds = match client_cursor {
            Some(cursor) => pc3::project_after(event, self.0, cursor, out),
            None => pc3::project(event, self.0, out),
        };
        kinds.bits()
    }

    fn write_stream_error(self, response: &TurnResponseId, out: &mut Vec<u8>) -> u32 {
        pc3::write_stream_error(self.0, response, SystemClock.now(), out).bits()
    }

    fn skip_frames(frames: &[u8], skip: usize) -> usize {
        skip_blocks(frames, skip)
    }

    fn complete_kinds(partial: &[u8]) -> impl Iterator<Item = u8> {
        let kinds = complete_blocks(partial).filter_map(frame_kind);
        kinds.map(|kind| kind.index() as u8)
    }

    /// `turn.completed` has a `usage` frame and then the terminal frame; `turn.cancelled` has the
    /// terminal frame alone.
    fn last_frame_number(terminal: EventType) -> u8 {
        u8::from(terminal == EventType::TurnCompleted)
    }
}

/// The [`FrameKind`] of a block; `None` if the block is not a frame.
fn frame_kind(block: &str) -> Option<FrameKind> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let event = field("event: ")?;
    let data: serde_json::Value = serde_json::from_str(field("data: ")?).ok()?;
    let code = data["error"]["code"].as_str();
    // Two kinds of error share a code: the one that ends the turn and the one that does not.
    let turn_continues = data["is_final"] == false;
    let is_match = |kind: &&FrameKind| {
        kind.event_type() == event
            && kind.error_code().or(kind.cancel_code()) == code
            && (event != "error" || kind.terminal_type().is_none() == turn_continues)
    };
    FrameKind::ALL.iter().find(is_match).copied()
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

    // LAW-11
    #[test]
    fn written_frames_of_a_partial_slice_count() {
        let block = |event: &str, more: &str| {
            format!("id: x-0\nevent: {event}\ndata: {{\"event_type\":\"{event}\"{more}}}\n\n")
        };
        let error = block("error", ",\"error\":{\"code\":\"RATE_LIMIT_ERROR\"}");
        let all = [block("text", ""), block("text", ""), error].concat();
        let two = block("text", "").len() * 2;
        for (written, kinds) in [
            (two - 1, vec![FrameKind::Text]),
            (two, vec![FrameKind::Text, FrameKind::Text]),
            (all.len() - 1, vec![FrameKind::Text, FrameKind::Text]),
        ] {
            let partial = ChatFormat::complete_kinds(&all.as_bytes()[..written]);
            let expected: Vec<u8> = kinds.iter().map(|kind| kind.index() as u8).collect();
            assert_eq!(partial.collect::<Vec<_>>(), expected);
        }
        assert_eq!(
            frame_kind(all.rsplit("\n\n").nth(1).expect("the error")),
            Some(FrameKind::ErrorRateLimit)
        );
        for (ends, kind) in [
            (true, FrameKind::ErrorEnvelope),
            (false, FrameKind::ReportedEnvelope),
        ] {
            let more =
                format!(",\"error\":{{\"code\":\"CCS_ENVELOPE_ERROR\"}},\"is_final\":{ends}");
            assert_eq!(frame_kind(&block("error", &more)), Some(kind));
        }
    }
}
