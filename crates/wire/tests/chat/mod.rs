//! The chat wire over every scenario, in both versions.
//!
//! `sse` reads streams as a browser does, `law` says what must hold of each turn's stream,
//! `harm` that it would be noticed, `resume` cuts and replays them, `version` reads them with an old client's eyes, `random` makes
//! up turns and texts.

mod harm;
mod law;
mod random;
mod resume;
mod sse;
mod version;

use serde_json::{Map, Value};
use turnwire_event::{Event, TurnId};
use turnwire_wire::pc3::{self, Marks, Version};

use crate::scenario::catalog;

/// The blocks of all turns, one turn after the other.
pub(crate) fn stream(events: &[Event], version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        pc3::project(event, version, &mut out);
    }
    out
}

/// The events of each turn, in order: a stream is of one turn.
fn turns(events: &[Event]) -> Vec<Vec<Event>> {
    let mut turns: Vec<(TurnId, Vec<Event>)> = Vec::new();
    for event in events {
        let Some(turn) = event.turn_id else { continue };
        match turns.iter_mut().find(|(known, _)| *known == turn) {
            Some((_, events)) => events.push(event.clone()),
            None => turns.push((turn, vec![event.clone()])),
        }
    }
    turns.into_iter().map(|(_, events)| events).collect()
}

/// Every turn of every scenario, with a name to find it by.
fn all_turns() -> Vec<(String, Vec<Event>)> {
    let named = catalog::all().into_iter().flat_map(|(name, events)| {
        let turns = turns(&events).into_iter().enumerate();
        turns.map(move |(at, turn)| (format!("{name}, turn {}", at + 1), turn))
    });
    named.collect()
}

/// A frame read strictly: one id, one event, one line of data that is a JSON object.
#[derive(Clone, Debug, PartialEq)]
struct Frame {
    id: String,
    event: String,
    data: Map<String, Value>,
}

impl Frame {
    fn text(&self, field: &str) -> &str {
        self.data.get(field).and_then(Value::as_str).unwrap_or("")
    }
}

/// What stands in a stream.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Frame(Frame),
    Done,
}

/// Reads a stream that must be whole blocks in the one form they have here.
fn items(bytes: &[u8]) -> Result<Vec<Item>, String> {
    if bytes.contains(&b'\r') || bytes.contains(&0) {
        return Err("CR and NUL stand nowhere".into());
    }
    let (blocks, left) = sse::read(bytes);
    if !left.is_empty() {
        return Err(format!("{left:?} is not ended"));
    }
    blocks.iter().map(item).collect()
}

fn item(block: &sse::Block) -> Result<Item, String> {
    let odd = || format!("{block:?} has another form");
    let [data] = &block.data[..] else {
        return Err(odd());
    };
    match (&block.id[..], &block.event[..], &block.other[..]) {
        ([], [], []) if data == "[DONE]" => Ok(Item::Done),
        ([id], [event], []) => Ok(Item::Frame(Frame {
            id: id.clone(),
            event: event.clone(),
            data: serde_json::from_str(data).map_err(|error| format!("{error} in {data}"))?,
        })),
        _ => Err(odd()),
    }
}

fn frames(bytes: &[u8]) -> Vec<Frame> {
    let items = items(bytes).expect("a stream");
    let frame = |item| match item {
        Item::Frame(frame) => Some(frame),
        Item::Done => None,
    };
    items.into_iter().filter_map(frame).collect()
}

#[test]
fn law_11_marks_are_the_frames_that_were_written() {
    for (name, events) in catalog::all() {
        for version in Version::ALL {
            for event in &events {
                let mut out = Vec::new();
                let marks = pc3::project(event, version, &mut out);
                assert_eq!(Marks::from_bits(marks.bits()), marks);
                let written = frames(&out);
                assert_eq!(marks.len(), written.len(), "{name}");
                for (mark, frame) in marks.iter().zip(&written) {
                    assert_eq!(mark.event_type(), frame.event, "{name}");
                    let code = frame.data.get("error").and_then(|e| e["code"].as_str());
                    assert_eq!(mark.error_code().or(mark.cancel_code()), code, "{name}");
                    let ends = out.ends_with(pc3::SENTINEL) && Some(frame) == written.last();
                    assert_eq!(mark.terminal().is_some(), ends, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_client_reads_every_frame_that_is_sent() {
    for (name, events) in catalog::all() {
        for version in Version::ALL {
            let (blocks, _) = sse::read(&stream(&events, version));
            for block in blocks {
                let event = block.event.first().map_or("", String::as_str);
                let read = pc3::decode(event, &block.data[0]).expect("a frame");
                let unknown = matches!(read, pc3::Decoded::Unknown(_));
                assert!(!unknown, "{name}: {read:?}");
            }
        }
    }
}
