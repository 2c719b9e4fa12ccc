//! `/sessions/{id}/events`: the stored log, byte for byte, with its hashes on request.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use turnwire_event::Position;

/// The reference to the schema of an event in the OpenAPI document.
#[cfg(feature = "schema")]
pub(crate) const EVENT_SCHEMA: &str = "#/components/schemas/Event";

/// 200 of `GET /sessions/{id}/events`, oldest first, as clients parse it. The events are the stored
/// bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventList {
    /// The events as the log stores them.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<StoredEventSchema>"))]
    pub events: Vec<Box<RawValue>>,
    /// The `since` of the next page; null on the last page.
    pub next: Option<Position>,
    /// The hash of the chain before the first event of the page, if hashes were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_hash: Option<String>,
    /// The hash of the chain at each event of the page, if hashes were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hashes: Option<Vec<String>>,
}

/// A stored event in the schema: a reference to `schema/event.json`.
#[cfg(feature = "schema")]
struct StoredEventSchema;

#[cfg(feature = "schema")]
impl JsonSchema for StoredEventSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Stored".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "$ref": EVENT_SCHEMA })
    }
}

/// The hashes of a page of events.
#[derive(Clone, Debug)]
pub struct EventHashes<'a> {
    /// The hash of the chain before the first event.
    pub previous: &'a [u8; 32],
    /// The hash of the chain at each event.
    pub each: Vec<&'a [u8; 32]>,
}

/// Writes a [`EventList`] around events that are JSON already, so that they stay the stored bytes.
pub fn write<'a>(
    events: impl Iterator<Item = &'a [u8]>,
    next: Option<Position>,
    hashes: Option<&EventHashes<'_>>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"events\":[");
    for (index, event) in events.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(event);
    }
    out.extend_from_slice(b"],\"next\":");
    match next {
        None => out.extend_from_slice(b"null"),
        Some(next) => {
            out.push(b'"');
            next.write(out);
            out.push(b'"');
        }
    }
    if let Some(hashes) = hashes {
        out.extend_from_slice(b",\"previous_hash\":");
        write_hex(hashes.previous, out);
        out.extend_from_slice(b",\"hashes\":[");
        for (index, hash) in hashes.each.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_hex(hash, out);
        }
        out.push(b']');
    }
    out.push(b'}');
}

fn write_hex(hash: &[u8; 32], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in hash {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{Epoch, Seq};

    //
    #[test]
    fn listed_events_are_the_stored_bytes() {
        let stored: [&[u8]; 2] = [b"{\"id\" : 1.0}", "{\"t\":\"\u{2028}\"}".as_bytes()];
        let mut out = Vec::new();
        let next = Position::persisted(Epoch(1), Seq(2));
        write(stored.into_iter(), Some(next), None, &mut out);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(
            text,
            "{\"events\":[{\"id\" : 1.0},{\"t\":\"\u{2028}\"}],\"next\":\"evt_00010000000002\"}"
        );
        let list: EventList = serde_json::from_str(&text).expect("its own text");
        let read: Vec<&[u8]> = list.events.iter().map(|e| e.get().as_bytes()).collect();
        assert_eq!(read, stored);
        assert_eq!(list.next, Some(next));
        assert_eq!((list.previous_hash, list.hashes), (None, None));
    }

    #[test]
    fn hashes_are_lower_case_hex() {
        let (zero, last) = ([0u8; 32], [0xabu8; 32]);
        let hashes = EventHashes {
            previous: &zero,
            each: vec![&last],
        };
        let mut out = Vec::new();
        write(
            [b"{}".as_slice()].into_iter(),
            None,
            Some(&hashes),
            &mut out,
        );
        let text = String::from_utf8(out).expect("text");
        let (zeros, abs) = ("00".repeat(32), "ab".repeat(32));
        assert_eq!(
            text,
            format!(
                "{{\"events\":[{{}}],\"next\":null,\"previous_hash\":\"{zeros}\",\"hashes\":[\"{abs}\"]}}"
            )
        );
    }
}
