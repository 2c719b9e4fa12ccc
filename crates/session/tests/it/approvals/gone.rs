//! Questions that nobody can answer any more: the conversation went on, the turn or the leg was
//! cancelled or lost, the session is gone.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::code::{Decision, ToolErrorClass, ToolState, ToolType, TurnStatus};
use turnwire_event::{Body, ContentBlock, EventType};
use turnwire_session::{Error, Options};

use crate::stage::*;

#[tokio::test]
async fn another_message_expires_the_approvals() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, first) = asked_service(dir.path()).await;
    let (id, turn) = paused(&first, say("2")).await;
    let asked = questions(&first, turn).await;
    // One was answered; that it was does not help the tool.
    answer(&first, turn, vec![yes(&asked[0])])
        .await
        .expect("taken");
    let image = crashed(dir.path());
    drop((first, book));
    let (book, after) = asked_service(image.path()).await;
    let next = submit(&after, &owner("local"), id, say("never mind")).await;
    let next = next.expect("accepted").turn_id;
    let events = ended(&after, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(
        resolved(&events),
        [
            (asked[0].id, Decision::Approve, "user".to_owned()),
            (asked[1].id, Decision::Reject, "system".to_owned()),
        ]
    );
    let kinds: Vec<EventType> = events.iter().map(|event| event.body.kind()).collect();
    let at = |kind: EventType| kinds.iter().rposition(|it| *it == kind).expect("there");
    assert_eq!(
        at(EventType::ApprovalResolved) + 1,
        at(EventType::TurnStarted)
    );
    assert_eq!(legs(&events, turn), []);
    assert_eq!(*book.done.lock(), []);
    for word in [no(&asked[1]), yes(&asked[1])] {
        let late = answer(&after, turn, vec![word]).await;
        assert_eq!(late, Err(Error::ApprovalResolved(asked[1].id)));
    }
    // Nor does it help to say again what was taken: nothing will come of it.
    let again = answer(&after, turn, vec![yes(&asked[0])]).await;
    assert_eq!(again, Err(Error::ApprovalResolved(asked[0].id)));
    // A model is told that nobody allowed it.
    let past = after
        .reader()
        .messages(&owner("local"), id, None, 100)
        .await;
    let past = past.expect("messages").0;
    let results: Vec<_> = past
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error: true,
            } => Some((*tool_use_id, content.clone())),
            _ => None,
        })
        .collect();
    let late = serde_json::json!("not executed: the person went on with something else.");
    let told = serde_json::json!("not executed: no one allowed it.");
    assert_eq!(
        results,
        [(asked[0].tool_use_id, late), (asked[1].tool_use_id, told)]
    );
    let ended = [ToolState::Cancelled, ToolState::Cancelled];
    assert_eq!(tools(&after, id).await, ended);
    assert_eq!(past.last().map(|message| message.turn_id), Some(next));
    // And so is that of the one after, from memory.
    let third = submit(&after, &owner("local"), id, say("go on")).await;
    third.expect("accepted");
    crate::stage::ended(&after, id, 3).await;
}

#[tokio::test]
async fn queued_turn_expires_the_approvals_when_it_starts() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, act) = asking();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let held = gate.clone();
    let slow: Act = Arc::new(move |turn| {
        let (gate, act) = (held.clone(), act.clone());
        Box::pin(async move {
            let _pass = gate.acquire().await;
            act(turn).await
        })
    });
    let sessions = sessions(dir.path(), Options::default(), slow).await;
    let id = new_session(&sessions).await;
    let first = enqueue(&sessions, id, "1").await.turn_id;
    enqueue(&sessions, id, "then this").await;
    gate.add_permits(10);
    let events = ended(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    let asked = questions(&sessions, first).await;
    assert_eq!(
        resolved(&events),
        [(asked[0].id, Decision::Reject, "system".to_owned())]
    );
    assert_eq!(book.done.lock().len(), 0);
}

#[tokio::test]
async fn cancelled_resuming_turn_ends_its_uncalled_tools() {
    let dir = tempfile::tempdir().expect("a folder");
    let (book, sessions) = asked_service(dir.path()).await;
    let metadata = serde_json::json!({"hang": true});
    let (id, turn) = paused(&sessions, with("1", &metadata)).await;
    let asked = questions(&sessions, turn).await;
    let done = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    let leg = done.expect("taken").next.expect("a leg");
    let cancelled = sessions
        .canceller()
        .cancel(&owner("local"), leg, None)
        .await;
    cancelled.expect("asked to stop");
    let events = ended(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    let failed = events.iter().find_map(|event| match &event.body {
        Body::ToolFailed(failed) => Some((event.turn_id, failed)),
        _ => None,
    });
    let (of, failed) = failed.expect("the tool ends");
    assert_eq!(of, Some(leg));
    assert_eq!(
        (failed.error_class, failed.called, failed.tool_type),
        (ToolErrorClass::Cancelled, false, ToolType::Http)
    );
    assert_eq!(*book.done.lock(), []);
    assert_eq!(tools(&sessions, id).await, [ToolState::Cancelled]);
    let again = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    assert_eq!(again.map(|done| done.next), Ok(Some(leg)));
}

#[tokio::test]
async fn resuming_turn_ended_by_a_crash_does_not_run_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, first) = asked_service(dir.path()).await;
    let metadata = serde_json::json!({"hang": true});
    let (id, turn) = paused(&first, with("1", &metadata)).await;
    let asked = questions(&first, turn).await;
    let done = answer(&first, turn, vec![yes(&asked[0])]).await;
    let leg = done.expect("taken").next.expect("a leg");
    let image = crashed(dir.path());
    let (book, after) = asked_service(image.path()).await;
    let events = ended(&after, id, 2).await;
    assert_each_ends_once(&events);
    let Body::TurnCompleted(end) = terminal(&events, leg) else {
        panic!("a failure")
    };
    assert_eq!(end.reason.as_deref(), Some("server_restart"));
    assert_eq!(tools(&after, id).await, [ToolState::Failed]);
    let again = answer(&after, turn, vec![yes(&asked[0])]).await;
    assert_eq!(again.map(|done| done.next), Ok(Some(leg)));
    assert_eq!(book.inputs.lock().len(), 0);
}

#[tokio::test]
async fn turn_that_does_not_pause_expires_its_approvals() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        ask(&turn, 1);
        if turn.input.content == [ContentBlock::text("hang")] {
            std::future::pending::<()>().await;
        }
        OK
    });
    let sessions = sessions(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let first = submit(&sessions, &owner("local"), id, say("end")).await;
    let first = first.expect("accepted").turn_id;
    let events = ended(&sessions, id, 1).await;
    let Body::TurnCompleted(end) = terminal(&events, first) else {
        panic!("a failure")
    };
    assert_eq!(end.status, TurnStatus::Failed);
    let second = submit(&sessions, &owner("local"), id, say("hang")).await;
    let second = second.expect("accepted").turn_id;
    let asked = loop {
        let asked = questions(&sessions, second).await;
        if !asked.is_empty() {
            break asked;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let early = answer(&sessions, second, vec![yes(&asked[0])]).await;
    assert_eq!(early, Err(Error::TurnNotPaused), "it is still at work");
    let image = crashed(dir.path());
    sessions
        .canceller()
        .cancel(&owner("local"), second, None)
        .await
        .expect("asked to stop");
    let events = ended(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(resolved(&events).len(), 2);
    assert_eq!(
        events.last().map(|event| event.body.kind()),
        Some(EventType::TurnCancelled)
    );
    let late = answer(&sessions, second, vec![no(&asked[0])]).await;
    assert_eq!(late, Err(Error::ApprovalResolved(asked[0].id)));
    // The same after a crash in that moment.
    let (_, after) = asked_service(image.path()).await;
    let events = ended(&after, id, 2).await;
    assert_eq!(resolved(&events).len(), 2);
    let late = answer(&after, second, vec![yes(&asked[0])]).await;
    assert_eq!(late, Err(Error::ApprovalResolved(asked[0].id)));
}

#[tokio::test]
async fn decisions_are_refused_after_drain_and_delete() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, sessions) = asked_service(dir.path()).await;
    let (id, turn) = paused(&sessions, say("1")).await;
    let asked = questions(&sessions, turn).await;
    sessions.refuse_turns();
    let refused = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    assert_eq!(refused, Err(Error::Draining));
    sessions
        .writer()
        .delete(&owner("local"), id)
        .await
        .expect("gone");
    let gone = answer(&sessions, turn, vec![yes(&asked[0])]).await;
    assert_eq!(gone, Err(Error::TurnNotFound));
}
