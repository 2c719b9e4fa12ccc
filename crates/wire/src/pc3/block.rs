//! Writes the blocks of one event: the lines around the JSON, the four envelope fields, and the
//! number of leading frames to skip because the client has them.
//!
//! ```text
//! id: evt_00010000000006-1-9K3T
//! event: completed
//! data: {"event_type":"completed","version":"0.5","timestamp":"…","response_id":"resp_…"}
//!
//! ```
//! All foreign text is inside JSON strings, where line breaks and NUL are escaped, so no text can
//! end a line or a block.

use std::io::Write as _;

use serde::Serialize;
use turnwire_event::envelope::write_response_id;
use turnwire_event::{Event, TurnId};

use super::SENTINEL;
use super::cursor::SessionTag;
use super::frame_kind::{FrameKind, FrameKinds};
use super::version::WireVersion;

/// Writes the blocks of one event.
pub(crate) struct BlockWriter<'a> {
    pub(crate) event: &'a Event,
    pub(crate) turn: TurnId,
    pub(crate) version: WireVersion,
    /// The number of leading frames that the client already has.
    pub(crate) skip: u8,
    /// The index of the next frame within the event.
    pub(crate) next: u8,
    pub(crate) kinds: FrameKinds,
    pub(crate) out: &'a mut Vec<u8>,
}

impl BlockWriter<'_> {
    /// Writes a frame without payload.
    pub(crate) fn empty_frame(&mut self, kind: FrameKind) {
        self.frame(kind, |_| {});
    }

    /// Writes a frame; a terminal frame is followed by [`SENTINEL`].
    pub(crate) fn frame(&mut self, kind: FrameKind, payload: impl FnOnce(&mut PayloadWriter<'_>)) {
        let index = self.next;
        self.next += 1;
        if index < self.skip {
            return;
        }
        self.head(index, kind.event_type());
        payload(&mut PayloadWriter { out: self.out });
        self.out.extend_from_slice(b"}\n\n");
        if kind.terminal_type().is_some() {
            self.out.extend_from_slice(SENTINEL);
        }
        self.kinds.push(kind);
    }

    fn head(&mut self, index: u8, event_type: &str) {
        self.out.extend_from_slice(b"id: ");
        self.event.id.write(self.out);
        let (version, timestamp) = (self.version, self.event.timestamp);
        let tag = SessionTag::of(self.event.session_id);
        write!(
            self.out,
            "-{index}-{tag}\nevent: {event_type}\ndata: {{\"event_type\":\"{event_type}\",\
             \"version\":\"{version}\",\"timestamp\":\"{timestamp}\",\"response_id\":\""
        )
        .expect("a Vec takes any bytes");
        let given = self.event.response_id.as_ref();
        write_response_id(given, self.turn, self.out);
        self.out.push(b'"');
    }
}

/// Writes the fields of a frame after its envelope.
pub(crate) struct PayloadWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl PayloadWriter<'_> {
    /// Writes one field. Names are constants and need no escaping.
    pub(crate) fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) {
        write!(self.out, ",\"{name}\":").expect("a Vec takes any bytes");
        serde_json::to_writer(&mut *self.out, value)
            .expect("plain data, and a Vec takes any bytes");
    }
}
