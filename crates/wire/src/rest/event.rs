//! `/sessions/{id}/events`: the log as it is stored, byte for byte, with its hashes if asked.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use turnwire_event::Position;

/// Where the OpenAPI document keeps the schema of an event.
#[cfg(feature = "schema")]
pub(crate) const EVENT_SCHEMA: &str = "#/components/schemas/Event";

/// 200 of `GET /sessions/{id}/events`, oldest first; read by clients. The server writes it with
/// `write`, so that events stay the stored bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EventList"))]
pub struct List {
    /// The events, as the log has them.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Stored>"))]
    pub events: Vec<Box<RawValue>>,
    /// What to send as `since` for later ones; null at the end.
    pub next: Option<Position>,
    /// The chain's hash before the first event of the page, if hashes were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_hash: Option<String>,
    /// The chain's hash at each event of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hashes: Option<Vec<String>>,
}

/// An event in the log, for the schema alone: `schema/event.json` says what it holds.
#[cfg(feature = "schema")]
struct Stored;

#[cfg(feature = "schema")]
impl JsonSchema for Stored {
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

/// The hashes of a page.
#[derive(Clone, Debug)]
pub struct Hashes<'a> {
    /// Before the first event.
    pub previous: &'a [u8; 32],
    /// At each event.
    pub each: Vec<&'a [u8; 32]>,
}

/// Writes a page around events that are already JSON.
pub fn write<'a>(
    events: impl Iterator<Item = &'a [u8]>,
    next: Option<Position>,
    hashes: Option<&Hashes<'_>>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"events\":[");
    for (at, event) in events.enumerate() {
        if at > 0 {
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
        hex(hashes.previous, out);
        out.extend_from_slice(b",\"hashes\":[");
        for (at, hash) in hashes.each.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            hex(hash, out);
        }
        out.push(b']');
    }
    out.push(b'}');
}

fn hex(hash: &[u8; 32], out: &mut Vec<u8>) {
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

    #[test]
    fn r_25_events_stay_the_stored_bytes() {
        let stored: [&[u8]; 2] = [b"{\"id\" : 1.0}", "{\"t\":\"\u{2028}\"}".as_bytes()];
        let mut out = Vec::new();
        let next = Position::persisted(Epoch(1), Seq(2));
        write(stored.into_iter(), Some(next), None, &mut out);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(
            text,
            "{\"events\":[{\"id\" : 1.0},{\"t\":\"\u{2028}\"}],\"next\":\"evt_00010000000002\"}"
        );
        let list: List = serde_json::from_str(&text).expect("its own text");
        let read: Vec<&[u8]> = list.events.iter().map(|e| e.get().as_bytes()).collect();
        assert_eq!(read, stored);
        assert_eq!(list.next, Some(next));
        assert_eq!((list.previous_hash, list.hashes), (None, None));
    }

    #[test]
    fn hashes_are_lower_case_hex_beside_their_events() {
        let (zero, last) = ([0u8; 32], [0xabu8; 32]);
        let hashes = Hashes {
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
