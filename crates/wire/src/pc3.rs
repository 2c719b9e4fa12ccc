//! The chat wire (S1): server-sent events, one stream per turn, versions 0.5 and 0.4.
//!
//! ```text
//! event of the log ──project──▶ 0, 1 or 2 blocks: id · event · data · blank line
//! terminal                      its last block, then `data: [DONE]`
//! Last-Event-ID ──Cursor──▶ project_after: the same blocks without those the client has
//! ```
//! One event, one version, one answer: nothing is remembered between events, so a frame is the
//! same bytes live, replayed and for every viewer. What a wire would have to remember was stamped
//! into the events by their writer.

pub mod version;
pub mod mark;
pub mod cursor;
mod block;
mod failure;
pub mod project;
pub mod decode;
#[cfg(test)]
mod sample;

pub use cursor::{BadCursor, Cursor};
pub use decode::{DecodeError, Decoded, decode};
pub use mark::{Mark, Marks};
pub use project::{project, project_after};
pub use version::{BadVersion, Version};

use turnwire_event::{ResponseId, Timestamp};

/// What a stream of this wire is served as (S1-013).
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Sent where nothing else is, so that a quiet line is not taken for a dead one (D-14): a comment,
/// not a frame, and not counted.
pub const HEARTBEAT: &[u8] = b": ka\n\n";

/// What follows the terminal frame, in the same write (S1-005). Not a frame; it has no id.
pub const SENTINEL: &[u8] = b"data: [DONE]\n\n";

/// Appends the ending of a stream whose turn can no longer be told: its session is gone or damaged, or
/// holds something that this wire cannot carry. It is of no event and has no id: coming back is
/// answered with the same news.
pub fn lost(version: Version, response_id: ResponseId, at: Timestamp, out: &mut Vec<u8>) -> Marks {
    let text = format!(
        "event: error\ndata: {{\"event_type\":\"error\",\"version\":\"{version}\",\"timestamp\":\"{at}\",\
         \"response_id\":\"{response_id}\",\"error\":{{\"code\":\"INTERNAL_ERROR\"}},\"is_final\":true}}\n\n"
    );
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(SENTINEL);
    let mut marks = Marks::NONE;
    marks.push(Mark::ErrorInternal);
    marks
}

/// Appends how long a client that lost the stream should wait before it comes back. No blank line
/// follows: it becomes part of the first block.
pub fn retry(ms: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("retry: {ms}\n").as_bytes());
}
