//! The chat wire (S1): server-sent events, one stream per turn, versions 0.5 and 0.4.
//!
//! ```text
//! event of the log ──project──▶ 0, 1 or 2 blocks: id · event · data · blank line
//! terminal                      its last block, then `data: [DONE]`
//! Last-Event-ID ──FrameCursor──▶ project_after: the same blocks without those the client has
//! ```
//! The frames of an event depend on the event and the version alone, so a frame has the same bytes
//! live, replayed and for every client. State that a wire would have to keep between events is part
//! of the events: their writer adds it.

pub mod version;
pub mod mark;
pub mod cursor;
mod block;
mod failure;
pub mod project;
pub mod decode;
#[cfg(test)]
mod tests;

pub use cursor::{FrameCursor, InvalidCursor};
pub use decode::{DecodeError, DecodedBlock, decode};
pub use mark::{FrameKinds, Mark};
pub use project::{project, project_after};
pub use version::{InvalidVersion, WireVersion};

use turnwire_event::{ResponseId, Timestamp};

/// The `content-type` of a stream (S1-013).
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Sent on an idle stream so that proxies and clients keep it open (D-14). A comment, not a frame;
/// it is not counted.
pub const HEARTBEAT: &[u8] = b": ka\n\n";

/// Follows the terminal frame (see [`Mark::terminal_type`]) in the same write (S1-005). Not a frame; it
/// has no id.
pub const SENTINEL: &[u8] = b"data: [DONE]\n\n";

/// Appends a terminal error frame for a stream that cannot continue: its session is deleted or
/// quarantined, or contains an event that this wire cannot represent. The frame belongs to no event
/// and has no id: a client that resumes gets the same frame again.
pub fn write_lost(
    version: WireVersion,
    response_id: ResponseId,
    at: Timestamp,
    out: &mut Vec<u8>,
) -> FrameKinds {
    let text = format!(
        "event: error\ndata: {{\"event_type\":\"error\",\"version\":\"{version}\",\"timestamp\":\"{at}\",\
         \"response_id\":\"{response_id}\",\"error\":{{\"code\":\"INTERNAL_ERROR\"}},\"is_final\":true}}\n\n"
    );
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(SENTINEL);
    let mut marks = FrameKinds::NONE;
    marks.push(Mark::ErrorInternal);
    marks
}

/// Appends the reconnect delay of the client. No blank line follows, so that the line becomes part
/// of the first block.
pub fn write_retry(ms: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("retry: {ms}\n").as_bytes());
}
