//! WebSocket clients of a [`SessionFixture`]: what a correct server sends to a client that stays
//! connected, one that is cut and resumes, one that requests a snapshot, and one that connects late.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::{self, FinishedReplay};
use turnwire_event::{Body, Epoch, Event, EventFilter, Position, Seq};

use super::chain::hex;
use super::fixture::SessionFixture;
use super::fixture_rows::{message_rows, other_rows};
use super::record::{
    ConnectionEntry, ConnectionRecord, FaultKind, History, InjectedFault, LoggedEvent,
    ReceivedFrame, RequestRecord, SessionLog, SubscribeRecord,
};

const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// The history of a fixture: its log, and one connection of every kind of client.
pub(super) fn with_clients(fixture: &mut SessionFixture) -> History {
    let (turns, tool_calls) = other_rows(fixture);
    let messages = message_rows(fixture, fixture.events.len());
    let log = SessionLog {
        id: fixture.session,
        events: logged(fixture),
        messages: messages
            .iter()
            .map(|m| serde_json::to_value(m).expect("plain data"))
            .collect(),
        turns,
        tool_calls,
    };
    let mut history = History {
        requests: requests(fixture),
        sessions: vec![log],
        ..History::default()
    };
    let kills = fixture.kills.iter().map(|&at| (at, FaultKind::Kill));
    history.faults = kills
        .map(|(at, kind)| InjectedFault { at: time(at), kind })
        .collect();
    let all = fixture.events.len();
    history
        .connections
        .push(connection(fixture, "live", START, 0, all));
    history
        .connections
        .push(connection(fixture, "late", START, all, all));
    let (mut from, mut cursor) = (0, START);
    while from < all {
        let cut = from + fixture.rng.index(all - from) + 1;
        let resumed = (cut + fixture.rng.index(6)).min(all);
        history
            .connections
            .push(connection(fixture, "cut", cursor, from, cut));
        cursor = fixture.events[cut - 1].id;
        from = resumed;
        if from == all {
            history
                .connections
                .push(connection(fixture, "cut", cursor, all, all));
        }
    }
    for number in 0..fixture.snapshot_count {
        let at = fixture.rng.index(all - 1) + 1;
        let name = format!("snapshot {number} at {at}");
        history.connections.push(snapshot(fixture, &name, at));
    }
    history
}

pub(super) fn time(index: usize) -> Duration {
    Duration::from_millis(index as u64)
}

pub(super) fn logged(fixture: &SessionFixture) -> Vec<LoggedEvent> {
    use sha2::{Digest as _, Sha256};
    let mut hash = Sha256::digest(fixture.session.to_string().as_bytes());
    let persisted = fixture
        .events
        .iter()
        .filter(|e| e.body.kind().is_persisted());
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

fn requests(fixture: &SessionFixture) -> Vec<RequestRecord> {
    let request = |path: String, answer: Value| RequestRecord {
        at: Duration::ZERO,
        method: "POST".into(),
        path,
        body: String::new(),
        answer: Some((202, answer.to_string())),
    };
    let session = fixture.session;
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
    fixture.events.iter().filter_map(of).collect()
}

/// A connection that subscribes at index `from` with a cursor, and is cut after index `up_to`.
fn connection(
    fixture: &SessionFixture,
    client: &str,
    since: Position,
    from: usize,
    up_to: usize,
) -> ConnectionRecord {
    let replayed = replayed(fixture, since, from, FinishedReplay::Ends);
    let count = replayed
        .iter()
        .filter(|e| e.body.kind().is_persisted())
        .count();
    let ack = json!({"type": "subscribe_ack", "replay_event_count": count});
    let live = (from.min(up_to)..up_to).map(|at| event_frame(at, &fixture.events[at]));
    let lines = std::iter::once(frame(from, ack.to_string()))
        .chain(replayed.iter().map(|event| event_frame(from, event)))
        .chain(live);
    ConnectionRecord {
        client: client.to_owned(),
        session: fixture.session,
        lines: std::iter::once(subscribed(Some(since), false))
            .chain(lines)
            .collect(),
        end: None,
    }
}

fn subscribed(since: Option<Position>, snapshot: bool) -> ConnectionEntry {
    ConnectionEntry::Subscribed(SubscribeRecord {
        filter: EventFilter::full(),
        since,
        workers: Default::default(),
        snapshot,
    })
}

pub(super) fn frame(at: usize, text: String) -> ConnectionEntry {
    ConnectionEntry::Received(ReceivedFrame { at: time(at), text })
}

/// An event as a frame of the session wire.
pub(super) fn event_frame(at: usize, event: &Event) -> ConnectionEntry {
    let text = String::from_utf8(event.to_bytes()).expect("JSON is UTF-8");
    frame(at, format!("{{\"type\":\"event\",\"event\":{text}}}"))
}

/// The messages that have started after `up_to` events, as the server has them in memory.
fn folds(fixture: &SessionFixture, up_to: usize) -> Vec<MessageFold> {
    let mut folds: Vec<MessageFold> = Vec::new();
    let killed = fixture.kills.iter().any(|&at| up_to > at);
    for event in &fixture.events[..up_to] {
        if let (Body::MessageStart(start), Some(turn)) = (&event.body, event.turn_id) {
            folds.push(MessageFold::new(
                start.message_id,
                turn,
                start.model.clone(),
                event.id,
                event.timestamp,
            ));
        } else if !(killed && fixture.lost.contains(&event.id)) {
            for fold in &mut folds {
                fold.apply(event.id, event.timestamp, &event.body);
            }
        }
    }
    folds
}

/// The events that a resume at `since` replays after `up_to` events.
pub(super) fn replayed(
    fixture: &SessionFixture,
    since: Position,
    up_to: usize,
    missed: FinishedReplay,
) -> Vec<Event> {
    let tail = fixture.events[..up_to].last().map_or(START, |e| e.id);
    let persisted = fixture.events[..up_to]
        .iter()
        .filter(|e| e.body.kind().is_persisted() && e.id > since);
    let mut events: Vec<Event> = persisted.cloned().collect();
    for fold in folds(fixture, up_to) {
        let stretch = replay::ReplayRange {
            since,
            upto: tail,
            from: since,
            to: tail,
        };
        events.extend(replay::events(&fold, fixture.session, stretch, missed));
    }
    events.sort_by_key(|e| e.id);
    events
}

/// A connection that requests a snapshot after `at` events, and stays to the end.
fn snapshot(fixture: &SessionFixture, client: &str, at: usize) -> ConnectionRecord {
    let happened = &fixture.events[..at];
    let rows = message_rows(fixture, at);
    let mut messages: Vec<Value> = rows
        .iter()
        .map(|m| serde_json::to_value(m).expect("plain data"))
        .collect();
    let open = folds(fixture, at)
        .into_iter()
        .filter(|fold| fold.completed.is_none());
    messages.extend(
        open.map(|fold| {
            serde_json::to_value(fold.in_progress(fixture.session)).expect("plain data")
        }),
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
            Body::LlmCallFailed(call) => call.usage.cost_usd,
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
        fixture.events[at..]
            .iter()
            .enumerate()
            .map(|(n, event)| event_frame(at + n, event)),
    );
    ConnectionRecord {
        client: client.to_owned(),
        session: fixture.session,
        lines,
        end: None,
    }
}
