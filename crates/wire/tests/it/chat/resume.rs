//! Laws 2 and 3: a stream cut anywhere goes on where it was, live or replayed.

use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::{self, Missed, Stretch};
use turnwire_event::{Body, Event, Position};
use turnwire_wire::pc3::{self, Cursor, Version};

use super::{Frame, Item, all_turns, frames, items, stream};

/// Where each frame of a stream ends, with its id. The sentinel belongs to the terminal.
fn cuts(bytes: &[u8]) -> Vec<(String, usize)> {
    let text = std::str::from_utf8(bytes).expect("a stream is text");
    let mut cuts: Vec<(String, usize)> = Vec::new();
    let mut end = 0;
    for block in text.split_inclusive("\n\n") {
        end += block.len();
        match block
            .strip_prefix("id: ")
            .and_then(|rest| rest.split_once('\n'))
        {
            Some((id, _)) => cuts.push((id.to_owned(), end)),
            None => cuts.last_mut().expect("a frame before the sentinel").1 = end,
        }
    }
    cuts
}

fn after(events: &[Event], version: Version, cursor: &Cursor) -> Vec<u8> {
    let mut out = Vec::new();
    let since = cursor.since();
    for event in events.iter().filter(|event| event.id > since) {
        pc3::project_after(event, version, cursor, &mut out);
    }
    out
}

// S1-010
#[test]
fn law_2_cut_at_every_frame_and_resumed_is_uncut() {
    for (name, turn) in all_turns() {
        for version in Version::ALL {
            let whole = stream(&turn, version);
            for (id, end) in cuts(&whole) {
                let cursor: Cursor = id.parse().expect("ids are cursors");
                let rest = after(&turn, version, &cursor);
                let resumed = [&whole[..end], &rest].concat();
                assert!(resumed == whole, "{name}, {version}: cut behind {id}");
            }
        }
    }
}

#[test]
fn law_2_the_id_of_an_event_is_a_cursor_behind_all_its_frames() {
    for (name, turn) in all_turns() {
        let whole = stream(&turn, Version::V05);
        for at in 0..turn.len() {
            let before = stream(&turn[..=at], Version::V05);
            let rest = after(&turn, Version::V05, &Cursor::from(turn[at].id));
            assert!([before, rest].concat() == whole, "{name}: {}", turn[at].id);
        }
    }
}

/// The messages of a turn as their deltas have made them.
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

/// What a store gives to one who comes back: the persisted events and the words, joined.
pub(super) fn replayed(turn: &[Event], since: Position) -> Vec<Event> {
    let upto = turn.last().expect("a terminal").id;
    let stretch = Stretch {
        since,
        upto,
        from: since,
        to: upto,
    };
    let persisted = |event: &&Event| event.id.is_persisted() && event.id > since;
    let mut events: Vec<Event> = turn.iter().filter(persisted).cloned().collect();
    for message in messages(turn) {
        let session = turn[0].session_id;
        events.extend(replay::events(&message, session, stretch, Missed::Deltas));
    }
    events.sort_by_key(|event| event.id);
    events
}

/// The frames with neighbours of one kind joined, each with the id of its last piece.
fn joined(frames: &[Frame]) -> Vec<Frame> {
    let mut out: Vec<Frame> = Vec::new();
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

/// What two streams must agree on. Where a joined piece ends in a delta without words, it carries
/// that delta's id and time.
fn told(frames: &[Frame]) -> Vec<Frame> {
    let mut frames = joined(frames);
    for frame in &mut frames {
        if ["thinking", "reasoning", "text"].contains(&frame.event.as_str()) {
            frame.id.clear();
            frame.data.remove("timestamp");
        }
    }
    frames
}

/// Compares a replay after every frame with what live sent after it.
pub(super) fn replay_is_live(name: &str, turn: &[Event], version: Version) {
    let whole = stream(turn, version);
    let live = frames(&whole);
    let start: Cursor = "evt_00010000000000".parse().expect("the cursor before all");
    let cursors = live.iter().map(|frame| frame.id.parse().expect("a cursor"));
    for cursor in std::iter::once(start).chain(cursors) {
        let events = replayed(turn, cursor.since());
        let bytes = after(&events, version, &cursor);
        let rest = frames(&bytes);
        let lacking = |frame: &&Frame| {
            let at: Cursor = frame.id.parse().expect("a cursor");
            !cursor.covers(at.position, at.frame.unwrap_or(0))
        };
        // The life of tool servers is live only.
        let kept = |frame: &&Frame| lacking(frame) && !frame.event.starts_with("mcp_");
        let wanted: Vec<Frame> = live.iter().filter(kept).cloned().collect();
        assert_eq!(
            told(&rest),
            told(&wanted),
            "{name}, {version}: after {cursor}"
        );
        // The replay's own ids are cursors too, and the end is the end.
        let rising = rest.windows(2).all(|pair| pair[0].id < pair[1].id);
        assert!(rising, "{name}: ids rise after {cursor}");
        let ended = items(&bytes).expect("blocks").last() == Some(&Item::Done);
        assert_eq!(ended, !wanted.is_empty(), "{name}: after {cursor}");
    }
}

// S1-011
#[test]
fn law_3_a_replay_with_joined_words_is_what_live_sent() {
    for (name, turn) in all_turns() {
        for version in Version::ALL {
            replay_is_live(&name, &turn, version);
        }
    }
}

#[test]
fn law_3_a_replay_joins_words_and_keeps_their_frames_apart() {
    let found = all_turns()
        .into_iter()
        .find(|(n, _)| n.starts_with("thinking_after"));
    let (_, turn) = found.expect("a scenario");
    let start = Cursor::from(Position::persisted(
        turn[0].id.epoch,
        turnwire_event::Seq(0),
    ));
    let events = replayed(&turn, start.since());
    let bytes = after(&events, Version::V05, &start);
    let told: Vec<String> = frames(&bytes)
        .into_iter()
        .map(|frame| frame.event)
        .collect();
    assert_eq!(
        told,
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
