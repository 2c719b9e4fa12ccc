//! Helpers for tests of turns: the real service over a real store, with producers that run functions
//! of the test.

#![allow(unreachable_pub, missing_docs, reason = "only tests see it")]

mod answers;
mod asking;
mod calls;
mod delegating;
mod holding;
mod messages;
mod producer;
mod turnstile;
mod working;

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::stream::{MessageStart, TextDelta, ToolUseInputDelta, ToolUseStart};
use turnwire_event::body::tool::ToolCalled;
use turnwire_event::code::{CallPurpose, OnBusy, OnDisconnect, ToolType, TurnState, TurnStatus};
use turnwire_event::port::{Emission, MessageEnd, TurnContext, TurnOutcome, TurnProducer};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, Event, IdGenerator, MessageId, Owner, Role, SessionId,
    StopReason, TenantId, TokenUsage, ToolUseId, TurnId,
};
use turnwire_log::reserve::DiskReserve;
use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
use turnwire_log::{LogWriter, Store};
use turnwire_session::ServiceParts;
use turnwire_session::{
    DisconnectScope, Error, EventLogQuery, NewSession, Options, SessionService, SubmitRequest,
    SubmitTarget, SubmittedTurn, SystemClock, SystemIdGenerator,
};

pub use answers::{
    approval_service, approvals_of, approve, decide, pause_turn, reject, resolved_approvals,
    resuming_turns, tool_states, with_metadata,
};
pub use asking::{TurnRecorder, approval_producer, request_approvals};
pub use calls::{call_as_sub_agent, call_started, stream_message, usage_of};
pub use delegating::{LONG_LIMIT, announce_worker, delegate_task, report_worker_end};
pub use holding::{holding_gates, status};
pub use messages::{LARGE_BUDGET, emit_note, message_texts, new_message, run_tool};
pub use producer::{GateFactory, TestProducer, WorkFn, pass_through_gates, producer_fn};
pub use turnstile::{Turnstile, cancel_on_disconnect, submit_attended_turn, turnstile_service};
pub use working::{
    WorkerEnds, counting_worker, delegating_producer, event_named, hanging_worker, wait_for_worker,
};

pub const OK: TurnOutcome = TurnOutcome {
    cancelled: None,
    reason: None,
    status: TurnStatus::Ok,
    error: None,
};

pub fn owner(name: &str) -> Owner {
    Owner {
        tenant: TenantId(0),
        principal: name.parse().expect("a principal"),
    }
}

pub async fn start_service(dir: &std::path::Path, options: Options, act: WorkFn) -> SessionService {
    let reserve = DiskReserve::new(dir.join("reserve"), 0);
    start_service_with(dir, options, act, (Arc::new(SystemIdGenerator), reserve)).await
}

pub async fn start_service_with(
    dir: &std::path::Path,
    options: Options,
    act: WorkFn,
    parts: (Arc<dyn IdGenerator>, DiskReserve),
) -> SessionService {
    service_with_producer(
        dir,
        options,
        parts,
        Arc::new(TestProducer(act, pass_through_gates())),
    )
    .await
}

/// Starts the service with a gate for each turn.
pub async fn service_with_gates(
    dir: &std::path::Path,
    gates: GateFactory,
    act: WorkFn,
) -> SessionService {
    let parts = (
        Arc::new(SystemIdGenerator) as Arc<dyn IdGenerator>,
        DiskReserve::new(dir.join("reserve"), 0),
    );
    service_with_producer(
        dir,
        Options::default(),
        parts,
        Arc::new(TestProducer(act, gates)),
    )
    .await
}

/// Starts the service with a producer of the test.
pub async fn service_with_producer(
    dir: &std::path::Path,
    options: Options,
    (id_generator, reserve): (Arc<dyn IdGenerator>, DiskReserve),
    producer: Arc<dyn TurnProducer>,
) -> SessionService {
    service_over(writer(dir, reserve), options, id_generator, producer).await
}

pub fn writer(dir: &std::path::Path, reserve: DiskReserve) -> (Arc<dyn Store>, Arc<LogWriter>) {
    let store = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Full,
    };
    let store = Arc::new(SqliteStore::open(&store).expect("a store"));
    let writer = LogWriter::start(store.clone(), reserve, Box::new(|_| {}));
    (store, writer.expect("a writer"))
}

/// Starts the service over a writer that the test controls.
pub async fn service_over(
    (store, writer): (Arc<dyn Store>, Arc<LogWriter>),
    options: Options,
    id_generator: Arc<dyn IdGenerator>,
    producer: Arc<dyn TurnProducer>,
) -> SessionService {
    let parts = ServiceParts {
        options,
        clock: Arc::new(SystemClock),
        id_generator,
        store,
        writer,
        producer,
        tracer: None,
    };
    SessionService::start(parts).await.expect("the service")
}

pub fn text_request(text: &str) -> SubmitRequest {
    SubmitRequest {
        content: vec![ContentBlock::text(text)],
        locale: "en".into(),
        on_disconnect: OnDisconnect::Continue,
        disconnect_grace_ms: 0,
        trace: None,
        propagation: Default::default(),
        on_busy: OnBusy::Reject,
        wire_version: "0.5".into(),
        metadata: turnwire_event::JsonObject::default(),
        location: None,
        disconnect_scope: DisconnectScope::Session,
        origin: turnwire_event::code::Origin::Chat,
        dm_type: None,
    }
}

/// Submits a turn to a session, without a key.
pub async fn submit(
    sessions: &SessionService,
    of: &Owner,
    id: SessionId,
    submit: SubmitRequest,
) -> Result<SubmittedTurn, Error> {
    sessions
        .submitter()
        .submit(of, SubmitTarget::Existing(id), submit, None)
        .await
}

pub async fn new_session(sessions: &SessionService) -> SessionId {
    sessions
        .writer()
        .create(&owner("local"), NewSession::default())
        .await
        .expect("a session")
        .id
}

pub async fn read_log(sessions: &SessionService, id: SessionId) -> Vec<Event> {
    let query = EventLogQuery {
        since: None,
        types: None,
        limit: 1000,
        bytes_max: 16 << 20,
    };
    let page = sessions
        .reader()
        .events(&owner("local"), id, query)
        .await
        .expect("the log");
    page.events
        .iter()
        .map(|stored| Event::read(&stored.bytes).expect("an event"))
        .collect()
}

pub fn event_names(events: &[Event]) -> Vec<&'static str> {
    let of_turn = events.iter().filter(|event| event.turn_id.is_some());
    of_turn.map(|event| event.body.kind().name()).collect()
}

/// Copies the store to another folder, as a crash leaves it: with everything committed so far.
pub fn copy_store(dir: &std::path::Path) -> tempfile::TempDir {
    let image = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_owned();
        // SQLite rebuilds the index of the write-ahead log from the log, as after a crash.
        if name.to_string_lossy().starts_with("turnwire")
            && !name.to_string_lossy().ends_with("-shm")
        {
            std::fs::copy(&path, image.path().join(name)).expect("a copy");
        }
    }
    image
}

/// Waits until the session's log has `turns` terminals, and returns the log.
pub async fn wait_for_terminals(
    sessions: &SessionService,
    id: SessionId,
    turns: usize,
) -> Vec<Event> {
    for _ in 0..2000 {
        let events = read_log(sessions, id).await;
        let ended = events
            .iter()
            .filter(|event| event.body.kind().is_terminal());
        if ended.count() >= turns {
            return events;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!(
        "{turns} turns never ended: {:?}",
        event_names(&read_log(sessions, id).await)
    );
}

/// The input texts of the started turns, in order.
pub fn started_inputs(events: &[Event]) -> Vec<String> {
    let texts = events.iter().filter_map(|event| match &event.body {
        Body::TurnStarted(start) => start.input.first().and_then(ContentBlock::as_text),
        _ => None,
    });
    texts.map(str::to_owned).collect()
}

/// Law 1 for a log: every started turn has one terminal, the last event of the turn.
pub fn assert_each_ends_once(events: &[Event]) {
    let mut ended = std::collections::HashSet::new();
    let mut open = std::collections::HashSet::new();
    for event in events {
        let Some(turn) = event.turn_id else { continue };
        assert!(!ended.contains(&turn), "{turn} goes on after its terminal");
        match &event.body {
            Body::TurnStarted(_) => assert!(open.insert(turn), "{turn} starts twice"),
            body if body.kind().is_terminal() => {
                assert!(open.remove(&turn), "{turn} ends without having started");
                ended.insert(turn);
            }
            _ => assert!(open.contains(&turn), "{turn} has not started"),
        }
    }
    assert!(open.is_empty(), "{open:?} never ended");
}

/// Waits for the first terminal, and returns the log.
pub async fn wait_for_end(sessions: &SessionService, id: SessionId) -> Vec<Event> {
    for _ in 0..1000 {
        let events = read_log(sessions, id).await;
        if events.iter().any(|event| event.body.kind().is_terminal()) {
            return events;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!(
        "the turn never ended: {:?}",
        event_names(&read_log(sessions, id).await)
    );
}

/// Waits until the session's log has an event of this name.
pub async fn wait_for_event(sessions: &SessionService, id: SessionId, name: &str) {
    for _ in 0..4000 {
        if event_names(&read_log(sessions, id).await).contains(&name) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{name} never came");
}

pub fn ids() -> (CallId, MessageId, ToolUseId) {
    (
        CallId(SystemIdGenerator.ulid()),
        MessageId(SystemIdGenerator.ulid()),
        ToolUseId(SystemIdGenerator.ulid()),
    )
}

pub fn emit(turn: &TurnContext, body: Body) {
    turn.emitter
        .emit(Emission::new(Actor::ORCHESTRATOR, body))
        .expect("accepted");
}

pub fn start_message(
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

/// Emits a complete message that uses a tool, and the call of the tool.
pub fn call_tool(
    turn: &TurnContext,
    (call_id, message_id, tool_use_id): (CallId, MessageId, ToolUseId),
) {
    start_message(turn, (call_id, message_id, tool_use_id));
    let tools = vec![(tool_use_id, ToolType::Http)];
    let end = MessageEnd {
        provider_state: turnwire_event::ProviderState::default(),
        provider_response_id: None,
        call_id,
        message_id,
        stop_reason: StopReason::ToolUse,
        usage: TokenUsage::default(),
        failure: None,
        tools,
    };
    turn.emitter.complete(end).expect("accepted");
    let (tool_name, input_summary) = ("echo".to_owned(), String::new());
    emit(
        turn,
        Body::ToolCalled(ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type: ToolType::Http,
            input_summary,
        }),
    );
}

pub fn request_on_busy(on_busy: OnBusy, text: &str) -> SubmitRequest {
    SubmitRequest {
        on_busy,
        ..text_request(text)
    }
}

pub async fn enqueue(sessions: &SessionService, id: SessionId, text: &str) -> SubmittedTurn {
    let accepted = submit(
        sessions,
        &owner("local"),
        id,
        request_on_busy(OnBusy::Enqueue, text),
    )
    .await;
    accepted.expect("accepted")
}

pub async fn turn_state(sessions: &SessionService, turn: TurnId) -> TurnState {
    let row = sessions.reader().turn(&owner("local"), turn).await;
    row.expect("a turn").state
}

pub fn terminal_of(events: &[Event], turn: TurnId) -> &Body {
    let mut ends = events.iter().filter(|event| event.turn_id == Some(turn));
    let end = ends.find(|event| event.body.kind().is_terminal());
    &end.expect("a terminal").body
}
