//! The chat wire over every scenario, in both versions.
//!
//! `sse` reads streams as a browser does, `law` says what must hold of each turn's stream and
//! `shape` of each frame, `harm` that it would be noticed, `dispatch` tells turns with sub-agents
//! apart, `resume` cuts and replays streams, `version` reads them with an old client's eyes,
//! `random` makes up turns and texts.

mod dispatch;
mod harm;
mod law;
mod random;
mod resume;
mod shape;
mod sse;
mod version;

use std::path::Path;

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

#[test]
fn d_14_a_heartbeat_is_a_comment_and_retry_belongs_to_the_first_block() {
    let (_, events) = catalog::all().remove(0);
    let mut bytes = Vec::new();
    pc3::retry(2_480, &mut bytes);
    bytes.extend_from_slice(&stream(&events, Version::V05));
    bytes.extend_from_slice(pc3::HEARTBEAT);
    let (blocks, left) = sse::read(&bytes);
    assert_eq!(left, "");
    assert_eq!(blocks[0].other, ["retry: 2480"]);
    assert_eq!(blocks[0].event, ["response_id"]);
    let heartbeat = sse::Block {
        other: vec![": ka".into()],
        ..sse::Block::default()
    };
    assert_eq!(blocks.last(), Some(&heartbeat));
}

#[test]
fn every_example_of_the_page_is_in_a_golden_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("../../docs/wires/pc3.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let golden: Vec<String> = catalog::all()
        .iter()
        .flat_map(|(_, events)| Version::ALL.map(|version| stream(events, version)))
        .map(|bytes| String::from_utf8(bytes).expect("text"))
        .collect();
    let mut examples = 0;
    for block in page
        .split("\n\n")
        .filter(|block| block.contains("data: {\""))
    {
        let at = block.find("id: ").expect("an id");
        let block = format!("{}\n\n", &block[at..]);
        assert!(
            golden.iter().any(|stream| stream.contains(&block)),
            "{block}"
        );
        examples += 1;
    }
    let kinds = pc3::Mark::ALL.iter().map(|mark| mark.event_type());
    for kind in kinds.collect::<std::collections::HashSet<_>>() {
        let line = format!("event: {kind}\ndata: {{\"event_type\"");
        assert!(page.contains(&line), "{kind} has an example");
    }
    assert!(examples > 12);
}
