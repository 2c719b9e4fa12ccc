//! Who reads which message: clients read shared ones, the orchestrator also its private ones, a
//! sub-agent its own of earlier turns and the notes for all sub-agents.

use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::port::HistoryBudget;
use turnwire_event::row::MessageScope;
use turnwire_event::{Body, Event, MessageId, Role, SessionId};
use turnwire_session::{Error, Options, SessionService};

use crate::stage::*;

/// The histories that the last turn read, by reader, and the ids of its hidden messages.
#[derive(Default)]
struct HistoriesRead {
    orchestrator: Vec<String>,
    shop: Vec<String>,
    rewards: Vec<String>,
    hidden: Vec<MessageId>,
}

/// A producer whose turns record their histories and store a message of every scope.
fn recording_producer(histories: Arc<Mutex<HistoriesRead>>) -> WorkFn {
    producer_fn(move |turn| {
        let histories = histories.clone();
        async move {
            let recent = turn.history.recent(LARGE_BUDGET).await.expect("a history");
            let shop = turn
                .history
                .of_agent("shop", LARGE_BUDGET)
                .await
                .expect("it");
            let rewards = turn
                .history
                .of_agent("rewards", LARGE_BUDGET)
                .await
                .expect("it");
            let now = message_texts(&recent).pop().expect("the input");
            let mut histories = histories.lock();
            histories.orchestrator = message_texts(&recent);
            histories.shop = message_texts(&shop);
            histories.rewards = message_texts(&rewards);
            let agent = |id: &str| MessageScope::Agent(id.into());
            let said = |who: &str| format!("{now} {who}");
            for (who, scope) in [
                ("shop", agent("shop")),
                ("rewards", agent("rewards")),
                ("private", MessageScope::Private),
            ] {
                let id = run_tool(&turn, new_message(Role::Tool, &said(who), scope));
                histories.hidden.push(id);
            }
            emit_note(&turn, &said("note"));
            run_tool(
                &turn,
                new_message(Role::Tool, &said("shared"), MessageScope::Shared),
            );
            OK
        }
    })
}

async fn turn(sessions: &SessionService, id: SessionId, text: &str, count: usize) -> Vec<Event> {
    let accepted = submit(sessions, &owner("local"), id, text_request(text)).await;
    accepted.expect("accepted");
    wait_for_terminals(sessions, id, count).await
}

// D-46, S1-144
#[tokio::test]
async fn each_agent_reads_its_own_history_from_cache_and_store() {
    let dir = tempfile::tempdir().expect("a folder");
    let histories: Arc<Mutex<HistoriesRead>> = Arc::default();
    let first = start_service(
        dir.path(),
        Options::default(),
        recording_producer(histories.clone()),
    )
    .await;
    let id = new_session(&first).await;
    turn(&first, id, "one", 1).await;
    assert!(histories.lock().shop.is_empty() && histories.lock().rewards.is_empty());
    let image = copy_store(dir.path());
    // The session in memory, and one that is loaded from the store.
    let again = start_service(
        image.path(),
        Options::default(),
        recording_producer(histories.clone()),
    )
    .await;
    for sessions in [first, again] {
        turn(&sessions, id, "two", 2).await;
        let histories = histories.lock();
        assert_eq!(
            histories.orchestrator,
            ["one", "one private", "one shared", "two"]
        );
        assert_eq!(histories.shop, ["one note", "one shop"]);
        assert_eq!(histories.rewards, ["one note", "one rewards"]);
    }
}

// D-46, S1-030
#[tokio::test]
async fn clients_read_shared_messages_and_no_notes() {
    let dir = tempfile::tempdir().expect("a folder");
    let histories: Arc<Mutex<HistoriesRead>> = Arc::default();
    let sessions = start_service(
        dir.path(),
        Options::default(),
        recording_producer(histories.clone()),
    )
    .await;
    let id = new_session(&sessions).await;
    let events = turn(&sessions, id, "one", 1).await;
    assert!(
        events
            .iter()
            .all(|event| !String::from_utf8_lossy(&event.to_bytes()).contains("note")),
        "no event of it, hidden or not"
    );
    let me = owner("local");
    let shared = ["one", "one shared"];
    let (listed, next) = sessions
        .reader()
        .messages(&me, id, None, 10)
        .await
        .expect("a page");
    assert_eq!(
        (message_texts(&listed), next),
        (shared.map(str::to_owned).into(), None)
    );
    let before = listed.last().map(|message| message.id);
    let (older, _) = sessions
        .reader()
        .messages(&me, id, before, 10)
        .await
        .expect("a page");
    assert_eq!(message_texts(&older), ["one"]);
    let live = sessions
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let snapshot = live.snapshot(10).await.expect("a snapshot");
    assert_eq!(message_texts(&snapshot.messages), shared);
    let hidden = histories.lock().hidden.clone();
    for hidden in hidden {
        let page = sessions.reader().messages(&me, id, Some(hidden), 10).await;
        assert_eq!(page.expect_err("hidden"), Error::MessageNotFound);
    }
}

#[tokio::test]
async fn sub_agent_reads_complete_earlier_turns_within_budget() {
    let dir = tempfile::tempdir().expect("a folder");
    let histories: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let shared = histories.clone();
    let act = producer_fn(move |turn| {
        let histories = shared.clone();
        async move {
            let now = turn.input.content[0].as_text().expect("text").to_owned();
            for part in ["request", "answer"] {
                let said = new_message(
                    Role::User,
                    &format!("{now} {part}"),
                    MessageScope::Agent("shop".into()),
                );
                run_tool(&turn, said);
            }
            let mut all = Vec::new();
            for (messages_max, bytes_max) in [
                (100, 100_000),
                (4, 100_000),
                (3, 100_000),
                (1, 9),
                (100, 90),
            ] {
                let budget = HistoryBudget {
                    messages_max,
                    bytes_max,
                };
                let past = turn.history.of_agent("shop", budget).await;
                all.push(message_texts(&past.expect("a history")));
            }
            *histories.lock() = all;
            OK
        }
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    for (count, text) in (1..).zip(["1", "2", "3"]) {
        turn(&sessions, id, text, count).await;
    }
    let newest = ["2 request", "2 answer"].map(str::to_owned).to_vec();
    let all = [
        ["1 request", "1 answer"].map(str::to_owned).to_vec(),
        newest.clone(),
    ]
    .concat();
    assert_eq!(
        *histories.lock(),
        [all.clone(), all, newest.clone(), Vec::new(), newest]
    );
}

#[tokio::test]
async fn turn_started_reports_the_omitted_messages() {
    let dir = tempfile::tempdir().expect("a folder");
    let message_counts: Arc<Mutex<Vec<usize>>> = Arc::default();
    let shared = message_counts.clone();
    // The budget of the stage: four messages a turn. Each turn adds its input, a result that is
    // private, one that is shared, and one of a sub-agent, which is not counted.
    let act = producer_fn(move |turn| {
        let message_counts = shared.clone();
        async move {
            let recent = turn.history.recent(LARGE_BUDGET).await.expect("a history");
            message_counts.lock().push(recent.len());
            run_tool(
                &turn,
                new_message(Role::Tool, "shop", MessageScope::Agent("shop".into())),
            );
            run_tool(
                &turn,
                new_message(Role::Tool, "private", MessageScope::Private),
            );
            run_tool(
                &turn,
                new_message(Role::Tool, "shared", MessageScope::Shared),
            );
            OK
        }
    });
    let first = start_service(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    let mut events = Vec::new();
    for count in 1..=3 {
        events = turn(&first, id, "hi", count).await;
    }
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    let reread = turn(&again, id, "hi", 4).await;
    let omitted = |events: &[Event]| -> Vec<u64> {
        let starts = events.iter().filter_map(|event| match &event.body {
            Body::TurnStarted(start) => Some(start.history_omitted),
            _ => None,
        });
        starts.collect()
    };
    assert_eq!(*message_counts.lock(), [1, 4, 4, 4]);
    assert_eq!(omitted(&events), [0, 0, 3]);
    assert_eq!(omitted(&reread), [0, 0, 3, 6]);
}
