//! Model calls as they are kept: a row each, sums by day, the cost of the session, and what a
//! provider wants back.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use turnwire_event::code::{CallPurpose, CallState, LlmErrorClass, TurnStatus};
use turnwire_event::port::Outcome;
use turnwire_event::row::LlmCallRow;
use turnwire_event::{
    Actor, Body, CallId, Event, Kept, Message, Owner, SessionId, StopReason, TenantId,
};
use turnwire_session::{Options, SessionService, UsageDay};

use crate::stage::*;

async fn rows(sessions: &SessionService, id: SessionId) -> Vec<LlmCallRow> {
    let page = sessions
        .reader()
        .llm_calls(&owner("local"), id, None, 100)
        .await;
    let (rows, next) = page.expect("calls");
    assert_eq!(next, None);
    rows
}

async fn used(sessions: &SessionService, tenant: TenantId) -> Vec<UsageDay> {
    let today = sessions.reader().today();
    // Midnight may come in between.
    let days = (today.minus(1), today);
    sessions
        .reader()
        .usage(tenant, days, 100)
        .await
        .expect("usage")
}

/// The cost of a session as a client is told: by its snapshot, its list, and its attach.
async fn told_cost(sessions: &SessionService, id: SessionId) -> [f64; 3] {
    let me = owner("local");
    let live = sessions
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let snapshot = live.snapshot(10).await.expect("a snapshot").row.cost_usd;
    let (list, _) = sessions
        .reader()
        .sessions(&me, None, 10)
        .await
        .expect("a list");
    let ticket = sessions
        .live_sessions()
        .attach(&me, id)
        .await
        .expect("a ticket");
    [snapshot, list[0].cost_usd, ticket.session.cost_usd]
}

/// The sum of what the log says that calls have cost.
fn logged_cost(events: &[Event]) -> f64 {
    let costs = events.iter().filter_map(|event| match &event.body {
        Body::LlmCallCompleted(call) => Some(call.usage.cost_usd),
        _ => None,
    });
    costs.sum()
}

// S3-107
#[tokio::test]
async fn cost_is_the_sum_of_all_calls_also_after_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        speak(&turn, "let me see", spent(10, 2, 0.1), Kept::default());
        think(&turn, "shop", Some(spent(7, 3, 0.02)), Kept::default());
        think(&turn, "shop", None, Kept::default());
        speak(&turn, "here", spent(30, 5, 0.3), Kept::default());
        OK
    });
    let first = sessions(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    for turns in 1..=2 {
        let accepted = submit(&first, &owner("local"), id, say("hi")).await;
        accepted.expect("accepted");
        let events = ended(&first, id, turns).await;
        let sum = logged_cost(&events);
        assert!((sum - 0.42 * turns as f64).abs() < 1e-9, "{sum}");
        assert_eq!(told_cost(&first, id).await, [sum; 3]);
    }
    let image = crashed(dir.path());
    let again = sessions(image.path(), Options::default(), act).await;
    let sum = logged_cost(&log(&again, id).await);
    assert_eq!(told_cost(&again, id).await, [sum; 3]);
    let used = used(&again, TenantId(0)).await;
    let total: f64 = used.iter().map(|row| row.usage.cost_usd).sum();
    assert!((total - sum).abs() < 1e-9, "{total} is not {sum}");
    let failed: u64 = used.iter().map(|row| row.failed).sum();
    let calls: u64 = used.iter().map(|row| row.calls).sum();
    assert_eq!((calls, failed), (8, 2));
}

// D-04, S1-146
#[tokio::test]
async fn each_call_has_a_row_with_the_provider_response_id() {
    let dir = tempfile::tempdir().expect("a folder");
    let made: Arc<Mutex<Vec<CallId>>> = Arc::default();
    let noted = made.clone();
    let act = acting(move |turn| {
        let noted = noted.clone();
        async move {
            let mut noted = noted.lock();
            noted.push(speak(&turn, "one", spent(10, 2, 0.5), Kept::default()));
            noted.push(think(
                &turn,
                "shop",
                Some(spent(7, 3, 0.0)),
                Kept::default(),
            ));
            noted.push(think(&turn, "shop", None, Kept::default()));
            OK
        }
    });
    let sessions = sessions(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, say("hi")).await;
    let turn = accepted.expect("accepted").turn_id;
    let events = ended(&sessions, id, 1).await;
    let rows = rows(&sessions, id).await;
    let ids: Vec<_> = rows.iter().rev().map(|row| row.call_id).collect();
    assert_eq!(ids, *made.lock(), "newest first");
    let time = |wanted: &str, call: CallId| {
        let said = |event: &&Event| {
            let text = String::from_utf8(event.to_bytes()).expect("text");
            event.body.kind().name() == wanted && text.contains(&call.to_string())
        };
        events.iter().find(said).expect("an event").timestamp
    };
    let spoken = LlmCallRow {
        call_id: ids[0],
        turn_id: turn,
        actor: Actor::ORCHESTRATOR,
        model: "big:one".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        status: CallState::Completed,
        error_class: None,
        stop_reason: Some(StopReason::EndTurn),
        usage: Some(spent(10, 2, 0.5)),
        provider_response_id: Some("theirs of one".into()),
        started_at: time("llm.call_started", ids[0]),
        ended_at: Some(time("llm.call_completed", ids[0])),
    };
    let thought = LlmCallRow {
        call_id: ids[1],
        actor: Actor::subagent("shop"),
        model: "small:one".into(),
        purpose: CallPurpose::Subagent,
        usage: Some(spent(7, 3, 0.0)),
        provider_response_id: Some("inner".into()),
        started_at: time("llm.call_started", ids[1]),
        ended_at: Some(time("llm.call_completed", ids[1])),
        ..spoken.clone()
    };
    let broken = LlmCallRow {
        call_id: ids[2],
        status: CallState::Failed,
        error_class: Some(LlmErrorClass::Timeout),
        stop_reason: None,
        usage: None,
        started_at: time("llm.call_started", ids[2]),
        ended_at: Some(time("llm.call_failed", ids[2])),
        ..thought.clone()
    };
    assert_eq!(rows, [broken, thought, spoken]);
    let text = format!("{events:?}");
    assert!(!text.contains("theirs of"), "it is on the row alone");
}

#[tokio::test]
async fn no_call_is_open_after_the_end_of_its_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        let (call_id, ..) = ids();
        let inner = call_started(call_id, "small:one", CallPurpose::Subagent);
        let emission = turnwire_event::port::Emission::new(Actor::subagent("shop"), inner);
        turn.emitter.emit(emission).expect("taken");
        start_message(&turn, ids());
        match turn.input.content[0].as_text() {
            Some("stop") => std::future::pending().await,
            Some("break") => panic!("as asked"),
            _ => OK, // with its calls left open
        }
    });
    let service = sessions(dir.path(), Options::default(), act.clone()).await;
    let classes = |rows: Vec<LlmCallRow>| -> Vec<Option<LlmErrorClass>> {
        assert!(rows.iter().all(|row| row.status == CallState::Failed));
        assert!(rows.iter().all(|row| row.ended_at.is_some()));
        rows.iter().map(|row| row.error_class).collect()
    };
    for (said, class) in [
        ("stop", LlmErrorClass::Cancelled),
        ("break", LlmErrorClass::Internal),
        ("leave", LlmErrorClass::Internal),
    ] {
        let id = new_session(&service).await;
        let accepted = submit(&service, &owner("local"), id, say(said)).await;
        let turn = accepted.expect("accepted").turn_id;
        if said == "stop" {
            while rows(&service, id).await.len() < 2 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            let asked = service
                .canceller()
                .cancel(&owner("local"), turn, None)
                .await;
            asked.expect("cancelled");
        }
        settled(&service, id).await;
        assert_eq!(
            classes(rows(&service, id).await),
            [Some(class); 2],
            "{said}"
        );
    }
    let id = new_session(&service).await;
    let accepted = submit(&service, &owner("local"), id, say("stop")).await;
    accepted.expect("accepted");
    while rows(&service, id).await.len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let image = crashed(dir.path());
    let again = sessions(image.path(), Options::default(), act).await;
    let swept = classes(rows(&again, id).await);
    assert_eq!(swept, [Some(LlmErrorClass::Internal); 2]);
    let used = used(&again, TenantId(0)).await;
    let calls: u64 = used.iter().map(|row| row.calls).sum();
    let failed: u64 = used.iter().map(|row| row.failed).sum();
    assert_eq!((calls, failed), (8, 8), "each was counted once");
}

#[tokio::test]
async fn law_10_usage_is_per_tenant_and_outlives_sessions() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        speak(&turn, "one", spent(10, 2, 0.5), Kept::default());
        OK
    });
    let sessions = sessions(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, say("hi")).await;
    accepted.expect("accepted");
    ended(&sessions, id, 1).await;
    let mine = used(&sessions, TenantId(0)).await;
    assert_eq!((mine.len(), mine[0].model.as_str()), (1, "big:one"));
    assert_eq!((mine[0].calls, mine[0].usage), (1, spent(10, 2, 0.5)));
    assert_eq!(used(&sessions, TenantId(1)).await, []);
    let stranger = Owner {
        tenant: TenantId(1),
        ..owner("local")
    };
    let refused = sessions.reader().llm_calls(&stranger, id, None, 10).await;
    assert_eq!(
        refused.err(),
        Some(turnwire_session::Error::SessionNotFound)
    );
    sessions
        .writer()
        .delete(&owner("local"), id)
        .await
        .expect("deleted");
    assert_eq!(used(&sessions, TenantId(0)).await, mine);
}

/// What turns were told of the past.
type Told = Arc<Mutex<Vec<(Vec<Message>, Vec<Message>)>>>;

#[tokio::test]
async fn provider_data_is_returned_from_cache_and_store_alike() {
    let dir = tempfile::tempdir().expect("a folder");
    let told: Told = Arc::default();
    let given = told.clone();
    let act = acting(move |turn| {
        let told = given.clone();
        async move {
            let recent = turn.history.recent(MUCH).await.expect("a history");
            let inner = turn.history.of_agent("shop", MUCH).await;
            told.lock().push((recent, inner.expect("a history")));
            speak(&turn, "sealed", spent(1, 1, 0.1), seal("big"));
            think(&turn, "shop", Some(spent(1, 1, 0.1)), seal("small"));
            OK
        }
    });
    let first = sessions(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    let me = owner("local");
    submit(&first, &me, id, say("one")).await.expect("accepted");
    ended(&first, id, 1).await;
    let image = crashed(dir.path());
    let again = sessions(image.path(), Options::default(), act).await;
    for sessions in [&first, &again] {
        submit(sessions, &me, id, say("two"))
            .await
            .expect("accepted");
        ended(sessions, id, 2).await;
    }
    let told = told.lock().clone();
    let (remembered, read) = (&told[1], &told[2]);
    assert_eq!(remembered.0[1], read.0[1], "the same by memory and store");
    assert_eq!(remembered.0[1].kept, seal("big"));
    assert_eq!(remembered.1, read.1);
    assert_eq!(remembered.1[0].kept, seal("small"));
    // Whatever a client can be given is made of these, as JSON.
    let live = first
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let snapshot = live.snapshot(10).await.expect("a snapshot");
    let (messages, _) = first
        .reader()
        .messages(&me, id, None, 10)
        .await
        .expect("messages");
    let mut shown = json!([snapshot.messages, messages]).to_string();
    for event in log(&first, id).await {
        shown.push_str(&String::from_utf8(event.to_bytes()).expect("text"));
    }
    assert!(
        shown.contains("sealed") && !shown.contains("marker"),
        "{shown}"
    );
}

fn seal(by: &str) -> Kept {
    Kept {
        by: by.into(),
        blocks: [(0, json!({"marker": by}))].into(),
    }
}

#[tokio::test]
async fn queued_turn_reads_the_cost_before_its_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let costs: Arc<Mutex<Vec<f64>>> = Arc::default();
    let permits = Arc::new(tokio::sync::Semaphore::new(0));
    let (noted, gate) = (costs.clone(), permits.clone());
    let act = acting(move |turn| {
        let (noted, gate) = (noted.clone(), gate.clone());
        async move {
            noted.lock().push(turn.input.cost_usd);
            gate.acquire().await.expect("open").forget();
            speak(&turn, "one", spent(1, 1, 0.25), Kept::default());
            think(&turn, "shop", Some(spent(1, 1, 0.5)), Kept::default());
            OK
        }
    });
    let first = sessions(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    for text in ["1", "2", "3"] {
        enqueue(&first, id, text).await;
    }
    permits.add_permits(3);
    ended(&first, id, 3).await;
    assert_eq!(*costs.lock(), [0.0, 0.75, 1.5]);
    let image = crashed(dir.path());
    let again = sessions(image.path(), Options::default(), act).await;
    enqueue(&again, id, "4").await;
    permits.add_permits(1);
    ended(&again, id, 4).await;
    assert_eq!(costs.lock().last(), Some(&2.25));
}

#[tokio::test]
async fn terminal_contains_the_reason_of_the_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        if turn.input.content[0].as_text() == Some("loose") {
            start_message(&turn, ids());
        }
        Outcome {
            reason: Some("limit_cost".into()),
            status: TurnStatus::Degraded,
            error: None,
        }
    });
    let sessions = sessions(dir.path(), Options::default(), act).await;
    for (said, status) in [
        ("whole", TurnStatus::Degraded),
        ("loose", TurnStatus::Failed),
    ] {
        let id = new_session(&sessions).await;
        let accepted = submit(&sessions, &owner("local"), id, say(said)).await;
        let turn = accepted.expect("accepted").turn_id;
        let events = ended(&sessions, id, 1).await;
        let Body::TurnCompleted(end) = terminal(&events, turn) else {
            panic!("a completion")
        };
        assert_eq!(
            (end.status, end.reason.as_deref()),
            (status, Some("limit_cost"))
        );
    }
}
