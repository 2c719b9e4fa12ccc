//! Turns that end abnormally: a producer that panics or hangs, a timeout, a runtime that shuts down.
//! Each has one terminal, with everything closed before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::turn::TurnCancelled;
use turnwire_event::code::{
    CallPurpose, CancelCode, Phase, ReceiptKind, ToolType, TurnState, TurnStatus,
};
use turnwire_event::port::{ChildTask, Emission};
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
    assert_eq!(
        (end.reason.as_str(), end.code, end.phase),
        ("turn_timeout", CancelCode::IdleTimeout, Phase::Llm)
    );
}

/// The cancel of a turn that hangs in `act`, in a service with these windows in milliseconds.
async fn ended_by_the_server(act: WorkFn, (idle, timeout): (u64, u64)) -> TurnCancelled {
    let dir = tempfile::tempdir().expect("a folder");
    let options = Options {
        turn_idle: Duration::from_millis(idle),
        turn_timeout: Duration::from_millis(timeout),
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    let turn = accepted.expect("accepted").turn_id;
    let events = wait_for_end(&sessions, id).await;
    let Body::TurnCancelled(end) = terminal_of(&events, turn) else {
        panic!("a cancel")
    };
    end.clone()
}

// D-13, D-44, C-03
#[tokio::test]
async fn idle_turn_is_cancelled_unless_timed_work_runs() {
    let silent = producer_fn(|_| std::future::pending());
    let end = ended_by_the_server(silent, (50, 60_000)).await;
    assert_eq!(
        (end.reason.as_str(), end.code, end.phase),
        ("idle_timeout", CancelCode::IdleTimeout, Phase::Idle)
    );
    // A model call has a time limit of its own: the turn ends by its own one.
    let calling = producer_fn(|turn| async move {
        start_message(&turn, ids());
        std::future::pending().await
    });
    let end = ended_by_the_server(calling, (20, 300)).await;
    assert_eq!(end.reason, "turn_timeout");
    let running_tool = producer_fn(|turn| async move {
        call_tool(&turn, ids());
        std::future::pending().await
    });
    let end = ended_by_the_server(running_tool, (20, 300)).await;
    assert_eq!(end.reason, "turn_timeout");
}

// D-13
#[tokio::test]
async fn every_event_restarts_the_idle_window() {
    let act = producer_fn(|turn| async move {
        for _ in 0..8 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            emit(&turn, status("working"));
        }
        std::future::pending().await
    });
    let dir = tempfile::tempdir().expect("a folder");
    let options = Options {
        turn_idle: Duration::from_millis(400),
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    let statuses = events
        .iter()
        .filter(|event| matches!(event.body, Body::StatusEmitted(_)));
    assert_eq!(statuses.count(), 8, "twice as long as the window");
    let Some(Body::TurnCancelled(end)) = events.last().map(|event| &event.body) else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "idle_timeout");
}

// D-44, C-03
#[tokio::test]
async fn code_of_a_cancel_survives_a_crash_before_its_terminal() {
    let dir = tempfile::tempdir().expect("a folder");
    // The turn waits for a process that does not end.
    let act = producer_fn(|turn| async move {
        let process = ChildTask {
            kind: ReceiptKind::Process,
            id: String::from("7").into(),
            tool_use_id: ids().2,
            ended: Box::pin(std::future::pending()),
        };
        turn.child_tasks.track(process).expect("tracked");
        std::future::pending().await
    });
    let options = Options {
        turn_idle: Duration::from_millis(20),
        ..Options::default()
    };
    let first = start_service(dir.path(), options, act).await;
    let id = new_session(&first).await;
    let accepted = submit(&first, &owner("local"), id, text_request("hi")).await;
    let turn = accepted.expect("accepted").turn_id;
    while turn_state(&first, turn).await != TurnState::Cancelling {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let image = copy_store(dir.path());
    let after = start_service(
        image.path(),
        Options::default(),
        producer_fn(|_| async { OK }),
    )
    .await;
    let events = wait_for_terminals(&after, id, 1).await;
    let Body::TurnCancelled(end) = terminal_of(&events, turn) else {
        panic!("a cancel")
    };
    assert_eq!(
        (end.reason.as_str(), end.code),
        ("idle_timeout", CancelCode::IdleTimeout)
    );
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
