//! Workers of workers, as the positions of an acknowledgement name them.

use turnwire_event::{Event, EventType, SessionId};

use super::stage::*;
use super::viewer::*;
use super::{of, place};

/// A session whose worker has a worker, which has one more: all of them run.
async fn chain(stage: &Stage) -> Vec<Acting> {
    let mut levels = vec![stage.acting(None).await];
    for level in 0..3 {
        let worker = stage.acting(Some(levels[level].id())).await;
        levels[level].delegates(worker.id()).await;
        levels.push(worker);
    }
    levels
}

fn ids(levels: &[Acting]) -> Vec<SessionId> {
    levels.iter().map(Acting::id).collect()
}

/// The sessions that the viewer's positions name, in the order of `levels`.
fn named(viewer: &Viewer, levels: &[Acting]) -> Vec<SessionId> {
    let at = viewer.stands();
    let named = ids(levels).into_iter().filter(|id| at.contains_key(id));
    named.collect()
}

// S3-087
#[tokio::test]
async fn positions_of_an_ack_name_workers_of_workers() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let mut levels = chain(&stage).await;
    let root = levels[0].live.clone();
    let at_tail = since(&[(root.id, root.tail())].into());
    let by_name = [
        (root.id, root.tail()),
        (levels[1].id(), levels[1].live.tail()),
    ];
    let by_name = since(&by_name.into());
    let mut maps = Vec::new();
    for since in [None, Some(at_tail), Some(by_name)] {
        let viewer = stage.view(&root, &with_workers(), since).await;
        let viewer = viewer.unwrap_or_else(|error| panic!("{error}"));
        // Before the first event is delivered, as in the acknowledgement.
        assert_eq!(named(&viewer, &levels), ids(&levels));
        maps.push(viewer.positions());
    }
    // The connections broke before they delivered anything; meanwhile everything ends.
    let half = levels[3].begins_to_say("deep down").await;
    levels[3].has_said(half).await;
    for level in (1..levels.len()).rev() {
        let id = levels[level].id();
        levels[level].ends().await;
        levels[level - 1].has_done(id, true).await;
    }
    for map in maps {
        let viewer = stage.view(&root, &with_workers(), Some(map)).await;
        let mut viewer = viewer.unwrap_or_else(|error| panic!("{error}"));
        let events = viewer.served().await;
        for worker in &levels[1..] {
            let kinds = of(&events, worker.id());
            assert_eq!(kinds.last(), Some(&"turn.completed"), "{kinds:?}");
        }
        assert!(of(&events, levels[3].id()).contains(&"message.complete"));
        assert_eq!(named(&viewer, &levels), [root.id], "all have ended");
    }
}

// S3-087
#[tokio::test]
async fn nested_worker_ending_before_the_first_fill_is_delivered() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let mut levels = chain(&stage).await;
    let viewer = stage.view(&levels[0].live, &with_workers(), None).await;
    let mut viewer = viewer.unwrap_or_else(|error| panic!("{error}"));
    let half = levels[3].begins_to_say("deep down").await;
    levels[3].has_said(half).await;
    levels[3].ends().await;
    levels[2].has_done(levels[3].id(), true).await;
    let events = viewer.served().await;
    let kinds = of(&events, levels[3].id());
    assert_eq!(kinds.first(), Some(&"llm.call_started"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"turn.completed"));
    let last = |event: &&Event| event.session_id == levels[3].id();
    let place_of_last = events.iter().rposition(|event| last(&event));
    let end = place(&events, EventType::DelegateCompleted);
    assert!(place_of_last < Some(end), "all of the worker comes before");
    // A worker that starts later is named when its start is delivered.
    let late = stage.acting(Some(levels[2].id())).await;
    assert!(!viewer.stands().contains_key(&late.id()));
    levels[2].delegates(late.id()).await;
    let events = viewer.served().await;
    assert_eq!(of(&events, late.id()).first(), Some(&"session.created"));
    assert!(viewer.stands().contains_key(&late.id()));
}
