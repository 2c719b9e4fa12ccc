//! Turns that end abnormally: a producer that panics or hangs, a timeout, a runtime that shuts down.
//! Each has one terminal, with everything closed before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use turnwire_event::body::llm::CallStarted;
use turnwire_event::code::{CallPurpose, ToolType, TurnState, TurnStatus};
use turnwire_event::port::Emission;
use turnwire_event::{Actor, Body, Event, MessageStatus};
use turnwire_session::Options;

use crate::stage::*;

#[tokio::test]
async fn panic_ends_the_turn_once_with_everything_closed() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|turn| async move {
        start_message(&turn, ids());
        panic!("a secret in the panic");
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi"))
        .await
        .expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    assert_eq!(
        event_names(&events),
        [
            "turn.started",
            "llm.call_started",
            "llm.call_failed",
            "dispatch.traced",
            "turn.completed"
        ]
    );
    let Some(Body::TurnCompleted(end)) = events.last().map(|e| e.body.clone()) else {
        panic!("a terminal")
    };
    assert_eq!(end.status, TurnStatus::Failed);
    let text = format!("{events:?}");
    assert!(
        !text.contains("secret"),
        "exception text stays inside: {text}"
    );
    let (messages, _) = sessions
        .reader()
        .messages(&owner("local"), id, None, 10)
        .await
        .expect("messages");
    let cut = messages.last().expect("the cut message");
    assert_eq!(
        (cut.status, cut.text().as_str()),
        (MessageStatus::Failed, "half an ")
    );
    let row = sessions
        .reader()
        .turn(&owner("local"), accepted.turn_id)
        .await
        .expect("the turn");
    assert_eq!(row.state, TurnState::Completed);
    // The slot is free: the next turn is accepted.
    submit(&sessions, &owner("local"), id, text_request("again"))
        .await
        .expect("accepted");
}

#[tokio::test]
async fn hanging_producer_is_left_behind_and_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = Arc::new(AtomicBool::new(false));
    let results = refused.clone();
    let act = producer_fn(move |turn| {
        let results = results.clone();
        async move {
            call_tool(&turn, ids());
            // Blocks its thread without an await, so an abort has no effect.
            std::thread::sleep(Duration::from_millis(1500));
            let (call_id, ..) = ids();
            let purpose = CallPurpose::Orchestrate;
            let late = Body::LlmCallStarted(CallStarted {
                call_id,
                model: "m".into(),
                purpose,
                attempt: 1,
                first: false,
            });
            results.store(
                turn.emitter
                    .emit(Emission::new(Actor::ORCHESTRATOR, late))
                    .is_err(),
                Ordering::SeqCst,
            );
            OK
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime
        .spawn(async move {
            let sessions = start_service(dir.path(), Options::default(), act).await;
            let id = new_session(&sessions).await;
            let accepted = submit(&sessions, &owner("local"), id, text_request("hi"))
                .await
                .expect("accepted");
            let state = sessions
                .canceller()
                .cancel(&owner("local"), accepted.turn_id, Some("stop".into()))
                .await;
            assert_eq!(state, Ok(TurnState::Cancelling));
            let events = wait_for_end(&sessions, id).await;
            let expected = [
                "turn.started",
                "llm.call_started",
                "llm.call_completed",
                "tool.called",
                "turn.cancel_requested",
                "tool.failed",
                "dispatch.traced",
                "turn.cancelled",
            ];
            assert_eq!(event_names(&events), expected);
            let Some(Body::ToolFailed(tool)) = events.iter().rev().nth(2).map(|e| e.body.clone())
            else {
                panic!("a tool")
            };
            assert_eq!((tool.tool_type, tool.called), (ToolType::Http, true));
            tokio::time::sleep(Duration::from_millis(1700)).await;
            assert!(refused.load(Ordering::SeqCst), "its late event was refused");
            assert_eq!(
                event_names(&read_log(&sessions, id).await),
                expected,
                "and is not in the log"
            );
            // A second cancel changes nothing.
            let state = sessions
                .canceller()
                .cancel(&owner("local"), accepted.turn_id, None)
                .await;
            assert_eq!(state, Ok(TurnState::Cancelled));
        })
        .await
        .expect("the test");
    runtime.shutdown_background();
}

// S3-077
#[tokio::test]
async fn cancel_before_the_first_call_is_the_only_event() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|_| std::future::pending());
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi"))
        .await
        .expect("accepted");
    sessions
        .canceller()
        .cancel(&owner("local"), accepted.turn_id, None)
        .await
        .expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    assert_eq!(
        event_names(&events),
        [
            "turn.started",
            "turn.cancel_requested",
            "dispatch.traced",
            "turn.cancelled"
        ]
    );
    let Some(Body::TurnCancelled(end)) = events.last().map(|e| e.body.clone()) else {
        panic!("a terminal")
    };
    assert_eq!(
        (end.reason.as_str(), end.phase),
        ("user_cancel", turnwire_event::code::Phase::Route)
    );
}

// S3-071
#[tokio::test]
async fn turn_that_exceeds_its_time_is_cancelled() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|turn| async move {
        start_message(&turn, ids());
        std::future::pending().await
    });
    let options = Options {
        turn_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    submit(&sessions, &owner("local"), id, text_request("hi"))
        .await
        .expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    let expected = [
        "turn.started",
        "llm.call_started",
        "turn.cancel_requested",
        "llm.call_failed",
        "dispatch.traced",
        "turn.cancelled",
    ];
    assert_eq!(event_names(&events), expected);
    let Some(Body::TurnCancelled(end)) = events.last().map(|e| e.body.clone()) else {
        panic!("a terminal")
    };
    assert_eq!(end.reason, "turn_timeout");
}

#[test]
fn dropped_runtime_leaves_no_open_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|turn| async move {
        start_message(&turn, ids());
        std::future::pending().await
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let (sessions, id) = runtime.block_on(async {
        let sessions = start_service(dir.path(), Options::default(), act).await;
        let id = new_session(&sessions).await;
        submit(&sessions, &owner("local"), id, text_request("hi"))
            .await
            .expect("accepted");
        let is_calling = |event: &Event| matches!(event.body, Body::LlmCallStarted(_));
        while !read_log(&sessions, id).await.iter().any(is_calling) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (sessions, id)
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    // The ending is queued at the writer, whose thread is not a task of the runtime.
    let again = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let events = again.block_on(async {
        for _ in 0..200 {
            let events = read_log(&sessions, id).await;
            if events.iter().any(|event| event.body.kind().is_terminal()) {
                return events;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        read_log(&sessions, id).await
    });
    assert_eq!(
        event_names(&events),
        [
            "turn.started",
            "llm.call_started",
            "llm.call_failed",
            "dispatch.traced",
            "turn.completed"
        ]
    );
    let Some(Body::TurnCompleted(end)) = events.last().map(|e| e.body.clone()) else {
        panic!("a terminal")
    };
    assert_eq!(end.reason.as_deref(), Some("server_shutdown"));
}
