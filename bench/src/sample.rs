//! Frames made before the clock runs: real `text.delta` event frames of the session wire, and
//! blocks of the chat wire that say the same.
//!
//! The floor writes them, so it sends what Turnwire sends, byte for byte as long; and the paced
//! producer emits the same words, so Turnwire makes what the floor has ready.

use turnwire_event::body::stream::TextDelta;
use turnwire_event::envelope::EventEnvelope;
use turnwire_event::position::{Epoch, Position, Seq, Sub};
use turnwire_event::{Actor, Body, EventType, MessageId, ResponseId, SessionId, TurnId, Ulid};

use crate::frame;

/// What one delta says: about a word or two, as models stream them.
pub const WORDS: &str = "a dozen more";

/// How many frames a block holds; more than any window, so that a ring of them never laps.
pub const FRAMES: usize = 1024;

/// One frame of a delta that says `words`.
pub fn delta_frame(sub: u32, words: &str) -> Vec<u8> {
    let id = Ulid(0x0198_f3c5_8a7e_7d2b_9c41_5566_7788_99aa);
    let body = Body::TextDelta(TextDelta {
        message_id: MessageId(id),
        content_block_index: 0,
        text: words.to_owned(),
    });
    let mut payload = Vec::new();
    body.write(&mut payload);
    let envelope = EventEnvelope {
        response_id: None,
        id: Position {
            epoch: Epoch::FIRST,
            seq: Seq(4),
            sub: Sub(sub),
        },
        kind: EventType::TextDelta,
        session_id: SessionId(id),
        turn_id: Some(TurnId(id)),
        actor: &Actor::ORCHESTRATOR,
        timestamp: "2026-01-01T00:00:00.000Z",
        trace: None,
        render: None,
        sub_agent_id: None,
    };
    let mut event = b"{\"type\":\"event\",\"event\":".to_vec();
    envelope.write(&payload, &mut event);
    event.push(b'}');
    frame::text(&event)
}

/// One block of the chat wire that says `words`.
pub fn chat_block(sub: u32, words: &str) -> Vec<u8> {
    let id = Ulid(0x0198_f3c5_8a7e_7d2b_9c41_5566_7788_99aa);
    let at = Position {
        epoch: Epoch::FIRST,
        seq: Seq(4),
        sub: Sub(sub),
    };
    format!(
        "id: {at}-0\nevent: text\ndata: {{\"event_type\":\"text\",\"version\":\"0.5\",\
         \"timestamp\":\"2026-01-01T00:00:00.000Z\",\"response_id\":\"{}\",\
         \"type\":\"chunk\",\"chunk\":\"{words}\"}}\n\n",
        ResponseId::from(TurnId(id))
    )
    .into_bytes()
}

/// What bytes on the wire look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFormat {
    /// Frames of a WebSocket.
    WebSocket,
    /// Blocks of server-sent events.
    Sse,
}

impl SampleFormat {
    fn frame(self, sub: u32, words: &str) -> Vec<u8> {
        match self {
            Self::WebSocket => delta_frame(sub, words),
            Self::Sse => chat_block(sub, words),
        }
    }
}

/// A ring of frames that never changes: frame `n` of a stream is frame `n % FRAMES` of it, and
/// any run of frames up to the end of the block is one slice.
#[derive(Debug)]
pub struct SampleRing {
    bytes: Vec<u8>,
    frame_bytes: usize,
}

impl SampleRing {
    /// Frames of exactly `frame_bytes`, or of the natural length where that is longer.
    pub fn new(face: SampleFormat, frame_bytes: usize) -> Self {
        let natural = face.frame(1, WORDS).len();
        let padding = "x".repeat(frame_bytes.saturating_sub(natural));
        let words = format!("{WORDS}{padding}");
        let bytes: Vec<u8> = (1..=FRAMES as u32)
            .flat_map(|sub| face.frame(sub, &words))
            .collect();
        Self {
            frame_bytes: bytes.len() / FRAMES,
            bytes,
        }
    }

    /// The length of one frame on the wire.
    pub fn frame_bytes(&self) -> u64 {
        self.frame_bytes as u64
    }

    /// The bytes of a stream from offset `from` up to `to`, cut at `limit` bytes and at the end
    /// of the block.
    pub fn due(&self, from: u64, to: u64, limit: usize) -> &[u8] {
        let start = (from % self.bytes.len() as u64) as usize;
        let len = usize::try_from(to - from).unwrap_or(usize::MAX).min(limit);
        &self.bytes[start..self.bytes.len().min(start.saturating_add(len))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse;

    #[test]
    fn block_holds_complete_frames_of_one_length() {
        for wanted in [0, 400, 411] {
            let block = SampleRing::new(SampleFormat::WebSocket, wanted);
            assert!(block.frame_bytes() >= wanted as u64);
            let mut counter = frame::FrameCounter::new(0);
            let mut frames = 0;
            counter.feed(&block.bytes, |_, _| frames += 1);
            assert_eq!((frames, counter.at_boundary()), (FRAMES, true));
        }
        assert_eq!(
            SampleRing::new(SampleFormat::WebSocket, 411).frame_bytes(),
            411
        );
    }

    #[test]
    fn nested_block_holds_complete_frames() {
        for wanted in [0, 300, 301] {
            let block = SampleRing::new(SampleFormat::Sse, wanted);
            assert!(block.frame_bytes() >= wanted as u64);
            let mut counter = sse::BlockCounter::default();
            assert_eq!(counter.feed(sse::HEAD.as_bytes()), Ok(0));
            assert_eq!(counter.feed(&block.bytes), Ok(FRAMES as u64));
            assert!(block.bytes.ends_with(b"\n\n"));
        }
    }

    #[test]
    fn due_bytes_wrap_at_block_end() {
        let block = SampleRing::new(SampleFormat::WebSocket, 0);
        let size = block.frame_bytes();
        let total_bytes = size * FRAMES as u64;
        assert_eq!(block.due(0, 3 * size, usize::MAX).len() as u64, 3 * size);
        assert_eq!(
            block.due(total_bytes - size, total_bytes + size, usize::MAX),
            &block.bytes[(total_bytes - size) as usize..]
        );
        assert_eq!(
            block.due(total_bytes, total_bytes + 5, usize::MAX),
            &block.bytes[..5]
        );
        assert_eq!(block.due(0, total_bytes, 10).len(), 10);
    }
}
