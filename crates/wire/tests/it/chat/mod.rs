//! The chat wire over every scenario, in both versions.
//!
//! `sse` parses streams as a browser does. `invariants` checks the stream of each turn, `shape` each
//! frame, and `mutations` checks these checks. `dispatch` covers turns with sub-agents, `resume`
//! cuts and replays streams, `version` reads them as an old client, and `random` generates turns and
//! texts.

mod dispatch;
mod mutations;
mod invariants;
mod random;
mod resume;
mod shape;
mod sse;
mod version;

use std::path::Path;

use serde_json::{Map, Value};
use turnwire_event::{Event, TurnId};
use turnwire_wire::pc3::{self, WireVersion};

use crate::scenario::catalog;

/// The blocks of all turns, one turn after the other.
pub(crate) fn stream(events: &[Event], version: WireVersion) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        pc3::project(event, version, &mut out);
    }
    out
}

/// The events of each turn, in order; a stream carries one turn.
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

/// Every turn of every scenario, with a name.
fn all_turns() -> Vec<(String, Vec<Event>)> {
    let named = catalog::all().into_iter().flat_map(|(name, events)| {
        let turns = turns(&events).into_iter().enumerate();
        turns.map(move |(at, turn)| (format!("{name}, turn {}", at + 1), turn))
    });
    named.collect()
}

/// A frame parsed strictly: one id, one event, and one line of data with a JSON object.
#[derive(Clone, Debug, PartialEq)]
struct ParsedFrame {
    id: String,
    event: String,
    data: Map<String, Value>,
}

impl ParsedFrame {
    fn text(&self, field: &str) -> &str {
        self.data.get(field).and_then(Value::as_str).unwrap_or("")
    }
}

/// An item of a stream.
#[derive(Clone, Debug, PartialEq)]
enum StreamItem {
    ParsedFrame(ParsedFrame),
    Done,
}

/// Parses a stream that consists of complete blocks.
fn items(bytes: &[u8]) -> Result<Vec<StreamItem>, String> {
    if bytes.contains(&b'\r') || bytes.contains(&0) {
        return Err("CR and NUL stand nowhere".into());
    }
    let (blocks, left) = sse::read(bytes);
    if !left.is_empty() {
        return Err(format!("{left:?} is not ended"));
    }
    blocks.iter().map(item).collect()
}

fn item(block: &sse::SseBlock) -> Result<StreamItem, String> {
    let odd = || format!("{block:?} has another form");
    let [data] = &block.data[..] else {
        return Err(odd());
    };
    match (&block.id[..], &block.event[..], &block.other[..]) {
        ([], [], []) if data == "[DONE]" => Ok(StreamItem::Done),
        ([id], [event], []) => Ok(StreamItem::ParsedFrame(ParsedFrame {
            id: id.clone(),
            event: event.clone(),
            data: serde_json::from_str(data).map_err(|error| format!("{error} in {data}"))?,
        })),
        _ => Err(odd()),
    }
}

fn frames(bytes: &[u8]) -> Vec<ParsedFrame> {
    let items = items(bytes).expect("a stream");
    let frame = |item| match item {
        StreamItem::ParsedFrame(frame) => Some(frame),
        StreamItem::Done => None,
    };
    items.into_iter().filter_map(frame).collect()
}

// LAW-11
#[test]
fn returned_kinds_equal_the_written_frames() {
    for (name, events) in catalog::all() {
        for version in WireVersion::ALL {
            for event in &events {
                let mut out = Vec::new();
                let kinds = pc3::project(event, version, &mut out);
                assert_eq!(kinds.iter().count(), kinds.len());
                let written = frames(&out);
                assert_eq!(kinds.len(), written.len(), "{name}");
                for (kind, frame) in kinds.iter().zip(&written) {
                    assert_eq!(kind.event_type(), frame.event, "{name}");
                    let code = frame.data.get("error").and_then(|e| e["code"].as_str());
                    assert_eq!(kind.error_code().or(kind.cancel_code()), code, "{name}");
                    let ends = out.ends_with(pc3::SENTINEL) && Some(frame) == written.last();
                    assert_eq!(kind.terminal_type().is_some(), ends, "{name}");
                }
            }
        }
    }
}

#[test]
fn every_projected_frame_is_decoded() {
    for (name, events) in catalog::all() {
        for version in WireVersion::ALL {
            let (blocks, _) = sse::read(&stream(&events, version));
            for block in blocks {
                let event = block.event.first().map_or("", String::as_str);
                let read = pc3::decode(event, &block.data[0]).expect("a frame");
                let unknown = matches!(read, pc3::DecodedBlock::Unknown(_));
                assert!(!unknown, "{name}: {read:?}");
            }
        }
    }
}

// D-14, C-17, I-19
#[test]
fn heartbeat_is_a_comment_and_retry_precedes_first_block() {
    let (_, events) = catalog::all().remove(0);
    let mut bytes = Vec::new();
    pc3::write_retry(2_480, &mut bytes);
    bytes.extend_from_slice(&stream(&events, WireVersion::V05));
    bytes.extend_from_slice(pc3::HEARTBEAT);
    let (blocks, left) = sse::read(&bytes);
    assert_eq!(left, "");
    assert_eq!(blocks[0].other, ["retry: 2480"]);
    assert_eq!(blocks[0].event, ["response_id"]);
    let heartbeat = sse::SseBlock {
        other: vec![": ka".into()],
        ..sse::SseBlock::default()
    };
    assert_eq!(blocks.last(), Some(&heartbeat));
}

fn documentation() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("../../docs/wires/pc3.md");
    std::fs::read_to_string(page).expect("the page")
}

// S1-143
#[test]
fn page_answers_the_questions_of_an_operator() {
    let page = documentation();
    let (_, section) = page.split_once("\n## Four questions\n").expect("a section");
    let section = section.split("\n## ").next().expect("its text");
    let paragraphs = section.split("\n\n").map(str::trim);
    let questions: Vec<&str> = paragraphs
        .filter_map(|paragraph| paragraph.strip_prefix("**")?.split_once("**"))
        .map(|(question, answer)| {
            assert!(answer.len() > 150, "an answer: {question}{answer}");
            question
        })
        .collect();
    let expected = [
        "How is a status encoded?",
        "How is a failure reported?",
        "How does the data of an enricher reach `items`?",
        "Why are scheduled runs not on this wire?",
    ];
    assert_eq!(questions, expected);
}

#[test]
fn every_documented_example_is_in_a_golden_file() {
    let page = documentation();
    let golden: Vec<String> = catalog::all()
        .iter()
        .flat_map(|(_, events)| WireVersion::ALL.map(|version| stream(events, version)))
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
    let event_types = pc3::FrameKind::ALL.iter().map(|kind| kind.event_type());
    for event_type in event_types.collect::<std::collections::HashSet<_>>() {
        let line = format!("event: {event_type}\ndata: {{\"event_type\"");
        assert!(page.contains(&line), "{event_type} has an example");
    }
    assert!(examples > 12);
}
