//! The chat wire (S1): server-sent events, one stream per turn, versions 0.5 and 0.4.
//!
//! ```text
//! event ──project──▶ 0 to 4 frames, each a block: `id`, `event` and `data` lines, blank line
//! terminal event ──project──▶ its frames, then `data: [DONE]`
//! event and Last-Event-ID ──project_after──▶ the frames of the event that the client does not have
//! ```
//! The frames of an event depend on the event and the version alone, so a frame has the same bytes
//! live, replayed and for every client. The projection keeps no state between events: an event
//! contains everything that its frames need.

pub mod version;
pub mod frame_kind;
pub mod cursor;
mod block;
mod failure;
mod tool_call;
pub mod project;
pub mod decode;
#[cfg(feature = "schema")]
pub mod schema;
#[cfg(test)]
mod tests;

pub use cursor::{FrameCursor, InvalidCursor, SessionTag};
pub use decode::{DecodeError, DecodedBlock, decode};
pub use frame_kind::{FrameKind, FrameKinds};
pub use project::{project, project_after};
pub use version::{InvalidVersion, WireVersion};

use turnwire_event::{Timestamp, TurnResponseId};

/// The `content-type` of a stream (S1-013).
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Sent on an idle stream so that proxies and clients keep it open (D-14). An SSE comment, not a
/// frame: metrics do not count it.
pub const HEARTBEAT: &[u8] = b": ka\n\n";

/// Follows the terminal frame (see [`FrameKind::terminal_type`]) in the same write (S1-005). Not a
/// frame: the sentinel has no id.
pub const SENTINEL: &[u8] = b"data: [DONE]\n\n";

/// Appends a terminal `error` frame and the [`SENTINEL`], for a stream that cannot continue: its
/// session is deleted or quarantined, or the next frame is too large. The frame belongs to no event
/// and has no id, so a client that resumes gets the same frame again.
pub fn write_stream_error(
    version: WireVersion,
    response_id: &TurnResponseId,
    at: Timestamp,
    out: &mut Vec<u8>,
) -> FrameKinds {
    let text = format!(
        "event: error\ndata: {{\"event_type\":\"error\",\"version\":\"{version}\",\"timestamp\":\"{at}\",\
         \"response_id\":\"{response_id}\",\"error\":{{\"code\":\"INTERNAL_ERROR\"}},\"is_final\":true}}\n\n"
    );
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(SENTINEL);
    let mut kinds = FrameKinds::NONE;
    kinds.push(FrameKind::ErrorInternal);
    kinds
}

/// Appends the `retry` line, the delay after which the client reconnects. No blank line follows, so
/// the line becomes part of the first block.
pub fn write_retry(ms: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("retry: {ms}\n").as_bytes());
}
