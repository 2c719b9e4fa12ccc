//! Turns that end badly: a producer that panics, that does not let go, that leaves things open,
//! a runtime that goes away. Whatever happens, one terminal, everything closed before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::stream::{MessageStart, TextDelta, ToolUseInputDelta, ToolUseStart};
use turnwire_event::body::tool::Called;
use turnwire_event::body::turn::Versions;
use turnwire_event::code::{CallPurpose, OnDisconnect, ToolType, TurnState, TurnStatus};
use turnwire_event::port::{
    BoxFuture, Emission, HistoryBudget, MessageEnd, Outcome, Producer, TurnContext,
};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, Event, Filter, MessageId, MessageStatus, Mint, Owner, Role,
    SessionId, StopReason, TenantId, ToolUseId, Usage,
};
use turnwire_log::Writer;
use turnwire_log::reserve::Reserve;
use turnwire_log::sqlite::{Durability, Options as StoreOptions, Sqlite};
use turnwire_render::PassThrough;
use turnwire_session::sessions::Parts;
use turnwire_session::{
    Error, EventsQuery, NewSession, Options, Sessions, Submit, SystemClock, SystemMint,
};

type Act = Arc<dyn Fn(TurnContext) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A producer that does what a test wants.
struct Acting(Act);

impl Producer for Acting {
    fn versions(&self) -> Versions {
        Versions::default()
    }
    fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: 4,
            bytes_max: 10_000,
        }
    }
    fn run(&self, turn: TurnContext) -> BoxFuture<'static, Outcome> {
        (self.0)(turn)
    }
}

fn acting<F: Future<Output = Outcome> + Send + 'static>(
    act: impl Fn(TurnContext) -> F + Send + Sync + 'static,
) -> Act {
    Arc::new(move |turn| Box::pin(act(turn)))
}

const OK: Outcome = Outcome {
    status: TurnStatus::Ok,
    error: None,
};

fn owner(name: &str) -> Owner {
    Owner {
        tenant: TenantId(0),
        principal: name.parse().expect("a principal"),
    }
}

async fn sessions(dir: &std::path::Path, options: Options, act: Act) -> Arc<Sessions> {
    let store = StoreOptions {
        dir: dir.to_owned(),
        durability: Durability::Full,
    };
    let store = Arc::new(Sqlite::open(&store).expect("a store"));
    let writer = Writer::start(
        store,
        Reserve::new(dir.join("reserve"), 0),
        Box::new(|_| {}),
    )
    .expect("a writer");
    let parts = Parts {
        options,
        clock: Arc::new(SystemClock),
        mint: Arc::new(SystemMint),
        writer,
        interceptor: Arc::new(PassThrough),
        producer: Arc::new(Acting(act)),
    };
    Sessions::start(parts).await.expect("the service")
}

fn say(text: &str) -> Submit {
    Submit {
        content: vec![ContentBlock::text(text)],
        locale: "en".into(),
        on_disconnect: OnDisconnect::Continue,
        disconnect_grace_ms: 0,
        trace: None,
    }
}

async fn new_session(sessions: &Arc<Sessions>) -> SessionId {
    sessions
        .create(&owner("local"), NewSession::default())
        .await
        .expect("a session")
        .id
}

async fn log(sessions: &Arc<Sessions>, id: SessionId) -> Vec<Event> {
    let query = EventsQuery {
        since: None,
        types: None,
        limit: 1000,
    };
    let page = sessions
        .events(&owner("local"), id, query)
        .await
        .expect("the log");
    page.events
        .iter()
        .map(|stored| Event::read(&stored.bytes).expect("an event"))
        .collect()
}

fn names(events: &[Event]) -> Vec<&'static str> {
    let of_turn = events.iter().filter(|event| event.turn_id.is_some());
    of_turn.map(|event| event.body.kind().name()).collect()
}

/// Waits until the session has no turn, then gives its log.
async fn settled(sessions: &Arc<Sessions>, id: SessionId) -> Vec<Event> {
    for _ in 0..1000 {
        let events = log(sessions, id).await;
        if events.iter().any(|event| event.body.kind().is_terminal()) {
            return events;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!(
        "the turn never ended: {:?}",
        names(&log(sessions, id).await)
    );
}

fn ids() -> (CallId, MessageId, ToolUseId) {
    (
        CallId(SystemMint.ulid()),
        MessageId(SystemMint.ulid()),
        ToolUseId(SystemMint.ulid()),
    )
}

fn emit(turn: &TurnContext, body: Body) {
    turn.emitter
        .emit(Emission::new(Actor::ORCHESTRATOR, body))
        .expect("taken");
}

fn start_message(
    turn: &TurnContext,
    (call_id, message_id, tool_use_id): (CallId, MessageId, ToolUseId),
) {
    let purpose = CallPurpose::Orchestrate;
    emit(
        turn,
        Body::LlmCallStarted(CallStarted {
            call_id,
            model: "m".into(),
            purpose,
            attempt: 1,
            first: false,
        }),
    );
    emit(
        turn,
        Body::MessageStart(MessageStart {
            message_id,
            role: Role::Assistant,
            model: "m".into(),
        }),
    );
    emit(
        turn,
        Body::TextDelta(TextDelta {
            message_id,
            content_block_index: 0,
            text: "half an ".into(),
        }),
    );
    let tool_name = "echo".to_owned();
    emit(
        turn,
        Body::ToolUseStart(ToolUseStart {
            message_id,
            content_block_index: 1,
            tool_use_id,
            tool_name,
        }),
    );
    let partial_json = "{\"text\":\"x".to_owned();
    emit(
        turn,
        Body::ToolUseInputDelta(ToolUseInputDelta {
            message_id,
            content_block_index: 1,
            tool_use_id,
            partial_json,
        }),
    );
}

/// A message that is whole and asks for a tool, which is called.
fn call_tool(
    turn: &TurnContext,
    (call_id, message_id, tool_use_id): (CallId, MessageId, ToolUseId),
) {
    start_message(turn, (call_id, message_id, tool_use_id));
    let tools = vec![(tool_use_id, ToolType::Http)];
    let end = MessageEnd {
        call_id,
        message_id,
        stop_reason: StopReason::ToolUse,
        usage: Usage::default(),
        failure: None,
        tools,
    };
    turn.emitter.complete(end).expect("taken");
    let (tool_name, input_summary) = ("echo".to_owned(), String::new());
    emit(
        turn,
        Body::ToolCalled(Called {
            tool_use_id,
            tool_name,
            tool_type: ToolType::Http,
            input_summary,
        }),
    );
}

#[tokio::test]
async fn a_panic_ends_the_turn_once_with_everything_closed() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        start_message(&turn, ids());
        panic!("a secret in the panic");
    });
    let sessions = sessions(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = sessions
        .submit(&owner("local"), id, say("hi"))
        .await
        .expect("accepted");
    let events = settled(&sessions, id).await;
    assert_eq!(
        names(&events),
        [
            "turn.started",
            "llm.call_started",
            "llm.call_failed",
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
        .messages(&owner("local"), id, None, 10)
        .await
        .expect("messages");
    let cut = messages.last().expect("the cut message");
    assert_eq!(
        (cut.status, cut.text().as_str()),
        (MessageStatus::Failed, "half an ")
    );
    let row = sessions
        .turn(&owner("local"), accepted.turn_id)
        .await
        .expect("the turn");
    assert_eq!(row.state, TurnState::Completed);
    // The lock is free: the next turn is accepted.
    sessions
        .submit(&owner("local"), id, say("again"))
        .await
        .expect("accepted");
}

#[tokio::test]
async fn a_producer_that_does_not_let_go_is_ended_without_it_and_refused_after() {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = Arc::new(AtomicBool::new(false));
    let told = refused.clone();
    let act = acting(move |turn| {
        let told = told.clone();
        async move {
            call_tool(&turn, ids());
            // Blocks its thread: no await, so no abort can reach it.
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
            told.store(
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
            let sessions = sessions(dir.path(), Options::default(), act).await;
            let id = new_session(&sessions).await;
            let accepted = sessions
                .submit(&owner("local"), id, say("hi"))
                .await
                .expect("accepted");
            let state = sessions
                .cancel(&owner("local"), accepted.turn_id, Some("stop".into()))
                .await;
            assert_eq!(state, Ok(TurnState::Cancelling));
            let events = settled(&sessions, id).await;
            let expected = [
                "turn.started",
                "llm.call_started",
                "llm.call_completed",
                "tool.called",
                "turn.cancel_requested",
                "tool.failed",
                "turn.cancelled",
            ];
            assert_eq!(names(&events), expected);
            let Some(Body::ToolFailed(tool)) = events.iter().rev().nth(1).map(|e| e.body.clone())
            else {
                panic!("a tool")
            };
            assert_eq!((tool.tool_type, tool.called), (ToolType::Http, true));
            tokio::time::sleep(Duration::from_millis(1700)).await;
            assert!(refused.load(Ordering::SeqCst), "its late event was refused");
            assert_eq!(
                names(&log(&sessions, id).await),
                expected,
                "and is not in the log"
            );
            // A second cancel changes nothing.
            let state = sessions
                .cancel(&owner("local"), accepted.turn_id, None)
                .await;
            assert_eq!(state, Ok(TurnState::Cancelled));
        })
        .await
        .expect("the test");
    runtime.shutdown_background();
}

#[tokio::test]
async fn s3_077_a_cancel_before_the_first_call_is_the_cancel_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|_| std::future::pending());
    let sessions = sessions(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = sessions
        .submit(&owner("local"), id, say("hi"))
        .await
        .expect("accepted");
    sessions
        .cancel(&owner("local"), accepted.turn_id, None)
        .await
        .expect("taken");
    let events = settled(&sessions, id).await;
    assert_eq!(
        names(&events),
        ["turn.started", "turn.cancel_requested", "turn.cancelled"]
    );
    let Some(Body::TurnCancelled(end)) = events.last().map(|e| e.body.clone()) else {
        panic!("a terminal")
    };
    assert_eq!(
        (end.reason.as_str(), end.phase),
        ("user_cancel", turnwire_event::code::Phase::Route)
    );
}

#[tokio::test]
async fn s3_071_a_turn_that_takes_too_long_is_cancelled_by_the_system() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        start_message(&turn, ids());
        std::future::pending().await
    });
    let options = Options {
        turn_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let sessions = sessions(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    sessions
        .submit(&owner("local"), id, say("hi"))
        .await
        .expect("accepted");
    let events = settled(&sessions, id).await;
    let expected = [
        "turn.started",
        "llm.call_started",
        "turn.cancel_requested",
        "llm.call_failed",
        "turn.cancelled",
    ];
    assert_eq!(names(&events), expected);
    let Some(Body::TurnCancelled(end)) = events.last().map(|e| e.body.clone()) else {
        panic!("a terminal")
    };
    assert_eq!(end.reason, "turn_timeout");
}

#[test]
fn a_runtime_that_goes_away_leaves_no_open_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn| async move {
        start_message(&turn, ids());
        std::future::pending().await
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let (sessions, id) = runtime.block_on(async {
        let sessions = sessions(dir.path(), Options::default(), act).await;
        let id = new_session(&sessions).await;
        sessions
            .submit(&owner("local"), id, say("hi"))
            .await
            .expect("accepted");
        (sessions, id)
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    // The guard's events are on their way to the writer, whose thread is no task of the runtime.
    let again = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let events = again.block_on(async {
        for _ in 0..200 {
            let events = log(&sessions, id).await;
            if events.iter().any(|event| event.body.kind().is_terminal()) {
                return events;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        log(&sessions, id).await
    });
    assert_eq!(
        names(&events),
        [
            "turn.started",
            "llm.call_started",
            "llm.call_failed",
            "turn.completed"
        ]
    );
    let Some(Body::TurnCompleted(end)) = events.last().map(|e| e.body.clone()) else {
        panic!("a terminal")
    };
    assert_eq!(end.reason.as_deref(), Some("server_shutdown"));
}

#[tokio::test]
async fn s3_011_a_second_turn_is_told_which_one_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let sessions = sessions(
        dir.path(),
        Options::default(),
        acting(|_| std::future::pending()),
    )
    .await;
    let id = new_session(&sessions).await;
    let first = sessions
        .submit(&owner("local"), id, say("one"))
        .await
        .expect("accepted");
    let second = sessions.submit(&owner("local"), id, say("two")).await;
    assert_eq!(second, Err(Error::TurnInFlight(first.turn_id)));
}

#[tokio::test]
async fn law_10_another_owner_finds_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let sessions = sessions(
        dir.path(),
        Options::default(),
        acting(|_| std::future::pending()),
    )
    .await;
    let id = new_session(&sessions).await;
    let turn = sessions
        .submit(&owner("local"), id, say("one"))
        .await
        .expect("accepted")
        .turn_id;
    let eve = owner("eve");
    assert_eq!(
        sessions.attach(&eve, id).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        sessions.submit(&eve, id, say("x")).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        sessions.messages(&eve, id, None, 10).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        sessions.turn(&eve, turn).await.err(),
        Some(Error::TurnNotFound)
    );
    assert_eq!(
        sessions.cancel(&eve, turn, None).await.err(),
        Some(Error::TurnNotFound)
    );
    assert_eq!(
        sessions.delete(&eve, id).await.err(),
        Some(Error::SessionNotFound)
    );
    assert!(
        sessions
            .list(&eve, None, 10)
            .await
            .expect("a list")
            .0
            .is_empty()
    );
}

#[tokio::test]
async fn the_model_is_shown_a_bounded_past_and_the_turn_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let shown = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = shown.clone();
    let act = acting(move |turn| {
        let seen = seen.clone();
        async move {
            let budget = HistoryBudget {
                messages_max: 4,
                bytes_max: 10_000,
            };
            let past = turn.history.recent(budget).await.expect("a past");
            *seen.lock() = past.iter().map(turnwire_event::Message::text).collect();
            OK
        }
    });
    let sessions = sessions(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    for at in 0..7 {
        while let Err(error) = sessions
            .submit(&owner("local"), id, say(&format!("say {at}")))
            .await
        {
            assert!(matches!(error, Error::TurnInFlight(_)), "{error}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(*shown.lock(), ["say 3", "say 4", "say 5", "say 6"]);
    let starts = log(&sessions, id).await;
    let omitted: Vec<u64> = starts
        .iter()
        .filter_map(|event| match &event.body {
            Body::TurnStarted(start) => Some(start.history_omitted),
            _ => None,
        })
        .collect();
    assert_eq!(omitted, [0, 0, 0, 0, 1, 2, 3]);
}

#[tokio::test]
async fn a_deleted_session_stops_its_turn_and_is_gone() {
    let dir = tempfile::tempdir().expect("a folder");
    let sessions = sessions(
        dir.path(),
        Options::default(),
        acting(|_| std::future::pending()),
    )
    .await;
    let id = new_session(&sessions).await;
    let turn = sessions
        .submit(&owner("local"), id, say("one"))
        .await
        .expect("accepted")
        .turn_id;
    let live = sessions.live(&owner("local"), id).await.expect("a session");
    sessions.delete(&owner("local"), id).await.expect("deleted");
    assert_eq!(live.ring.closed(), Some(turnwire_hub::Closed::Deleted));
    assert_eq!(
        sessions.attach(&owner("local"), id).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        sessions.turn(&owner("local"), turn).await.err(),
        Some(Error::TurnNotFound)
    );
    assert!(
        live.catch_up(
            live.sequencer.last(),
            &Filter::full(),
            turnwire_event::fold::replay::Missed::Ends,
            10
        )
        .await
        .is_err()
    );
}

#[tokio::test]
async fn on_disconnect_cancel_waits_for_the_grace_and_for_the_last_watcher() {
    let dir = tempfile::tempdir().expect("a folder");
    let sessions = sessions(
        dir.path(),
        Options::default(),
        acting(|_| std::future::pending()),
    )
    .await;
    let id = new_session(&sessions).await;
    let submit = Submit {
        on_disconnect: OnDisconnect::Cancel,
        disconnect_grace_ms: 60,
        ..say("hi")
    };
    sessions
        .submit(&owner("local"), id, submit)
        .await
        .expect("accepted");
    let live = sessions.live(&owner("local"), id).await.expect("a session");
    let (one, two) = (live.watch(), live.watch());
    drop(one);
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(live.current_turn().is_some(), "one still watches");
    drop(two);
    let back = live.watch();
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(
        live.current_turn().is_some(),
        "someone came back within the grace"
    );
    drop(back);
    let events = settled(&sessions, id).await;
    let Some(Body::TurnCancelled(end)) = events
        .iter()
        .rev()
        .find_map(|e| matches!(e.body, Body::TurnCancelled(_)).then(|| e.body.clone()))
    else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "client_disconnected");
}
