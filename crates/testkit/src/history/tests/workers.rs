//! A worker's events on its parent's connection.

use serde_json::json;
use turnwire_event::body::delegate;
use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{
    Actor, Body, Epoch, Event, EventFilter, FilterSpec, Position, Seq, SessionId, ToolUseId, Ulid,
};

use super::super::fixture::SessionFixture;
use super::super::fixture_clients::{event_frame, frame, logged, replayed, with_clients};
use super::super::record::{
    ConnectionEntry, ConnectionRecord, History, SessionLog, SubscribeRecord,
};
use super::names;

const PARENT: SessionId = SessionId(Ulid(0xfa));

/// A worker's story as one client of its parent saw it, cut once in the midst of it.
fn carried(seed: u64) -> History {
    let mut worker = SessionFixture::new(seed);
    let history = with_clients(&mut worker);
    let (first, second) = worker.events.split_at(worker.events.len() / 2);
    seen_as(&worker, history, first, second)
}

/// A worker that had ended before the client connected, and whose replay stops after `cut` events.
fn late(seed: u64, cut: usize) -> Option<History> {
    let mut worker = SessionFixture::new(seed);
    let history = with_clients(&mut worker);
    let all = worker.events.len();
    let start = Position::persisted(Epoch::FIRST, Seq(0));
    let events = replayed(&worker, start, all, FinishedReplay::Ends);
    let first = events
        .get(..cut)
        .filter(|first| first.len() < events.len())?;
    let second = replayed(&worker, first.last()?.id, all, FinishedReplay::Ends);
    Some(seen_as(&worker, history, first, &second))
}

fn seen_as(
    worker: &SessionFixture,
    mut history: History,
    first: &[Event],
    second: &[Event],
) -> History {
    let id = worker.session;
    let about = |seq, body| Event {
        id: Position::persisted(Epoch::FIRST, Seq(seq)),
        session_id: PARENT,
        turn_id: None,
        actor: Actor::worker(id),
        body,
        ..worker.events[0].clone()
    };
    let started = delegate::DelegateStarted {
        worker_session_id: id,
        tool_use_id: ToolUseId(Ulid(1)),
        task_summary: String::new(),
    };
    let completed = delegate::DelegateCompleted {
        worker_session_id: id,
        success: true,
        summary: String::new(),
    };
    let started = about(1, Body::DelegateStarted(started));
    let completed = about(2, Body::DelegateCompleted(completed));
    let mut parent = SessionFixture::new(0);
    parent.session = PARENT;
    parent.events = vec![started.clone(), completed.clone()];
    history.sessions.push(SessionLog {
        id: PARENT,
        events: logged(&parent),
        messages: Vec::new(),
        turns: Vec::new(),
        tool_calls: Vec::new(),
    });
    let spec = FilterSpec {
        include_worker_sessions: true,
        ..FilterSpec::default()
    };
    let start = Position::persisted(Epoch::FIRST, Seq(0));
    let connection = |since, at: Option<Position>, events: Vec<ConnectionEntry>| {
        let subscribe = SubscribeRecord {
            filter: EventFilter::resolve(&spec).expect("a filter"),
            since: Some(since),
            workers: at.map(|at| (id, at)).into_iter().collect(),
            snapshot: false,
        };
        let ack = json!({"type": "subscribe_ack", "replay_event_count": 0});
        let mut lines = vec![
            ConnectionEntry::Subscribed(subscribe),
            frame(0, ack.to_string()),
        ];
        lines.extend(events);
        ConnectionRecord {
            client: "carrier".into(),
            session: PARENT,
            lines,
            end: None,
        }
    };
    let frames = |events: &[Event]| -> Vec<ConnectionEntry> {
        let numbered = events.iter().enumerate();
        numbered.map(|(n, event)| event_frame(n, event)).collect()
    };
    let cut = first.last().map(|event| event.id);
    let mut before = vec![event_frame(0, &started)];
    before.extend(frames(first));
    let mut after = frames(second);
    after.push(event_frame(0, &completed));
    history.connections = vec![
        connection(start, None, before),
        connection(started.id, cut, after),
    ];
    history
}

fn history_violates(expected: &[&str], edit_fixture: impl Fn(&mut History)) {
    for seed in 0..8 {
        let mut history = carried(seed);
        edit_fixture(&mut history);
        let expected = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(names(&history), expected, "seed {seed}");
    }
}

#[test]
fn worker_between_start_and_end_is_valid() {
    for seed in 0..40 {
        assert_eq!(carried(seed).violations(), [], "seed {seed}");
    }
}

#[test]
fn worker_replayed_later_is_valid_at_every_cut() {
    for seed in 0..4 {
        for (cut, history) in (1..).map_while(|cut| Some((cut, late(seed, cut)?))) {
            assert_eq!(history.violations(), [], "seed {seed}, cut behind {cut}");
        }
    }
}

#[test]
fn worker_event_before_its_start_is_reported() {
    history_violates(&["WorkerOutside"], |history| {
        history.connections[0].lines.swap(2, 3);
    });
}

#[test]
fn worker_event_after_its_end_is_reported() {
    history_violates(&["WorkerOutside"], |history| {
        let lines = &mut history.connections[1].lines;
        let end = lines.pop().expect("the end");
        lines.insert(lines.len() - 2, end);
    });
}

#[test]
fn incomplete_worker_at_its_end_is_reported() {
    history_violates(&["Missed"], |history| {
        let lines = &mut history.connections[1].lines;
        let terminal = lines.iter().rposition(
            |line| matches!(line, ConnectionEntry::Received(f) if f.text.contains("\"turn.started\"")),
        );
        lines.remove(terminal.expect("a turn"));
    });
}

#[test]
fn event_repeated_after_cut_is_reported() {
    history_violates(&["Twice"], |history| {
        let again = history.connections[0].lines[3].clone();
        history.connections[1].lines.insert(2, again);
    });
}
