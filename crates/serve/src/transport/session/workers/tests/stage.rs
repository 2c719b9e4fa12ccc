//! SessionService whose turns do as a test says.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::task::TaskTracker;
use turnwire_event::body::delegate;
use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::stream::{MessageStart, TextDelta};
use turnwire_event::code::{CallPurpose, FailureMode, OnBusy, OnDisconnect, Origin, TurnStatus};
use turnwire_event::port::{
    BoundTurn as Binding, Emission, EventGate, GateOutput, HistoryBudget, MessageEnd, TurnContext,
    TurnInput, TurnOutcome, TurnProducer,
};
use turnwire_event::row::RowChange;
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, Event, FilterSpec, IdGenerator as _, MessageId, Owner, Role,
    SessionId, StopReason, TenantId, TokenUsage, ToolUseId,
};
use turnwire_identity::Authenticator;
use turnwire_log::reserve::DiskReserve;
use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
use turnwire_log::{EventDraft, LogWriter, OutboxRoom};
use turnwire_session::{
    DisconnectScope, LiveSession, NewSession, Options as SessionOptions, ServiceParts,
    SessionService, SubmitRequest, SubmitTarget as In, SystemClock, SystemIdGenerator,
};

use crate::access::attach_tokens::AttachTokens;
use crate::access::live_identity::LiveIdentities;
use crate::config::{ServerConfig, SettingSources};

use super::super::super::super::{CountersByVersion, ServerPhase, StreamLimits, Streams};

/// What a turn is told to do.
type Deed = Box<dyn FnOnce(&TurnContext) + Send>;

/// Turns that do what they are told, by session.
#[derive(Default)]
struct Puppets(Arc<Mutex<HashMap<SessionId, UnboundedSender<Deed>>>>);

struct Through;

impl EventGate for Through {
    fn take(&mut self, emission: Emission, _: std::time::Instant, out: GateOutput<'_>) {
        out(emission, None);
    }
    fn due(&self) -> Option<std::time::Instant> {
        None
    }
    fn flush(&mut self, _: GateOutput<'_>) {}
}

impl TurnProducer for Puppets {
    fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: 4,
            bytes_max: 10_000,
        }
    }

    fn bind(&self, input: &TurnInput) -> Binding {
        let (send, deeds) = unbounded_channel();
        self.0.lock().insert(input.session_id, send);
        Binding {
            experiment_arm: String::new(),
            verticals: Default::default(),
            versions: turnwire_event::body::turn::BoundVersions::default(),
            history: self.history(),
            relayed_to: None,
            gate: Box::new(Through),
            work: Box::new(move |turn| Box::pin(act(turn, deeds))),
        }
    }
}

async fn act(turn: TurnContext, mut deeds: UnboundedReceiver<Deed>) -> TurnOutcome {
    while let Some(deed) = deeds.recv().await {
        deed(&turn);
    }
    TurnOutcome {
        cancelled: None,
        status: TurnStatus::Ok,
        error: None,
        reason: None,
    }
}

/// The service and what viewers share.
pub(super) struct Stage {
    pub(super) sessions: SessionService,
    pub(super) streams: Arc<Streams>,
    puppets: Arc<Mutex<HashMap<SessionId, UnboundedSender<Deed>>>>,
}

/// A session with a turn that does what it is told.
pub(super) struct Acting {
    pub(super) live: Arc<LiveSession>,
    deeds: Option<UnboundedSender<Deed>>,
}

pub(super) fn owner() -> Owner {
    Owner {
        tenant: TenantId(0),
        principal: "local".parse().expect("a principal"),
    }
}

pub(super) fn with_workers() -> FilterSpec {
    FilterSpec {
        include_worker_sessions: true,
        ..FilterSpec::default()
    }
}

impl Stage {
    pub(super) async fn new(dir: &std::path::Path) -> Self {
        Self::with(dir, SessionOptions::default(), 64).await
    }

    pub(super) async fn with(
        dir: &std::path::Path,
        options: SessionOptions,
        workers_max: usize,
    ) -> Self {
        let store = SqliteOptions {
            dir: dir.to_owned(),
            durability: CommitDurability::Full,
        };
        let store = Arc::new(SqliteStore::open(&store).expect("a store"));
        let reserve = DiskReserve::new(dir.join("reserve"), 0);
        let puppets = Puppets::default();
        let hands = puppets.0.clone();
        let parts = ServiceParts {
            options,
            clock: Arc::new(SystemClock),
            id_generator: Arc::new(SystemIdGenerator),
            store: store.clone(),
            writer: LogWriter::start(store, reserve, Box::new(|_| {})).expect("a writer"),
            producer: Arc::new(puppets),
            tracer: None,
        };
        let sessions = SessionService::start(parts).await.expect("the service");
        let sources = SettingSources {
            home: Some(dir.to_owned()),
            ..SettingSources::default()
        };
        let mut settings = ServerConfig::load(&sources).expect("defaults").stream;
        settings.workers_max = workers_max;
        let authenticator = Arc::new(Authenticator::open(Arc::new(SystemClock)));
        let streams = Streams {
            attach_tokens: Arc::new(AttachTokens::new(Duration::ZERO, 1, 1)),
            identities: Arc::new(LiveIdentities::new(authenticator)),
            sessions: sessions.live_sessions(),
            canceller: sessions.canceller(),
            quotas: sessions.quotas(),
            settings,
            phase: ServerPhase::default(),
            events_sent: metrics::Counter::noop(),
            next_connection: AtomicU64::new(1),
            tasks: TaskTracker::new(),
            connections: crate::listen::OwnerShares::new(1, 1),
            transfers: crate::listen::OwnerShares::transfers(1, 1, 1 << 20),
            stream_limits: StreamLimits::new(1),
            tracer: None,
            turn_counters: CountersByVersion::default(),
            lag_max: AtomicU64::new(0),
        };
        Self {
            sessions,
            streams: Arc::new(streams),
            puppets: hands,
        }
    }

    /// A session at work, as a worker of another if one is named.
    pub(super) async fn acting(&self, parent: Option<SessionId>) -> Acting {
        let row = self
            .sessions
            .writer()
            .create(&owner(), NewSession::default())
            .await;
        let mut row = row.expect("a session");
        let live = self
            .sessions
            .live_sessions()
            .open(&owner(), row.id)
            .await
            .expect("alive");
        if parent.is_some() {
            row.parent = parent;
            live.ring
                .with_state_mut(|transcript| transcript.row.parent = parent);
            let body = Body::FeedbackRecorded(feedback());
            let mut draft = EventDraft::new(None, Actor::USER, body);
            draft.rows = vec![RowChange::SessionPut(Box::new(row))];
            let emitted = live.sequencer.emit_one(draft, OutboxRoom::Reserved);
            let (at, _) = emitted.expect("taken");
            live.sequencer.committed(at.seq).await.expect("written");
        }
        self.work(live).await
    }

    /// Gives a session a turn.
    pub(super) async fn work(&self, live: Arc<LiveSession>) -> Acting {
        let me = owner();
        let submitter = self.sessions.submitter();
        let submitted = submitter.submit(&me, In::Existing(live.id), say("go"), None);
        submitted.await.expect("accepted");
        let deeds = soon(|| self.puppets.lock().remove(&live.id)).await;
        let acting = Acting {
            live,
            deeds: Some(deeds),
        };
        acting.settled().await;
        acting
    }
}

/// Waits until there is something.
pub(super) async fn soon<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..20_000 {
        match look() {
            Some(found) => return found,
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
    panic!("nothing came in 20 s")
}

impl Acting {
    pub(super) fn id(&self) -> SessionId {
        self.live.id
    }

    /// Does something in the turn, and waits until it is done and everything is released.
    pub(super) async fn act(&self, deed: impl FnOnce(&TurnContext) + Send + 'static) {
        let (done, is_done) = tokio::sync::oneshot::channel();
        let deed: Deed = Box::new(move |turn| {
            deed(turn);
            let _ = done.send(());
        });
        let deeds = self.deeds.as_ref().expect("at work");
        deeds.send(deed).map_err(drop).expect("at work");
        is_done.await.expect("done");
        self.settled().await;
    }

    async fn settled(&self) {
        let last = self.live.sequencer.last();
        self.live
            .sequencer
            .committed(last.seq)
            .await
            .expect("written");
        soon(|| (self.live.tail() >= last).then_some(())).await;
    }

    async fn emit(&self, actor: Actor, body: Body) {
        self.act(move |turn| {
            let emission = Emission::new(actor, body);
            turn.emitter.emit(emission).expect("taken");
        })
        .await;
    }

    pub(super) async fn delegates(&self, worker: SessionId) {
        let started = delegate::DelegateStarted {
            worker_session_id: worker,
            tool_use_id: ToolUseId(SystemIdGenerator.ulid()),
            task_summary: "work".into(),
        };
        let body = Body::DelegateStarted(started);
        self.emit(Actor::worker(worker), body).await;
    }

    pub(super) async fn has_done(&self, worker: SessionId, success: bool) {
        let body = if success {
            Body::DelegateCompleted(delegate::DelegateCompleted {
                worker_session_id: worker,
                success,
                summary: String::new(),
            })
        } else {
            Body::DelegateFailed(delegate::DelegateFailed {
                worker_session_id: worker,
                failure_mode: FailureMode::Error,
            })
        };
        self.emit(Actor::worker(worker), body).await;
    }

    /// Starts a message; `Half::end` ends it.
    pub(super) async fn begins_to_say(&self, text: &str) -> Half {
        let half = Half {
            call_id: CallId(SystemIdGenerator.ulid()),
            message_id: MessageId(SystemIdGenerator.ulid()),
        };
        let (call, start) = (
            Body::LlmCallStarted(CallStarted {
                call_id: half.call_id,
                model: "m".into(),
                purpose: CallPurpose::Orchestrate,
                attempt: 1,
                first: false,
            }),
            Body::MessageStart(MessageStart {
                message_id: half.message_id,
                role: Role::Assistant,
                model: "m".into(),
            }),
        );
        self.emit(Actor::ORCHESTRATOR, call).await;
        self.emit(Actor::ORCHESTRATOR, start).await;
        self.says(half, text).await;
        half
    }

    /// More of a message.
    pub(super) async fn says(&self, half: Half, text: &str) {
        for word in text.split_inclusive(' ') {
            let delta = TextDelta {
                message_id: half.message_id,
                content_block_index: 0,
                text: word.into(),
            };
            self.emit(Actor::ORCHESTRATOR, Body::TextDelta(delta)).await;
        }
    }

    /// The end of a message.
    pub(super) async fn has_said(&self, half: Half) {
        self.act(move |turn| {
            let end = MessageEnd {
                provider_state: turnwire_event::ProviderState::default(),
                provider_response_id: None,
                call_id: half.call_id,
                message_id: half.message_id,
                stop_reason: StopReason::EndTurn,
                usage: TokenUsage::default(),
                failure: None,
                tools: Vec::new(),
            };
            turn.emitter.complete(end).expect("taken");
        })
        .await;
    }

    /// Ends the turn.
    pub(super) async fn ends(&mut self) {
        self.deeds = None;
        soon(|| self.live.current_turn().is_none().then_some(())).await;
        self.settled().await;
    }

    /// Its whole log.
    pub(super) async fn log(&self, stage: &Stage) -> Vec<Event> {
        let query = turnwire_session::EventLogQuery {
            since: None,
            types: None,
            limit: 1000,
            bytes_max: usize::MAX,
        };
        let page = stage
            .sessions
            .reader()
            .events(&owner(), self.id(), query)
            .await;
        let events = page.expect("the log").events;
        let read = |stored: &turnwire_session::StoredEvent| Event::read(&stored.bytes);
        events.iter().map(|e| read(e).expect("an event")).collect()
    }
}

/// A message in flight.
#[derive(Clone, Copy)]
pub(super) struct Half {
    call_id: CallId,
    message_id: MessageId,
}

fn feedback() -> turnwire_event::body::feedback::FeedbackRecorded {
    serde_json::from_value(serde_json::json!({"rating": "up"})).expect("a rating")
}

fn say(text: &str) -> SubmitRequest {
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
        origin: Origin::Chat,
        dm_type: None,
    }
}
