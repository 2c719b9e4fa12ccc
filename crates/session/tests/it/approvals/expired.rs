//! Approvals that can no longer be decided: the conversation went on, the turn was cancelled or lost,
//! or the session is deleted.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::code::{Decision, ToolErrorClass, ToolState, ToolType, TurnStatus};
use turnwire_event::{Body, ContentBlock, EventType};
use turnwire_session::{Error, Options};

use crate::stage::*;

#[tokio::test]
async fn another_message_expires_the_approvals() {
    let dir = tempfile::tempdir().expect("a folder");
    let (recorder, first) = approval_service(dir.path()).await;
    let (id, turn) = pause_turn(&first, text_request("2")).await;
    let approvals = approvals_of(&first, turn).await;
    // One is approved, but its tool does not run without the other decision.
    decide(&first, turn, vec![approve(&approvals[0])])
        .await
        .expect("accepted");
    let image = copy_store(dir.path());
    drop((first, recorder));
    let (recorder, after) = approval_service(image.path()).await;
    let next = submit(&after, &owner("local"), id, text_request("never mind")).await;
    let next = next.expect("accepted").turn_id;
    let events = wait_for_terminals(&after, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(
        resolved_approvals(&events),
        [
            (approvals[0].id, Decision::Approve, "user".to_owned()),
            (approvals[1].id, Decision::Reject, "system".to_owned()),
        ]
    );
    let kinds: Vec<EventType> = events.iter().map(|event| event.body.kind()).collect();
    let at = |kind: EventType| kinds.iter().rposition(|it| *it == kind).expect("there");
    assert_eq!(
        at(EventType::ApprovalResolved) + 1,
        at(EventType::TurnStarted)
    );
    assert_eq!(resuming_turns(&events, turn), []);
    assert_eq!(*recorder.done.lock(), []);
    for decision in [reject(&approvals[1]), approve(&approvals[1])] {
        let late = decide(&after, turn, vec![decision]).await;
        assert_eq!(late, Err(Error::ApprovalResolved(approvals[1].id)));
    }
    // Repeating the applied decision is refused too: nothing resumes the turn.
    let again = decide(&after, turn, vec![approve(&approvals[0])]).await;
    assert_eq!(again, Err(Error::ApprovalResolved(approvals[0].id)));
    // The tool results for the model say that the tools did not run.
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
    let undecided = serde_json::json!("not executed: no one allowed it.");
    assert_eq!(
        results,
        [
            (approvals[0].tool_use_id, late),
            (approvals[1].tool_use_id, undecided)
        ]
    );
    let ended = [ToolState::Cancelled, ToolState::Cancelled];
    assert_eq!(tool_states(&after, id).await, ended);
    assert_eq!(past.last().map(|message| message.turn_id), Some(next));
    // The next turn reads them from the cache.
    let third = submit(&after, &owner("local"), id, text_request("go on")).await;
    third.expect("accepted");
    crate::stage::wait_for_terminals(&after, id, 3).await;
}

#[tokio::test]
async fn queued_turn_expires_the_approvals_when_it_starts() {
    let dir = tempfile::tempdir().expect("a folder");
    let (recorder, act) = approval_producer();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let permits = gate.clone();
    let slow: WorkFn = Arc::new(move |turn| {
        let (gate, act) = (permits.clone(), act.clone());
        Box::pin(async move {
            let _pass = gate.acquire().await;
            act(turn).await
        })
    });
    let sessions = start_service(dir.path(), Options::default(), slow).await;
    let id = new_session(&sessions).await;
    let first = enqueue(&sessions, id, "1").await.turn_id;
    enqueue(&sessions, id, "then this").await;
    gate.add_permits(10);
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    let approvals = approvals_of(&sessions, first).await;
    assert_eq!(
        resolved_approvals(&events),
        [(approvals[0].id, Decision::Reject, "system".to_owned())]
    );
    assert_eq!(recorder.done.lock().len(), 0);
}

#[tokio::test]
async fn cancelled_resuming_turn_ends_its_uncalled_tools() {
    let dir = tempfile::tempdir().expect("a folder");
    let (recorder, sessions) = approval_service(dir.path()).await;
    let metadata = serde_json::json!({"hang": true});
    let (id, turn) = pause_turn(&sessions, with_metadata("1", &metadata)).await;
    let approvals = approvals_of(&sessions, turn).await;
    let done = decide(&sessions, turn, vec![approve(&approvals[0])]).await;
    let resuming = done.expect("accepted").next.expect("a resuming turn");
    let cancelled = sessions
        .canceller()
        .cancel(&owner("local"), resuming, None)
        .await;
    cancelled.expect("asked to stop");
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    let failed = events.iter().find_map(|event| match &event.body {
        Body::ToolFailed(failed) => Some((event.turn_id, failed)),
        _ => None,
    });
    let (of, failed) = failed.expect("the tool ends");
    assert_eq!(of, Some(resuming));
    assert_eq!(
        (failed.error_class, failed.called, failed.tool_type),
        (ToolErrorClass::Cancelled, false, ToolType::Http)
    );
    assert_eq!(*recorder.done.lock(), []);
    assert_eq!(tool_states(&sessions, id).await, [ToolState::Cancelled]);
    let again = decide(&sessions, turn, vec![approve(&approvals[0])]).await;
    assert_eq!(again.map(|done| done.next), Ok(Some(resuming)));
}

#[tokio::test]
async fn resuming_turn_ended_by_a_crash_does_not_run_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, first) = approval_service(dir.path()).await;
    let metadata = serde_json::json!({"hang": true});
    let (id, turn) = pause_turn(&first, with_metadata("1", &metadata)).await;
    let approvals = approvals_of(&first, turn).await;
    let done = decide(&first, turn, vec![approve(&approvals[0])]).await;
    let resuming = done.expect("accepted").next.expect("a resuming turn");
    let image = copy_store(dir.path());
    let (recorder, after) = approval_service(image.path()).await;
    let events = wait_for_terminals(&after, id, 2).await;
    assert_each_ends_once(&events);
    let Body::TurnCompleted(end) = terminal_of(&events, resuming) else {
        panic!("a failure")
    };
    assert_eq!(end.reason.as_deref(), Some("server_restart"));
    assert_eq!(tool_states(&after, id).await, [ToolState::Failed]);
    let again = decide(&after, turn, vec![approve(&approvals[0])]).await;
    assert_eq!(again.map(|done| done.next), Ok(Some(resuming)));
    assert_eq!(recorder.inputs.lock().len(), 0);
}

#[tokio::test]
async fn turn_that_does_not_pause_expires_its_approvals() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|turn| async move {
        request_approvals(&turn, 1);
        if turn.input.content == [ContentBlock::text("hang")] {
            std::future::pending::<()>().await;
        }
        OK
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let first = submit(&sessions, &owner("local"), id, text_request("end")).await;
    let first = first.expect("accepted").turn_id;
    let events = wait_for_terminals(&sessions, id, 1).await;
    let Body::TurnCompleted(end) = terminal_of(&events, first) else {
        panic!("a failure")
    };
    assert_eq!(end.status, TurnStatus::Failed);
    let second = submit(&sessions, &owner("local"), id, text_request("hang")).await;
    let second = second.expect("accepted").turn_id;
    let approvals = loop {
        let approvals = approvals_of(&sessions, second).await;
        if !approvals.is_empty() {
            break approvals;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let early = decide(&sessions, second, vec![approve(&approvals[0])]).await;
    assert_eq!(early, Err(Error::TurnNotPaused), "it is still at work");
    let image = copy_store(dir.path());
    sessions
        .canceller()
        .cancel(&owner("local"), second, None)
        .await
        .expect("asked to stop");
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(resolved_approvals(&events).len(), 2);
    assert_eq!(
        events.last().map(|event| event.body.kind()),
        Some(EventType::TurnCancelled)
    );
    let late = decide(&sessions, second, vec![reject(&approvals[0])]).await;
    assert_eq!(late, Err(Error::ApprovalResolved(approvals[0].id)));
    // The same after a crash at that moment.
    let (_, after) = approval_service(image.path()).await;
    let events = wait_for_terminals(&after, id, 2).await;
    assert_eq!(resolved_approvals(&events).len(), 2);
    let late = decide(&after, second, vec![approve(&approvals[0])]).await;
    assert_eq!(late, Err(Error::ApprovalResolved(approvals[0].id)));
}

#[tokio::test]
async fn decisions_are_refused_after_drain_and_delete() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, sessions) = approval_service(dir.path()).await;
    let (id, turn) = pause_turn(&sessions, text_request("1")).await;
    let approvals = approvals_of(&sessions, turn).await;
    sessions.refuse_turns();
    let refused = decide(&sessions, turn, vec![approve(&approvals[0])]).await;
    assert_eq!(refused, Err(Error::Draining));
    sessions
        .writer()
        .delete(&owner("local"), id)
        .await
        .expect("gone");
    let gone = decide(&sessions, turn, vec![approve(&approvals[0])]).await;
    assert_eq!(gone, Err(Error::TurnNotFound));
}
