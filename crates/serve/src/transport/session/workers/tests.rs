//! Workers on their parent's stream.

mod stage;
mod viewer;
mod ends;
mod nested;
mod cuts;
mod reads;

use turnwire_event::code::TurnState;
use turnwire_event::{Body, Event, EventType, FilterSpec, SessionId};
use turnwire_wire::session::{CancelErrorCode, SinceCursor, SubscribeCode};

use super::super::stream::SessionStream;
use super::START;
use crate::access::callers;
use stage::*;
use viewer::*;

fn of(events: &[Event], id: SessionId) -> Vec<&'static str> {
    let mine = events.iter().filter(|event| event.session_id == id);
    mine.map(|event| event.body.kind().name()).collect()
}

fn place(events: &[Event], kind: EventType) -> usize {
    let found = events.iter().position(|event| event.body.kind() == kind);
    found.unwrap_or_else(|| panic!("{} in {events:?}", kind.name()))
}

fn plain(at: turnwire_event::Position) -> Option<SinceCursor> {
    Some(at.into())
}

/// Every session's ids rise, a worker stands between its start and its end, and is whole there.
fn assert_in_order(events: &[Event]) {
    let mut last = std::collections::HashMap::new();
    let mut begun = std::collections::HashSet::new();
    let mut ended = std::collections::HashSet::new();
    let parent = events.first().map(|event| event.session_id);
    for event in events {
        let id = event.session_id;
        if let Some(before) = last.insert(id, event.id) {
            assert!(before < event.id, "{id}: {} after {before}", event.id);
        }
        assert!(
            Some(id) == parent || begun.contains(&id),
            "{id} before its start"
        );
        assert!(!ended.contains(&id), "{id} after its end");
        match &event.body {
            Body::DelegateStarted(start) => drop(begun.insert(start.worker_session_id)),
            Body::DelegateCompleted(end) => drop(ended.insert(end.worker_session_id)),
            Body::DelegateFailed(end) => drop(ended.insert(end.worker_session_id)),
            _ => {}
        }
    }
}

// S3-085, S3-087, S3-100
#[tokio::test]
async fn worker_events_come_between_start_and_end_on_request() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let mut worker = stage.acting(Some(parent.id())).await;
    let mut viewer = stage
        .view(&parent.live, &with_workers(), plain(START))
        .await
        .expect("accepted");
    let mut alone = stage
        .view(&parent.live, &FilterSpec::default(), plain(START))
        .await
        .expect("accepted");
    let mut events = viewer.served().await;
    assert!(of(&events, worker.id()).is_empty(), "its start is not told");
    parent.delegates(worker.id()).await;
    events.extend(viewer.served().await);
    let half = worker.begins_to_say("one two ").await;
    events.extend(viewer.served().await);
    worker.says(half, "three").await;
    worker.has_said(half).await;
    worker.ends().await;
    parent.has_done(worker.id(), true).await;
    events.extend(viewer.served().await);
    assert_in_order(&events);
    let told = of(&events, worker.id());
    assert_eq!(told.first(), Some(&"session.created"));
    assert_eq!(told.last(), Some(&"turn.completed"));
    assert_eq!(told.iter().filter(|kind| **kind == "text.delta").count(), 3);
    let alone = alone.served().await;
    assert!(of(&alone, worker.id()).is_empty(), "S3-085");
    assert_eq!(of(&alone, parent.id()), of(&events, parent.id()));
    assert!(of(&alone, parent.id()).contains(&"delegate.completed"));
    // Its place is kept no longer, and nothing more of it comes.
    stage.work(worker.live.clone()).await.ends().await;
    assert!(viewer.served().await.is_empty());
    assert_eq!(
        viewer.positions(),
        since(&[(parent.id(), parent.live.tail())].into())
    );
}

#[tokio::test]
async fn turn_of_an_awaited_worker_can_be_cancelled() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let worker = stage.acting(Some(parent.id())).await;
    let other = stage.acting(None).await;
    parent.delegates(worker.id()).await;
    let viewer = stage.view(&parent.live, &with_workers(), None).await;
    let subscription = viewer.expect("accepted").subscription;
    let workers = subscription.workers.as_deref().expect("workers");
    assert_eq!(workers.lives().count(), 0, "not looked up yet");
    let live = (Ok(parent.live.clone()), &callers::believed_anonymous());
    let mut stream = SessionStream::new(stage.streams.clone(), live, "ws-1".into());
    stream.subscription = Some(subscription);
    let mut states = Vec::new();
    for acting in [&worker, &other] {
        let turn = acting.live.current_turn().expect("at work").to_string();
        let ack = stream.cancel(&turn, None).await;
        states.push(ack.map(|ack| ack.state));
    }
    let not_found = Err(CancelErrorCode::TurnNotFound);
    assert_eq!(states, [Ok(TurnState::Cancelling), not_found]);
}

// S3-087
#[tokio::test]
async fn events_committed_together_are_delivered_in_order() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let mut live = stage
        .view(&parent.live, &with_workers(), None)
        .await
        .expect("accepted");
    // Two workers one after the other, one of them with a worker of its own; the viewer sleeps.
    for success in [true, false] {
        let mut worker = stage.acting(Some(parent.id())).await;
        parent.delegates(worker.id()).await;
        let mut below = stage.acting(Some(worker.id())).await;
        worker.delegates(below.id()).await;
        let half = below.begins_to_say("deep down").await;
        below.has_said(half).await;
        below.ends().await;
        worker.has_done(below.id(), true).await;
        worker.ends().await;
        parent.has_done(worker.id(), success).await;
    }
    let events = live.served().await;
    assert_in_order(&events);
    let sessions: std::collections::HashSet<_> = events.iter().map(|e| e.session_id).collect();
    assert_eq!(sessions.len(), 5);
    // And the same from the store.
    let whole = stage
        .view(&parent.live, &with_workers(), plain(START))
        .await;
    let whole = whole.expect("accepted").served().await;
    assert_in_order(&whole);
    for id in sessions.into_iter().filter(|id| *id != parent.id()) {
        let kinds = of(&whole, id);
        assert_eq!(kinds.last(), Some(&"turn.completed"), "{kinds:?}");
        assert_eq!(kinds.first(), Some(&"session.created"));
    }
}

// S3-087
#[tokio::test]
async fn worker_missing_from_the_cursor_is_delivered_by_its_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let before = parent.live.tail();
    let mut worker = stage.acting(Some(parent.id())).await;
    parent.delegates(worker.id()).await;
    let after = parent.live.tail();
    let half = worker.begins_to_say("one ").await;

    let view = async |since| {
        let viewer = stage.view(&parent.live, &with_workers(), since).await;
        viewer.expect("accepted")
    };
    let mut from_before = view(plain(before)).await;
    let mut from_after = view(plain(after)).await;
    let mut live = view(None).await;
    let first = from_before.served().await;
    assert_eq!(of(&first, worker.id()).first(), Some(&"session.created"));
    assert!(from_after.served().await.is_empty(), "joined live");
    assert!(live.served().await.is_empty(), "joined live");

    worker.says(half, "two").await;
    for viewer in [&mut from_before, &mut from_after, &mut live] {
        let events = viewer.served().await;
        assert_eq!(of(&events, worker.id()), ["text.delta"]);
    }
    worker.has_said(half).await;
    worker.ends().await;
    parent.has_done(worker.id(), true).await;
    for viewer in [&mut from_before, &mut from_after, &mut live] {
        let events = viewer.served().await;
        let end = place(&events, EventType::DelegateCompleted);
        assert_eq!(end, events.len() - 1, "all of the worker comes before");
    }
    // The end of one that is gone holds nothing up.
    let mut late = view(plain(after)).await;
    let events = late.served().await;
    assert_eq!(of(&events, parent.id()), ["delegate.completed"]);
}

// S3-087
#[tokio::test]
async fn worker_ending_before_the_first_fill_is_delivered_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let mut worker = stage.acting(Some(parent.id())).await;
    parent.delegates(worker.id()).await;
    let after = parent.live.tail();
    let half = worker.begins_to_say("one ").await;
    let mut viewers = Vec::new();
    for since in [plain(after), None] {
        let viewer = stage.view(&parent.live, &with_workers(), since).await;
        viewers.push(viewer.expect("accepted"));
    }
    worker.says(half, "two").await;
    worker.has_said(half).await;
    worker.ends().await;
    parent.has_done(worker.id(), true).await;
    for mut viewer in viewers {
        let events = viewer.served().await;
        let told = of(&events, worker.id());
        assert_eq!(told.first(), Some(&"text.delta"), "{told:?}");
        assert_eq!(told.last(), Some(&"turn.completed"));
        let end = place(&events, EventType::DelegateCompleted);
        assert_eq!(end, events.len() - 1, "all of the worker comes before");
    }
}

// S3-087
#[tokio::test]
async fn cursor_map_selects_where_each_worker_continues() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let before = parent.live.tail();
    let mut worker = stage.acting(Some(parent.id())).await;
    parent.delegates(worker.id()).await;
    let after = parent.live.tail();
    let half = worker.begins_to_say("one ").await;
    let inside = worker.live.tail();
    worker.says(half, "two").await;
    let id = worker.id();
    let served = async |at, of_worker| {
        let since = since(&[(parent.id(), at), (id, of_worker)].into());
        let viewer = stage.view(&parent.live, &with_workers(), Some(since)).await;
        viewer.expect("accepted").served().await
    };
    let events = served(after, inside).await;
    assert_eq!(of(&events, worker.id()), ["text.delta"]);
    // A client that was not shown the start stands before it in the parent.
    let events = served(before, inside).await;
    assert_eq!(of(&events, worker.id()), ["text.delta"]);
    assert_eq!(of(&events, parent.id()), ["delegate.started"]);
    assert_eq!(place(&events, EventType::DelegateStarted), 0);
    let events = served(after, START).await;
    assert_eq!(of(&events, worker.id()).first(), Some(&"session.created"));
    // The end is told after the rest, wherever the client stands.
    worker.has_said(half).await;
    worker.ends().await;
    parent.has_done(worker.id(), true).await;
    for at in [before, after] {
        let events = served(at, inside).await;
        assert_eq!(
            of(&events, worker.id()),
            [
                "text.delta",
                "message.complete",
                "llm.call_completed",
                "dispatch.traced",
                "turn.completed"
            ]
        );
        assert_eq!(
            place(&events, EventType::DelegateCompleted),
            events.len() - 1
        );
    }
    // One that ended before the parent's place is told to its end, and not held any longer.
    let events = served(parent.live.tail(), inside).await;
    assert_eq!(of(&events, worker.id()).len(), 5);
    assert!(of(&events, parent.id()).is_empty());
}

// S3-087
#[tokio::test]
async fn invalid_cursor_map_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let worker = stage.acting(Some(parent.id())).await;
    let stranger = stage.acting(None).await;
    parent.delegates(worker.id()).await;
    let ahead = turnwire_event::Position {
        seq: turnwire_event::Seq(999),
        ..worker.live.tail()
    };
    let other_epoch = turnwire_event::Position {
        epoch: turnwire_event::Epoch(2),
        ..START
    };
    let unknown = SessionId(turnwire_event::Ulid(7));
    let cases = [
        (stranger.id(), START, SubscribeCode::InvalidFilter),
        (unknown, START, SubscribeCode::InvalidFilter),
        (worker.id(), ahead, SubscribeCode::CursorExpired),
        (worker.id(), other_epoch, SubscribeCode::CursorExpired),
    ];
    for (id, at, code) in cases {
        let since = since(&[(parent.id(), START), (id, at)].into());
        let refused = stage
            .view(&parent.live, &with_workers(), Some(since.clone()))
            .await;
        let error = refused.err().expect("refused");
        assert_eq!(error.code, code, "{error}");
        if code == SubscribeCode::InvalidFilter {
            assert!(error.message.contains(&id.to_string()), "{error}");
        }
        // Without workers nobody reads that part of the map.
        let alone = stage
            .view(&parent.live, &FilterSpec::default(), Some(since))
            .await;
        assert!(alone.is_ok());
    }
    // A worker that was deleted is no stranger: its parent's log has its name.
    stage
        .sessions
        .writer()
        .delete(&owner(), worker.id())
        .await
        .expect("deleted");
    let at = since(&[(parent.id(), START), (worker.id(), ahead)].into());
    let mut viewer = stage
        .view(&parent.live, &with_workers(), Some(at))
        .await
        .expect("accepted");
    for _ in 0..5 {
        viewer.fill().await.expect("served");
    }
    assert!(of(&viewer.came(), parent.id()).contains(&"delegate.started"));
    parent.has_done(worker.id(), false).await;
    assert_eq!(of(&viewer.served().await, parent.id()), ["delegate.failed"]);
}

// S3-087
#[tokio::test]
async fn filters_apply_to_workers_and_hide_none() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let mut worker = stage.acting(Some(parent.id())).await;
    let view = async |types: Option<Vec<&str>>, actors: Option<Vec<&str>>| {
        let own = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let spec = FilterSpec {
            event_types: types.map(own),
            actors: actors.map(own),
            ..with_workers()
        };
        let viewer = stage.view(&parent.live, &spec, plain(START)).await;
        viewer.expect("accepted")
    };
    let mut words = view(Some(vec!["text.delta", "turn.completed"]), None).await;
    let mut people = view(None, Some(vec!["user"])).await;
    words.served().await;
    people.served().await;
    parent.delegates(worker.id()).await;
    let half = worker.begins_to_say("one two").await;
    worker.has_said(half).await;
    worker.ends().await;
    parent.has_done(worker.id(), true).await;
    let events = words.served().await;
    assert_eq!(of(&events, worker.id()), ["turn.completed"]);
    assert!(of(&events, parent.id()).is_empty());
    let events = people.served().await;
    assert!(of(&events, worker.id()).contains(&"turn.started"));
    assert!(events.iter().all(|event| event.actor.to_string() == "user"));
}
