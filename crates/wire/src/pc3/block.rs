//! One event's blocks as they are written: the lines around the JSON, the four envelope fields,
//! and which frames were left out because the client has them.
//!
//! ```text
//! id: evt_00010000000006-1
//! event: completed
//! data: {"event_type":"completed","version":"0.5","timestamp":"…","response_id":"resp_…"}
//!
//! ```
//! All that is not ours is inside JSON strings, where line ends and NUL are escaped: no text can
//! end a line or a block.

use std::io::Write as _;

use serde::Serialize;
use turnwire_event::{Event, ResponseId, TurnId};

use super::SENTINEL;
use super::mark::{Mark, Marks};
use super::version::Version;

/// The blocks of one event.
pub(crate) struct Blocks<'a> {
    pub(crate) event: &'a Event,
    pub(crate) turn: TurnId,
    pub(crate) version: Version,
    /// How many frames the client has already.
    pub(crate) skip: u8,
    /// The number of the next frame.
    pub(crate) next: u8,
    pub(crate) marks: Marks,
    pub(crate) out: &'a mut Vec<u8>,
}

impl Blocks<'_> {
    /// A frame without a payload.
    pub(crate) fn bare(&mut self, mark: Mark) {
        self.frame(mark, |_| {});
    }

    /// A frame; a terminal one with the sentinel behind it.
    pub(crate) fn frame(&mut self, mark: Mark, payload: impl FnOnce(&mut Payload<'_>)) {
        let number = self.next;
        self.next += 1;
        if number < self.skip {
            return;
        }
        self.head(number, mark.event_type());
        payload(&mut Payload { out: self.out });
        self.out.extend_from_slice(b"}\n\n");
        if mark.terminal().is_some() {
            self.out.extend_from_slice(SENTINEL);
        }
        self.marks.push(mark);
    }

    fn head(&mut self, number: u8, event_type: &str) {
        self.out.extend_from_slice(b"id: ");
        self.event.id.write(self.out);
        let (version, at) = (self.version, self.event.timestamp);
        let prefix = ResponseId::PREFIX;
        write!(
            self.out,
            "-{number}\nevent: {event_type}\ndata: {{\"event_type\":\"{event_type}\",\
             \"version\":\"{version}\",\"timestamp\":\"{at}\",\"response_id\":\"{prefix}"
        )
        .expect("a Vec takes any bytes");
        self.out.extend_from_slice(&self.turn.0.text());
        self.out.push(b'"');
    }
}

/// The fields of a frame after its envelope.
pub(crate) struct Payload<'a> {
    out: &'a mut Vec<u8>,
}

impl Payload<'_> {
    /// One field. Names are ours and need no escaping.
    pub(crate) fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) {
        write!(self.out, ",\"{name}\":").expect("a Vec takes any bytes");
        serde_json::to_writer(&mut *self.out, value)
            .expect("plain data, and a Vec takes any bytes");
    }
}
