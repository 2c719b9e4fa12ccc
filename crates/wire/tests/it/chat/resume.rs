//! Invariants 2 and 3: a stream that is cut anywhere resumes at the cut, live or replayed.

use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::{self, FinishedReplay, ReplayRange};
use turnwire_event::{Body, Event, Position};
use turnwire_wire::pc3::{self, FrameCursor, WireVersion};

use super::{ParsedFrame, StreamItem, all_turns, frames, items, stream};

/// The end offset and the id of each frame. The sentinel belongs to the terminal frame.
fn cuts(bytes: &[u8]) -> Vec<(String, usize)> {
    let text = std::str::from_utf8(bytes).expect("a stream is text");
    let mut cuts: Vec<(String, usize)> = Vec::new();
    let mut end = 0;
    for block in text.split_inclusive("\n\n") {
        end += block.len();
        match block
            .strip_prefix("id: ")
            .and_then(|remaining| remaining.split_once('\n'))
        {
            Some((id, _)) => cuts.push((id.to_owned(), end)),
            None => cuts.last_mut().expect("a frame before the sentinel").1 = end,
        }
    }
    cuts
}

fn after(events: &[Event], version: WireVersion, cursor: &FrameCursor) -> Vec<u8> {
    let mut out = Vec::new();
    let since = cursor.replay_start();
    for event in events.iter().filter(|event| event.id > since) {
        pc3::project_after(event, version, cursor, &mut out);
    }
    out
}

// S1-010, LAW-2
#[test]
fn stream_cut_at_any_frame_resumes_without_loss() {
    for (name, turn) in all_turns() {
        for version in WireVersion::ALL {
            let complete = stream(&turn, version);
            for (id, end) in cuts(&complete) {
                let cursor: FrameCursor = id.parse().expect("ids are cursors");
                let remaining = after(&turn, version, &cursor);
                let resumed = [&complete[..end], &remaining].concat();
                assert!(resumed == complete, "{name}, {version}: cut behind {id}");
            }
        }
    }
}

// LAW-2
#[test]
fn event_id_is_a_cursor_behind_all_its_frames() {
    for (name, turn) in all_turns() {
        let complete = stream(&turn, WireVersion::V05);
        for at in 0..turn.len() {
            let before = stream(&turn[..=at], WireVersion::V05);
            let remaining = after(&turn, WireVersion::V05, &FrameCursor::from(turn[at].id));
            assert!(
                [before, remaining].concat() == complete,
                "{name}: {}",
                turn[at].id
            );
        }
    }
}

/// The messages of a turn, folded from their deltas.
fn messages(turn: &[Event]) -> Vec<MessageFold> {
    let mut messages: Vec<MessageFold> = Vec::new();
    for event in turn {
        if let (Body::MessageStart(start), Some(turn)) = (&event.body, event.turn_id) {
            let model = start.model.clone();
            let id = start.message_id;
            messages.push(MessageFold::new(id, turn, model, event.id, event.timestamp));
        }
        for message in &mut messages {
            message.apply(event.id, event.timestamp, &event.body);
        }
    }
    messages
}

/// The events of a replay from the store: the persisted events, and the text with deltas joined.
pub(super) fn replayed(turn: &[Event], since: Position) -> Vec<Event> {
    let upto = turn.last().expect("a terminal").id;
    let stretch = ReplayRange {
        since,
        upto,
        from: since,
        to: upto,
    };
    let persisted = |event: &&Event| event.id.is_persisted() && event.id > since;
    let mut events: Vec<Event> = turn.iter().filter(persisted).cloned().collect();
    for message in messages(turn) {
        let session = turn[0].session_id;
        events.extend(replay::events(
            &message,
            session,
            stretch,
            FinishedReplay::Deltas,
        ));
    }
    events.sort_by_key(|event| event.id);
    events
}

/// The frames with adjacent chunks of one kind joined, each with the id of its last chunk.
fn joined(frames: &[ParsedFrame]) -> Vec<ParsedFrame> {
    let mut out: Vec<ParsedFrame> = Vec::new();
    for frame in frames {
        let field = if frame.event == "thinking" {
            "content"
        } else {
            "chunk"
        };
        if let Some(last) = out.last_mut()
            && last.event == frame.event
            && last.data.contains_key(field)
            && frame.data.contains_key(field)
        {
            let text = last.text(field).to_owned() + frame.text(field);
            *last = frame.clone();
            last.data.insert(field.to_owned(), text.into());
        } else {
            out.push(frame.clone());
        }
    }
    out
}

/// The part of the frames on which two streams must agree. A joined chunk that ends in a delta
/// without text carries the id and time of that delta.
fn comparable(frames: &[ParsedFrame]) -> Vec<ParsedFrame> {
    let mut frames = joined(frames);
    for frame in &mut frames {
        if ["thinking", "reasoning", "text"].contains(&frame.event.as_str()) {
            frame.id.clear();
            frame.data.remove("timestamp");
        }
    }
    frames
}

/// Compares the replay after every frame with the live frames after it.
pub(super) fn replay_is_live(name: &str, turn: &[Event], version: WireVersion) {
    let complete = stream(turn, version);
    let live = frames(&complete);
    let start: FrameCursor = "evt_00010000000000".parse().expect("the cursor before all");
    let cursors = live.iter().map(|frame| frame.id.parse().expect("a cursor"));
    for cursor in std::iter::once(start).chain(cursors) {
        let events = replayed(turn, cursor.replay_start());
        let bytes = after(&events, version, &cursor);
        let remaining = frames(&bytes);
        let lacking = |frame: &&ParsedFrame| {
            let at: FrameCursor = frame.id.parse().expect("a cursor");
            !cursor.covers(at.position, at.frame.unwrap_or(0))
        };
        // MCP server frames are sent live only.
        let is_replayed = |frame: &&ParsedFrame| lacking(frame) && !frame.event.starts_with("mcp_");
        let wanted: Vec<ParsedFrame> = live.iter().filter(is_replayed).cloned().collect();
        assert_eq!(
            comparable(&remaining),
            comparable(&wanted),
            "{name}, {version}: after {cursor}"
        );
        // The ids of the replay are cursors too, and nothing follows the end.
        let rising = remaining.windows(2).all(|pair| pair[0].id < pair[1].id);
        assert!(rising, "{name}: ids rise after {cursor}");
        let ended = items(&bytes).expect("blocks").last() == Some(&StreamItem::Done);
        assert_eq!(ended, !wanted.is_empty(), "{name}: after {cursor}");
    }
}

// S1-011, LAW-3
#[test]
fn replay_with_joined_deltas_equals_live() {
    for (name, turn) in all_turns() {
        for version in WireVersion::ALL {
            replay_is_live(&name, &turn, version);
        }
    }
}

// LAW-3
#[test]
fn replay_joins_deltas_and_keeps_frames_apart() {
    let scenario_turn = all_turns()
        .into_iter()
        .find(|(n, _)| n.starts_with("thinking_after"));
    let (_, turn) = scenario_turn.expect("a scenario");
    let start = FrameCursor::from(Position::persisted(
        turn[0].id.epoch,
        turnwire_event::Seq(0),
    ));
    let events = replayed(&turn, start.replay_start());
    let bytes = after(&events, WireVersion::V05, &start);
    let comparable: Vec<String> = frames(&bytes)
        .into_iter()
        .map(|frame| frame.event)
        .collect();
    assert_eq!(
        comparable,
        [
            "response_id",
            "episode",
            "thinking",
            "thinking",
            "text",
            "reasoning",
            "tool_call",
            "tool_completed",
            "reasoning",
            "text",
            "usage",
            "completed",
        ]
    );
}
