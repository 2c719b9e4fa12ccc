//! Workers that cannot be told, or not all of them, and clients that cannot keep up.

use super::super::super::super::carrier::cursor::Fill;
use super::super::START;
use super::of;
use super::stage::*;
use super::viewer::*;

// S3-087
#[tokio::test]
async fn workers_above_the_limit_are_omitted_with_a_warning() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::with(dir.path(), turnwire_session::Options::default(), 2).await;
    let parent = stage.acting(None).await;
    let mut viewer = stage
        .view(&parent.live, &with_workers(), None)
        .await
        .expect("accepted");
    let mut workers = Vec::new();
    for _ in 0..3 {
        let worker = stage.acting(Some(parent.id())).await;
        parent.delegates(worker.id()).await;
        workers.push(worker);
    }
    let events = viewer.served().await;
    let told: Vec<bool> = workers
        .iter()
        .map(|w| !of(&events, w.id()).is_empty())
        .collect();
    assert_eq!(told, [true, true, false], "the newest is left out");
    let warned = || {
        let tail = viewer_log(&parent.live);
        tail.contains(&"bus.handler_warning").then_some(())
    };
    soon(warned).await;
    // When one has left there is room again.
    workers[0].ends().await;
    parent.has_done(workers[0].id(), true).await;
    workers[2].ends().await;
    parent.has_done(workers[2].id(), true).await;
    let fourth = stage.acting(Some(parent.id())).await;
    parent.delegates(fourth.id()).await;
    let events = viewer.served().await;
    assert_eq!(of(&events, fourth.id()).first(), Some(&"session.created"));
    assert!(of(&events, workers[2].id()).is_empty());
}

// S3-087
#[tokio::test]
async fn omitted_worker_leaves_no_state() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::with(dir.path(), turnwire_session::Options::default(), 1).await;
    let parent = stage.acting(None).await;
    for _ in 0..2 {
        let worker = stage.acting(Some(parent.id())).await;
        parent.delegates(worker.id()).await;
        let below = stage.acting(Some(worker.id())).await;
        worker.delegates(below.id()).await;
    }
    let mut viewer = stage
        .view(&parent.live, &with_workers(), None)
        .await
        .expect("accepted");
    viewer.served().await;
    let stands = viewer.stands();
    assert_eq!(stands.len(), 2, "the parent and one worker: {stands:?}");
}

// S3-087
#[tokio::test]
async fn dropping_workers_during_replay_keeps_parent_events() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let mut parent = stage.acting(None).await;
    let worker = stage.acting(Some(parent.id())).await;
    parent.delegates(worker.id()).await;
    parent.has_done(worker.id(), true).await;
    let half = parent.begins_to_say("and so").await;
    parent.has_said(half).await;
    parent.ends().await;
    let view = async |spec: turnwire_event::FilterSpec| {
        let viewer = stage.view(&parent.live, &spec, Some(START.into())).await;
        viewer.expect("accepted")
    };
    let whole = view(turnwire_event::FilterSpec::default())
        .await
        .served()
        .await;
    let ids = |events: &[turnwire_event::Event]| -> Vec<_> {
        let own = events
            .iter()
            .filter(|event| event.session_id == parent.id());
        own.map(|event| event.id).collect()
    };
    // Wherever it is in its replay.
    for fills in 0..12 {
        let mut viewer = view(with_workers()).await;
        for _ in 0..fills {
            viewer.fill().await.expect("a fill");
        }
        let mut events = viewer.came();
        viewer.leaves_workers();
        events.extend(viewer.served().await);
        assert_eq!(ids(&events), ids(&whole), "after {fills}");
    }
}

// S3-087
#[tokio::test]
async fn nested_workers_are_delivered_and_may_be_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let mut levels = vec![stage.acting(None).await];
    for level in 0..usize::from(turnwire_session::WORKER_DEPTH_MAX) {
        let worker = stage.acting(Some(levels[level].id())).await;
        levels[level].delegates(worker.id()).await;
        levels.push(worker);
    }
    let (root, last) = (&levels[0], &levels[levels.len() - 1]);
    let view = async |since| {
        let viewer = stage.view(&root.live, &with_workers(), since).await;
        viewer.unwrap_or_else(|error| panic!("{error}"))
    };
    let mut viewer = view(Some(START.into())).await;
    let events = viewer.served().await;
    assert_eq!(of(&events, last.id()).first(), Some(&"session.created"));
    // And what it is told to come back with is taken.
    let mut again = view(Some(since(&viewer.stands()))).await;
    last.begins_to_say("deep").await;
    for viewer in [&mut viewer, &mut again] {
        let told = viewer.served().await;
        assert!(of(&told, last.id()).contains(&"text.delta"), "{told:?}");
    }
}

/// The kinds of what a ring holds.
fn viewer_log(live: &turnwire_session::LiveSession) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let project = |_: &turnwire_hub::RingEntry, _: &mut Vec<u8>| 0;
    live.ring
        .read(3, live.ring.first(), 10_000, &project, &mut |run| {
            kinds.extend(run.heads().iter().map(|head| head.kind.name()));
        });
    kinds
}

// S3-087
#[tokio::test]
async fn deleted_or_damaged_worker_is_dropped_and_parent_continues() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let mut viewer = stage
        .view(&parent.live, &with_workers(), None)
        .await
        .expect("accepted");
    let (deleted, damaged) = (
        stage.acting(Some(parent.id())).await,
        stage.acting(Some(parent.id())).await,
    );
    parent.delegates(deleted.id()).await;
    parent.delegates(damaged.id()).await;
    viewer.served().await;
    stage
        .sessions
        .writer()
        .delete(&owner(), deleted.id())
        .await
        .expect("deleted");
    damaged.live.quarantine();
    let events = viewer.served().await;
    assert_eq!(of(&events, deleted.id()), ["session.closed"]);
    assert!(of(&events, damaged.id()).is_empty());
    parent.has_done(deleted.id(), false).await;
    parent.has_done(damaged.id(), false).await;
    let events = viewer.served().await;
    let ends = of(&events, parent.id());
    assert_eq!(ends.iter().filter(|k| **k == "delegate.failed").count(), 2);
    soon(|| {
        viewer_log(&parent.live)
            .contains(&"bus.handler_warning")
            .then_some(())
    })
    .await;
    // One that is damaged when the client comes back is left out as well.
    let map = since(&[(parent.id(), START), (damaged.id(), START)].into());
    let again = stage.view(&parent.live, &with_workers(), Some(map)).await;
    assert!(of(&again.expect("accepted").served().await, damaged.id()).is_empty());
}

// S3-092
#[tokio::test]
async fn client_overtaken_by_a_worker_ring_is_too_slow() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = turnwire_session::Options {
        ring_events: 32,
        ..turnwire_session::Options::default()
    };
    let stage = Stage::with(dir.path(), options, 64).await;
    let parent = stage.acting(None).await;
    let mut viewer = stage
        .view(&parent.live, &with_workers(), None)
        .await
        .expect("accepted");
    let worker = stage.acting(Some(parent.id())).await;
    parent.delegates(worker.id()).await;
    viewer.served().await;
    // It has looked into the ring, and there was nothing.
    assert_eq!(viewer.fill().await.expect("a fill"), Fill::Idle);
    let half = worker.begins_to_say("a b c d e f g h").await;
    assert!(
        viewer.behind() >= 8,
        "a worker's events count: {}",
        viewer.behind()
    );
    worker.says(half, &"word ".repeat(40)).await;
    let mut filled = viewer.fill().await.expect("a fill");
    for _ in 0..3 {
        if filled != Fill::Overrun {
            filled = viewer.fill().await.expect("a fill");
        }
    }
    assert_eq!(filled, Fill::Overrun);
}

// S3-092
#[tokio::test]
async fn waiting_for_a_worker_does_not_overrun_the_parent_ring() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = turnwire_session::Options {
        ring_events: 32,
        ..turnwire_session::Options::default()
    };
    let stage = Stage::with(dir.path(), options, 64).await;
    let parent = stage.acting(None).await;
    let viewer = stage.view(&parent.live, &with_workers(), None).await;
    let mut viewer = viewer.expect("accepted");
    let mut worker = stage.acting(Some(parent.id())).await;
    parent.delegates(worker.id()).await;
    viewer.served().await;
    worker.ends().await;
    parent.has_done(worker.id(), true).await;
    // The parent stands still before the end of its worker, and its ring goes on.
    assert_eq!(viewer.fill().await.expect("a fill"), Fill::Progress);
    let half = parent.begins_to_say("a b c d e f g h").await;
    parent.says(half, &"word ".repeat(60)).await;
    let events = viewer.served().await;
    let told = of(&events, parent.id());
    assert_eq!(told.first(), Some(&"delegate.completed"), "{told:?}");
    assert_eq!(told.last(), Some(&"text.delta"));
}

// S3-087
#[tokio::test]
async fn worker_of_an_ended_worker_is_delivered_named_or_not() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let parent = stage.acting(None).await;
    let mut middle = stage.acting(Some(parent.id())).await;
    parent.delegates(middle.id()).await;
    let mut last = stage.acting(Some(middle.id())).await;
    middle.delegates(last.id()).await;
    let half = last.begins_to_say("one ").await;
    let inside = last.live.tail();
    last.has_said(half).await;
    last.ends().await;
    middle.has_done(last.id(), true).await;
    middle.ends().await;
    parent.has_done(middle.id(), true).await;
    let over = middle.live.tail();
    for named in [None, Some((middle.id(), over))] {
        let at = [(parent.id(), parent.live.tail()), (last.id(), inside)];
        let map = since(&at.into_iter().chain(named).collect());
        let viewer = stage.view(&parent.live, &with_workers(), Some(map)).await;
        let mut viewer = viewer.unwrap_or_else(|error| panic!("{error}"));
        let events = viewer.served().await;
        let told = of(&events, last.id());
        assert_eq!(told.first(), Some(&"message.complete"), "{told:?}");
        assert_eq!(told.last(), Some(&"turn.completed"));
        assert_eq!(viewer.stands().len(), 1, "it has left");
    }
}
