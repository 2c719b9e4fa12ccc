//! A session's log as the store returns it: one event for each line, then what the server makes of it
//! for clients, snapshots and the end of a turn that a crash has cut off.

use std::collections::BTreeMap;

use turnwire_dial::{SseLimits, SseReader};
use turnwire_event::code::{CancelCode, ErrorCode};
use turnwire_event::fold::close::{CloseCause, closing};
use turnwire_event::fold::cut::DeltaCut;
use turnwire_event::fold::message::MessageFold;
use turnwire_event::fold::open_work::OpenWork;
use turnwire_event::fold::rows::rows;
use turnwire_event::fold::turn::OpenTurn;
use turnwire_event::{Body, Event, Position, Timestamp, TurnId};
use turnwire_wire::pc3::{DecodedBlock, FrameCursor, WireVersion, decode, project, project_after};
use turnwire_wire::session::write_event;

pub(crate) fn run(input: &[u8]) {
    let mut work = OpenWork::default();
    let mut turns: BTreeMap<TurnId, OpenTurn> = BTreeMap::new();
    let mut messages = Vec::new();
    for line in input.split(|byte| *byte == b'\n') {
        let Ok(event) = Event::read(line) else {
            continue;
        };
        let bytes = event.to_bytes();
        let again = Event::read(&bytes).expect("an event that was written can be read");
        assert_eq!(again, event);
        assert_eq!(again.to_bytes(), bytes, "an event is written in one way");
        frames(&event, &bytes);
        let _ = rows(event.turn_id, &event.actor, &event.body);
        work.apply(
            event.session_id,
            &event.head(),
            event.timestamp,
            &event.body,
        );
        fold(&event, &mut turns, &mut messages);
    }
    for turn in turns.values() {
        end(turn);
    }
}

/// The messages and the open work of turns.
fn fold(event: &Event, turns: &mut BTreeMap<TurnId, OpenTurn>, messages: &mut Vec<MessageFold>) {
    let (at, time) = (event.id, event.timestamp);
    let Some(turn_id) = event.turn_id else {
        return;
    };
    let turn = turns
        .entry(turn_id)
        .or_insert_with(|| OpenTurn::new(turn_id));
    turn.apply(at, time, &event.actor, &event.body);
    if let Body::MessageStart(start) = &event.body {
        let (id, model) = (start.message_id, start.model.clone());
        messages.push(MessageFold::new(id, turn_id, model, at, time));
    }
    for message in messages {
        message.apply(at, time, &event.body);
        let _ = message.open_tool_uses();
        let texts = message.content().len();
        assert!(texts <= message.blocks.len(), "a block is content once");
    }
}

/// The events that end a turn after a crash: the last one is its terminal.
fn end(turn: &OpenTurn) {
    let now = Timestamp::from_millis(0);
    let causes = [
        CloseCause::Failed {
            error: ErrorCode::InternalError.into(),
            reason: None,
        },
        CloseCause::Cancelled {
            reason: "timeout".into(),
            code: CancelCode::RequestCancelled,
            asked: now,
            stops: None,
        },
    ];
    for cause in &causes {
        let ending = closing(turn, cause, &[], now);
        let terminals = ending
            .iter()
            .filter(|event| event.body.kind().is_terminal());
        assert_eq!(terminals.count(), 1, "a turn has one terminal");
        assert!(
            ending
                .last()
                .is_some_and(|last| last.body.kind().is_terminal())
        );
    }
}

/// Both wires: every frame of the chat wire can be decoded, and a client that resumes in the middle of
/// an event gets the frames that it lacks.
fn frames(event: &Event, bytes: &[u8]) {
    let mut frame = Vec::new();
    write_event(bytes, &mut frame);
    let frame: serde_json::Value = serde_json::from_slice(&frame).expect("a frame is JSON");
    assert_eq!(frame["type"], "event");
    for version in WireVersion::ALL {
        let mut whole = Vec::new();
        project(event, version, &mut whole);
        let ids = decoded(&whole);
        for (index, id) in ids.iter().enumerate() {
            let cursor: FrameCursor = id.parse().expect("an id is a cursor");
            assert!(cursor.may_be_of(event.session_id));
            let mut rest = Vec::new();
            project_after(event, version, &cursor, &mut rest);
            assert!(whole.ends_with(&rest));
            assert_eq!(decoded(&rest), &ids[index + 1..]);
        }
    }
}

/// The ids of the frames in a stream, each of which can be decoded.
fn decoded(stream: &[u8]) -> Vec<String> {
    let mut reader = SseReader::new(SseLimits::per_event(1 << 24));
    let (mut unread, mut ids) = (stream, Vec::new());
    while let Some(block) = reader.next_block(&mut unread).expect("blocks of our own") {
        let (name, data) = (
            block.event.unwrap_or_default(),
            block.data.unwrap_or_default(),
        );
        match decode(name, data).expect("a frame of our own") {
            DecodedBlock::Frame(_) => ids.extend(block.id.map(str::to_owned)),
            DecodedBlock::Done => {}
            DecodedBlock::Unknown(name) => panic!("a frame of the unknown type {name}"),
        }
    }
    ids
}

/// The positions of the deltas of a message, as its row has them.
pub(crate) fn run_cuts(input: &[u8]) {
    let start: Position = "evt_00010000000001".parse().expect("a position");
    let start = (start, Timestamp::from_millis(1_700_000_000_000));
    let cuts = DeltaCut::read_all(start, input);
    let mut written = Vec::new();
    for cut in &cuts {
        cut.write(start, &mut written);
    }
    assert_eq!(DeltaCut::read_all(start, &written), cuts);
}
