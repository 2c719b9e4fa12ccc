//! Content that an event and a message have in common, stored once.
//!
//! `turn.started` contains the input of its turn, and the message of the same commit has it as its
//! content. The message outlives the event, so the row of the message has the content, and the row of
//! the event has the bytes around it:
//!
//! ```text
//! event.bytes     {"id":"evt_…",…,"input":│,"kind":"chat",…}      content_at = offset of │
//! message.content                         └ [{"type":"text",…}]   content_of = id of the message
//! ```
//!
//! A read puts them together again and checks the hash of the whole, so the bytes of an event are
//! exactly those that were appended, or the event is damaged.

use bytes::Bytes;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use turnwire_event::MessageId;
use turnwire_event::row::{PlacedChange, RowChange};

use crate::record::EventRecord;

/// The smallest content that is stored once: below, the reference and the second lookup of a read
/// cost more than the copy.
const SHARED_BYTES_MIN: usize = 1_024;

/// The columns of an event that [`read_bytes`] reads.
pub(crate) const BYTES_COLUMNS: &str =
    "bytes, content_at, (SELECT m.content FROM message m WHERE m.id = event.content_of)";

/// The place of a message's content in the bytes of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SharedContent {
    pub(crate) message: MessageId,
    /// The offset of the content.
    pub(crate) at: usize,
    len: usize,
}

impl SharedContent {
    /// The content that `record` has in common with a message that is written in the same commit.
    pub(crate) fn find(record: &EventRecord, rows: &[PlacedChange]) -> Option<Self> {
        if record.bytes.len() < SHARED_BYTES_MIN {
            return None;
        }
        let of_event = rows.iter().filter(|placed| placed.at.seq == record.seq);
        let mut messages = of_event.filter_map(|placed| match &placed.change {
            RowChange::MessagePut(_, message) => Some(message),
            _ => None,
        });
        messages.find_map(|message| {
            // As the message table writes it.
            let content = serde_json::to_string(&message.content).ok()?;
            let len = content.len();
            if len < SHARED_BYTES_MIN || len > record.bytes.len() {
                return None;
            }
            let mut places = record.bytes.windows(len);
            let at = places.position(|place| place == content.as_bytes())?;
            let message = message.id;
            Some(Self { message, at, len })
        })
    }

    /// The bytes of the event without the content.
    pub(crate) fn cut(&self, bytes: &[u8]) -> Vec<u8> {
        [&bytes[..self.at], &bytes[self.at + self.len..]].concat()
    }
}

/// The length of what [`read_bytes`] returns.
pub(crate) fn byte_length(row: &Row<'_>, column: usize) -> rusqlite::Result<usize> {
    let around = row.get_ref(column)?.as_bytes()?.len();
    let content = row.get_ref(column + 2)?.as_bytes_or_null()?;
    Ok(around + content.map_or(0, <[u8]>::len))
}

/// The bytes of an event from [`BYTES_COLUMNS`], the first of them at `column`; `None` if the content
/// that they refer to is not there.
pub(crate) fn read_bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Bytes>> {
    let stored = row.get_ref(column)?.as_bytes()?;
    let Some(at) = row.get::<_, Option<i64>>(column + 1)? else {
        return Ok(Some(Bytes::copy_from_slice(stored)));
    };
    let content = match row.get_ref(column + 2)? {
        ValueRef::Text(content) => content,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => {
            return Ok(None);
        }
    };
    let parts = usize::try_from(at)
        .ok()
        .and_then(|at| stored.split_at_checked(at));
    Ok(parts.map(|(before, after)| Bytes::from([before, content, after].concat())))
}
