//! Model calls as they are stored: a row each, sums by day, the cost of the session, and the data
//! that a provider needs back.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use turnwire_event::code::{CallPurpose, CallState, LlmErrorClass, TurnStatus};
use turnwire_event::port::{Emission, TurnContext, TurnOutcome};
use turnwire_event::row::LlmCallRow;
use turnwire_event::{
    Actor, Body, CallId, Event, Message, Owner, ProviderState, SessionId, StopReason, TenantId,
    TokenUsage,
};
use turnwire_session::{DailyUsage, Options, SessionService};

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

async fn usage_rows(sessions: &SessionService, tenant: TenantId) -> Vec<DailyUsage> {
    let today = sessions.reader().today();
    // The day may change during the test.
    let days = (today.minus(1), today);
    let asking = Owner {
        tenant,
        ..owner("local")
    };
    let usage = sessions
        .reader()
        .usage(&asking, Some(tenant), days, 100)
        .await;
    usage.expect("usage")
}

/// The cost of a session in its snapshot, its list row, and its attach ticket.
async fn reported_cost(sessions: &SessionService, id: SessionId) -> [f64; 3] {
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
    let row = sessions.live_sessions().row(&me, id).await.expect("a row");
    [snapshot, list[0].cost_usd, row.cost_usd]
}

/// The sum of the costs in the `llm.call_completed` events.
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
    let act = producer_fn(|turn| async move {
        stream_message(
            &turn,
            "let me see",
            usage_of(10, 2, 0.1),
            ProviderState::default(),
        );
        call_as_sub_agent(
            &turn,
            "shop",
            Some(usage_of(7, 3, 0.02)),
            ProviderState::default(),
        );
        call_as_sub_agent(&turn, "shop", None, ProviderState::default());
        stream_message(
            &turn,
            "here",
            usage_of(30, 5, 0.3),
            ProviderState::default(),
        );
        OK
    });
    let first = start_service(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    for turns in 1..=2 {
        let accepted = submit(&first, &owner("local"), id, text_request("hi")).await;
        accepted.expect("accepted");
        let events = wait_for_terminals(&first, id, turns).await;
        let sum = logged_cost(&events);
        assert!((sum - 0.42 * turns as f64).abs() < 1e-9, "{sum}");
        assert_eq!(reported_cost(&first, id).await, [sum; 3]);
    }
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    let sum = logged_cost(&read_log(&again, id).await);
    assert_eq!(reported_cost(&again, id).await, [sum; 3]);
    let usage_rows = usage_rows(&again, TenantId(0)).await;
    let total: f64 = usage_rows.iter().map(|row| row.usage.cost_usd).sum();
    assert!((total - sum).abs() < 1e-9, "{total} is not {sum}");
    let failed: u64 = usage_rows.iter().map(|row| row.failed).sum();
    let calls: u64 = usage_rows.iter().map(|row| row.calls).sum();
    assert_eq!((calls, failed), (8, 2));
}

/// A turn whose two calls report what they used and never end.
async fn report_and_wait(turn: TurnContext, reported: Arc<Notify>) -> TurnOutcome {
    let (spoken, message, tool) = ids();
    start_message(&turn, (spoken, message, tool));
    let (inner, ..) = ids();
    let started = call_started(inner, "small:one", CallPurpose::Subagent);
    let emission = Emission::new(Actor::subagent("shop"), started);
    turn.emitter.emit(emission).expect("accepted");
    let estimated = |output, cost_usd| TokenUsage {
        estimated: true,
        ..usage_of(10, output, cost_usd)
    };
    turn.emitter.report_usage(spoken, estimated(1, 0.2));
    turn.emitter.report_usage(spoken, estimated(2, 0.25));
    turn.emitter.report_usage(inner, usage_of(7, 3, 0.02));
    reported.notify_one();
    std::future::pending().await
}

#[tokio::test]
async fn stopped_calls_are_paid_for_everywhere() {
    let dir = tempfile::tempdir().expect("a folder");
    let reported = Arc::new(Notify::new());
    let all_reported = reported.clone();
    let act = producer_fn(move |turn| report_and_wait(turn, reported.clone()));
    let first = start_service(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    let accepted = submit(&first, &owner("local"), id, text_request("hi")).await;
    let turn = accepted.expect("accepted").turn_id;
    all_reported.notified().await;
    let cancelled = first.canceller().cancel(&owner("local"), turn, None).await;
    cancelled.expect("cancelled");
    wait_for_end(&first, id).await;
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    for (service, when) in [(&first, "live"), (&again, "after a restart")] {
        let of = |row: &LlmCallRow| row.usage.map(|usage| (usage.cost_usd, usage.estimated));
        let mut usages: Vec<_> = rows(service, id).await.iter().map(of).collect();
        usages.sort_by(|one, two| one.partial_cmp(two).expect("numbers"));
        assert_eq!(usages, [Some((0.02, false)), Some((0.25, true))], "{when}");
        for cost in reported_cost(service, id).await {
            assert!((cost - 0.27).abs() < 1e-9, "{when}: {cost}");
        }
        let days = usage_rows(service, TenantId(0)).await;
        let total: f64 = days.iter().map(|row| row.usage.cost_usd).sum();
        assert!((total - 0.27).abs() < 1e-9, "{when}: {total}");
    }
}

// D-04, S1-146
#[tokio::test]
async fn each_call_has_a_row_with_the_provider_response_id() {
    let dir = tempfile::tempdir().expect("a folder");
    let made: Arc<Mutex<Vec<CallId>>> = Arc::default();
    let recorded = made.clone();
    let act = producer_fn(move |turn| {
        let recorded = recorded.clone();
        async move {
            let mut recorded = recorded.lock();
            recorded.push(stream_message(
                &turn,
                "one",
                usage_of(10, 2, 0.5),
                ProviderState::default(),
            ));
            recorded.push(call_as_sub_agent(
                &turn,
                "shop",
                Some(usage_of(7, 3, 0.0)),
                ProviderState::default(),
            ));
            recorded.push(call_as_sub_agent(
                &turn,
                "shop",
                None,
                ProviderState::default(),
            ));
            OK
        }
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    let turn = accepted.expect("accepted").turn_id;
    let events = wait_for_terminals(&sessions, id, 1).await;
    let rows = rows(&sessions, id).await;
    let ids: Vec<_> = rows.iter().rev().map(|row| row.call_id).collect();
    assert_eq!(ids, *made.lock(), "newest first");
    let time = |wanted: &str, call: CallId| {
        let is_wanted = |event: &&Event| {
            let text = String::from_utf8(event.to_bytes()).expect("text");
            event.body.kind().name() == wanted && text.contains(&call.to_string())
        };
        events.iter().find(is_wanted).expect("an event").timestamp
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
        usage: Some(usage_of(10, 2, 0.5)),
        provider_response_id: Some("theirs of one".into()),
        started_at: time("llm.call_started", ids[0]),
        ended_at: Some(time("llm.call_completed", ids[0])),
    };
    let thought = LlmCallRow {
        call_id: ids[1],
        actor: Actor::subagent("shop"),
        model: "small:one".into(),
        purpose: CallPurpose::Subagent,
        usage: Some(usage_of(7, 3, 0.0)),
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
    let act = producer_fn(|turn| async move {
        let (call_id, ..) = ids();
        let inner = call_started(call_id, "small:one", CallPurpose::Subagent);
        let emission = Emission::new(Actor::subagent("shop"), inner);
        turn.emitter.emit(emission).expect("accepted");
        start_message(&turn, ids());
        match turn.input.content[0].as_text() {
            Some("stop") => std::future::pending().await,
            Some("break") => panic!("as asked"),
            _ => OK, // with its calls left open
        }
    });
    let service = start_service(dir.path(), Options::default(), act.clone()).await;
    let classes = |rows: Vec<LlmCallRow>| -> Vec<Option<LlmErrorClass>> {
        assert!(rows.iter().all(|row| row.status == CallState::Failed));
        assert!(rows.iter().all(|row| row.ended_at.is_some()));
        rows.iter().map(|row| row.error_class).collect()
    };
    for (text, class) in [
        ("stop", LlmErrorClass::Cancelled),
        ("break", LlmErrorClass::Internal),
        ("leave", LlmErrorClass::Internal),
    ] {
        let id = new_session(&service).await;
        let accepted = submit(&service, &owner("local"), id, text_request(text)).await;
        let turn = accepted.expect("accepted").turn_id;
        if text == "stop" {
            while rows(&service, id).await.len() < 2 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            let cancelled = service
                .canceller()
                .cancel(&owner("local"), turn, None)
                .await;
            cancelled.expect("cancelled");
        }
        wait_for_end(&service, id).await;
        assert_eq!(
            classes(rows(&service, id).await),
            [Some(class); 2],
            "{text}"
        );
    }
    let id = new_session(&service).await;
    let accepted = submit(&service, &owner("local"), id, text_request("stop")).await;
    accepted.expect("accepted");
    while rows(&service, id).await.len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    let swept = classes(rows(&again, id).await);
    assert_eq!(swept, [Some(LlmErrorClass::Internal); 2]);
    let usage_rows = usage_rows(&again, TenantId(0)).await;
    let calls: u64 = usage_rows.iter().map(|row| row.calls).sum();
    let failed: u64 = usage_rows.iter().map(|row| row.failed).sum();
    let stopped: u64 = usage_rows.iter().map(|row| row.stopped).sum();
    let counted = (calls, failed, stopped);
    assert_eq!(counted, (8, 6, 2), "each was counted once");
}

#[tokio::test]
async fn law_10_usage_is_per_tenant_and_outlives_sessions() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|turn| async move {
        stream_message(&turn, "one", usage_of(10, 2, 0.5), ProviderState::default());
        OK
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    wait_for_terminals(&sessions, id, 1).await;
    let mine = usage_rows(&sessions, TenantId(0)).await;
    assert_eq!((mine.len(), mine[0].model.as_str()), (1, "big:one"));
    assert_eq!((mine[0].calls, mine[0].usage), (1, usage_of(10, 2, 0.5)));
    assert_eq!(usage_rows(&sessions, TenantId(1)).await, []);
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
    assert_eq!(usage_rows(&sessions, TenantId(0)).await, mine);
}

/// The histories of the orchestrator and of a sub-agent, by turn.
type TurnHistories = Arc<Mutex<Vec<(Vec<Message>, Vec<Message>)>>>;

#[tokio::test]
async fn provider_data_is_returned_from_cache_and_store_alike() {
    let dir = tempfile::tempdir().expect("a folder");
    let histories: TurnHistories = Arc::default();
    let shared = histories.clone();
    let act = producer_fn(move |turn| {
        let histories = shared.clone();
        async move {
            let recent = turn.history.recent(LARGE_BUDGET).await.expect("a history");
            let inner = turn.history.of_agent("shop", LARGE_BUDGET).await;
            histories.lock().push((recent, inner.expect("a history")));
            stream_message(&turn, "sealed", usage_of(1, 1, 0.1), seal("big"));
            call_as_sub_agent(&turn, "shop", Some(usage_of(1, 1, 0.1)), seal("small"));
            OK
        }
    });
    let first = start_service(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    let me = owner("local");
    submit(&first, &me, id, text_request("one"))
        .await
        .expect("accepted");
    wait_for_terminals(&first, id, 1).await;
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    for sessions in [&first, &again] {
        submit(sessions, &me, id, text_request("two"))
            .await
            .expect("accepted");
        wait_for_terminals(sessions, id, 2).await;
    }
    let histories = histories.lock().clone();
    let (remembered, read) = (&histories[1], &histories[2]);
    assert_eq!(remembered.0[1], read.0[1], "the same by memory and store");
    assert_eq!(remembered.0[1].provider_state, seal("big"));
    assert_eq!(remembered.1, read.1);
    assert_eq!(remembered.1[0].provider_state, seal("small"));
    // The JSON of everything that a client can read.
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
    let mut client_json = json!([snapshot.messages, messages]).to_string();
    for event in read_log(&first, id).await {
        client_json.push_str(&String::from_utf8(event.to_bytes()).expect("text"));
    }
    assert!(
        client_json.contains("sealed") && !client_json.contains("marker"),
        "{client_json}"
    );
}

fn seal(by: &str) -> ProviderState {
    ProviderState {
        by: by.into(),
        blocks: [(0, json!({"marker": by}))].into(),
    }
}

#[tokio::test]
async fn queued_turn_reads_the_cost_before_its_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let costs: Arc<Mutex<Vec<f64>>> = Arc::default();
    let permits = Arc::new(tokio::sync::Semaphore::new(0));
    let (recorded, gate) = (costs.clone(), permits.clone());
    let act = producer_fn(move |turn| {
        let (recorded, gate) = (recorded.clone(), gate.clone());
        async move {
            recorded.lock().push(turn.input.cost_usd);
            gate.acquire().await.expect("open").forget();
            stream_message(&turn, "one", usage_of(1, 1, 0.25), ProviderState::default());
            call_as_sub_agent(
                &turn,
                "shop",
                Some(usage_of(1, 1, 0.5)),
                ProviderState::default(),
            );
            OK
        }
    });
    let first = start_service(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    for text in ["1", "2", "3"] {
        enqueue(&first, id, text).await;
    }
    permits.add_permits(3);
    wait_for_terminals(&first, id, 3).await;
    assert_eq!(*costs.lock(), [0.0, 0.75, 1.5]);
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    enqueue(&again, id, "4").await;
    permits.add_permits(1);
    wait_for_terminals(&again, id, 4).await;
    assert_eq!(costs.lock().last(), Some(&2.25));
}

#[tokio::test]
async fn terminal_contains_the_reason_of_the_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|turn| async move {
        if turn.input.content[0].as_text() == Some("loose") {
            start_message(&turn, ids());
        }
        TurnOutcome {
            cancelled: None,
            reason: Some("limit_cost".into()),
            status: TurnStatus::Degraded,
            error: None,
        }
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    for (text, status) in [
        ("whole", TurnStatus::Degraded),
        ("loose", TurnStatus::Failed),
    ] {
        let id = new_session(&sessions).await;
        let accepted = submit(&sessions, &owner("local"), id, text_request(text)).await;
        let turn = accepted.expect("accepted").turn_id;
        let events = wait_for_terminals(&sessions, id, 1).await;
        let Body::TurnCompleted(end) = terminal_of(&events, turn) else {
            panic!("a completion")
        };
        assert_eq!(
            (end.status, end.reason.as_deref()),
            (status, Some("limit_cost"))
        );
    }
}
