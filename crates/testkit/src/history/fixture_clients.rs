//! Clients of a made-up story: what a faultless server sends to one that watches throughout,
//! one that is cut and resumes, one that takes a snapshot, one that comes late.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::{self, Missed};
use turnwire_event::{Body, Epoch, Event, Filter, Position, Seq};

use super::chain::hex;
use super::fixture::SessionFixture;
use super::fixture_rows::{message_rows, other_rows};
use super::record::{
    ConnectionEntry, ConnectionRecord, FaultKind, History, InjectedFault, LoggedEvent,
    ReceivedFrame, RequestRecord, SessionLog, SubscribeRecord,
};

const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// Writes the log down and lets every kind of client look at the story.
pub(super) fn watched(story: &mut SessionFixture) -> History {
    let (turns, tool_calls) = other_rows(story);
    let messages = message_rows(story, story.events.len());
    let log = SessionLog {
        id: story.session,
        events: logged(story),
        messages: messages
            .iter()
            .map(|m| serde_json::to_value(m).expect("plain data"))
            .collect(),
        turns,
        tool_calls,
    };
    let mut history = History {
        requests: requests(story),
        sessions: vec![log],
        ..History::default()
    };
    let kills = story.kills.iter().map(|&at| (at, FaultKind::Kill));
    history.faults = kills
        .map(|(at, kind)| InjectedFault { at: time(at), kind })
        .collect();
    let all = story.events.len();
    history
        .connections
        .push(connection(story, "live", START, 0, all));
    history
        .connections
        .push(connection(story, "late", START, all, all));
    let (mut from, mut cursor) = (0, START);
    while from < all {
        let cut = from + story.rng.index(all - from) + 1;
        let resumed = (cut + story.rng.index(6)).min(all);
        history
            .connections
            .push(connection(story, "cut", cursor, from, cut));
        cursor = story.events[cut - 1].id;
        from = resumed;
        if from == all {
            history
                .connections
                .push(connection(story, "cut", cursor, all, all));
        }
    }
    for number in 0..story.looks {
        let at = story.rng.index(all - 1) + 1;
        let name = format!("snapshot {number} at {at}");
        history.connections.push(snapshot(story, &name, at));
    }
    history
}

pub(super) fn time(index: usize) -> Duration {
    Duration::from_millis(index as u64)
}

pub(super) fn logged(story: &SessionFixture) -> Vec<LoggedEvent> {
    use sha2::{Digest as _, Sha256};
    let mut hash = Sha256::digest(story.session.to_string().as_bytes());
    let persisted = story.events.iter().filter(|e| e.body.kind().is_persisted());
    persisted
        .map(|event| {
            let bytes = event.to_bytes();
            hash = Sha256::digest([hash.as_slice(), &bytes].concat());
            LoggedEvent {
                text: String::from_utf8(bytes).expect("JSON is UTF-8"),
                hash: hex(&hash),
            }
        })
        .collect()
}

fn requests(story: &SessionFixture) -> Vec<RequestRecord> {
    let request = |path: String, answer: Value| RequestRecord {
        at: Duration::ZERO,
        method: "POST".into(),
        path,
        body: String::new(),
        answer: Some((202, answer.to_string())),
    };
    let session = story.session;
    let of = |event: &Event| match &event.body {
        Body::TurnStarted(_) => Some(request(
            format!("/sessions/{session}/turns"),
            json!({"turn_id": event.turn_id}),
        )),
        Body::TurnCancelRequested(_) => Some(request(
            format!("/turns/{}/cancel", event.turn_id.expect("of a turn")),
            json!({"turn_id": event.turn_id, "state": "cancelling"}),
        )),
        Body::FeedbackRecorded(_) => {
            Some(request(format!("/sessions/{session}/feedback"), json!({})))
        }
        _ => None,
    };
    story.events.iter().filter_map(of).collect()
}

/// A connection that asks at index `from` with a cursor, and is cut after index `upto`.
fn connection(
    story: &SessionFixture,
    client: &str,
    since: Position,
    from: usize,
    upto: usize,
) -> ConnectionRecord {
    let replayed = replayed(story, since, from, Missed::Ends);
    let count = replayed
        .iter()
        .filter(|e| e.body.kind().is_persisted())
        .count();
    let ack = json!({"type": "subscribe_ack", "replay_event_count": count});
    let live = (from.min(upto)..upto).map(|at| event_frame(at, &story.events[at]));
    let lines = std::iter::once(frame(from, ack.to_string()))
        .chain(replayed.iter().map(|event| event_frame(from, event)))
        .chain(live);
    ConnectionRecord {
        client: client.to_owned(),
        session: story.session,
        lines: std::iter::once(subscribed(Some(since), false))
            .chain(lines)
            .collect(),
        end: None,
    }
}

fn subscribed(since: Option<Position>, snapshot: bool) -> ConnectionEntry {
    ConnectionEntry::Subscribed(SubscribeRecord {
        filter: Filter::full(),
        since,
        workers: Default::default(),
        snapshot,
    })
}

pub(super) fn frame(at: usize, text: String) -> ConnectionEntry {
    ConnectionEntry::Received(ReceivedFrame { at: time(at), text })
}

/// An event as it comes over a connection.
pub(super) fn event_frame(at: usize, event: &Event) -> ConnectionEntry {
    let text = String::from_utf8(event.to_bytes()).expect("JSON is UTF-8");
    frame(at, format!("{{\"type\":\"event\",\"event\":{text}}}"))
}

/// The messages that had begun when `upto` events had happened, as the server then knows them.
fn folds(story: &SessionFixture, upto: usize) -> Vec<MessageFold> {
    let mut folds: Vec<MessageFold> = Vec::new();
    let killed = story.kills.iter().any(|&at| upto > at);
    for event in &story.events[..upto] {
        if let (Body::MessageStart(start), Some(turn)) = (&event.body, event.turn_id) {
            folds.push(MessageFold::new(
                start.message_id,
                turn,
                start.model.clone(),
                event.id,
                event.timestamp,
            ));
        } else if !(killed && story.lost.contains(&event.id)) {
            for fold in &mut folds {
                fold.apply(event.id, event.timestamp, &event.body);
            }
        }
    }
    folds
}

/// What a resume at `since` gets when `upto` events have happened.
pub(super) fn replayed(
    story: &SessionFixture,
    since: Position,
    upto: usize,
    missed: Missed,
) -> Vec<Event> {
    let tail = story.events[..upto].last().map_or(START, |e| e.id);
    let persisted = story.events[..upto]
        .iter()
        .filter(|e| e.body.kind().is_persisted() && e.id > since);
    let mut events: Vec<Event> = persisted.cloned().collect();
    for fold in folds(story, upto) {
        let stretch = replay::Stretch {
            since,
            upto: tail,
            from: since,
            to: tail,
        };
        events.extend(replay::events(&fold, story.session, stretch, missed));
    }
    events.sort_by_key(|e| e.id);
    events
}

/// A connection that takes a snapshot when `at` events have happened, and stays to the end.
fn snapshot(story: &SessionFixture, client: &str, at: usize) -> ConnectionRecord {
    let happened = &story.events[..at];
    let rows = message_rows(story, at);
    let mut messages: Vec<Value> = rows
        .iter()
        .map(|m| serde_json::to_value(m).expect("plain data"))
        .collect();
    let open = folds(story, at)
        .into_iter()
        .filter(|fold| fold.completed.is_none());
    messages.extend(
        open.map(|fold| serde_json::to_value(fold.in_progress(story.session)).expect("plain data")),
    );
    let turn = happened.iter().fold(None, |open, e| match e.body.kind() {
        kind if kind.is_terminal() => open.filter(|_| open != e.turn_id),
        turnwire_event::EventType::TurnStarted => open.or(e.turn_id),
        _ => open,
    });
    let count = happened
        .iter()
        .filter(|e| matches!(e.body, Body::TurnStarted(_)))
        .count();
    let cost: f64 = happened
        .iter()
        .map(|e| match &e.body {
            Body::LlmCallCompleted(call) => call.usage.cost_usd,
            _ => 0.0,
        })
        .sum();
    let snapshot = json!({
        "type": "snapshot",
        "snapshot_at_event_id": happened.last().map_or(START, |e| e.id),
        "session": {
            "turn_count": count, "current_turn_id": turn, "cost_so_far_usd": cost,
            "current_turn_status": turn.map(|_| "in_flight"),
        },
        "messages": messages,
    });
    let ack = json!({"type": "subscribe_ack", "replay_event_count": 0});
    let mut lines = vec![
        subscribed(None, true),
        frame(at, ack.to_string()),
        frame(at, snapshot.to_string()),
    ];
    lines.extend(
        story.events[at..]
            .iter()
            .enumerate()
            .map(|(n, event)| event_frame(at + n, event)),
    );
    ConnectionRecord {
        client: client.to_owned(),
        session: story.session,
        lines,
        end: None,
    }
}
