//! A test harness for turns: a model made of a function or a script, tools made of functions, and a
//! recording emitter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::BoxStream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::code::TurnKind;
use turnwire_event::port::{
    BoxFuture, EventEmitter, HistoryBudget, HistoryError, HistoryReader, ResumeInput, TurnContext,
    TurnInput, TurnOutcome,
};
use turnwire_event::{
    ContentBlock, EpisodeId, IdGenerator, Message, MessageId, MessageStatus, Owner, Role,
    SessionId, TenantId, Timestamp, TurnId, Ulid,
};
use turnwire_model::{
    Delta, ModelError, ModelProvider, ModelRequest, ModelScript, ScriptedProvider,
};
use turnwire_tool::{Tool, ToolFailure, ToolInvocation, Toolbox};

use super::recording_emitter::RecordingEmitter;
use crate::options::AgentOptions;
use crate::standalone_agent::StandaloneAgent;

/// Counts ids: 1, 2, 3 …
#[derive(Default)]
pub(super) struct CountingIdGenerator(AtomicU64);

impl IdGenerator for CountingIdGenerator {
    fn ulid(&self) -> Ulid {
        Ulid(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// A fixed history.
pub(super) struct FixedHistory(pub(super) Result<Vec<Message>, HistoryError>);

impl HistoryReader for FixedHistory {
    fn recent(&self, _: HistoryBudget) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        let past = self.0.clone();
        Box::pin(async move { past })
    }

    fn of_agent(
        &self,
        _: &str,
        _: HistoryBudget,
    ) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A provider that records its requests.
pub(super) struct RecordingProvider {
    pub(super) requests: Mutex<Vec<ModelRequest>>,
    inner: Box<dyn Fn(ModelRequest) -> BoxStream<'static, Result<Delta, ModelError>> + Send + Sync>,
}

impl RecordingProvider {
    pub(super) fn new(
        model: impl Fn(ModelRequest) -> BoxStream<'static, Result<Delta, ModelError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            requests: Mutex::default(),
            inner: Box::new(model),
        }
    }
}

impl ModelProvider for RecordingProvider {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Delta, ModelError>> {
        self.requests.lock().push(request.clone());
        (self.inner)(request)
    }
}

/// A tool made of a function.
pub(super) struct FunctionTool<F> {
    name: &'static str,
    approval: bool,
    work: F,
}

impl<F> Tool for FunctionTool<F>
where
    F: Fn(ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> + Send + Sync,
{
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "does what a test says"
    }

    fn input_schema(&self) -> Value {
        if self.approval {
            return json!({"type": "object", "properties": {"cents": {"type": "integer"}}});
        }
        json!({"type": "object"})
    }

    fn approval(&self) -> bool {
        self.approval
    }

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        (self.work)(call)
    }
}

/// One turn that is ready to run.
pub(super) struct TurnHarness {
    pub(super) recorder: Arc<RecordingEmitter>,
    pub(super) provider: Arc<RecordingProvider>,
    pub(super) toolbox: Toolbox,
    pub(super) options: AgentOptions,
    pub(super) past: FixedHistory,
    /// The answers of the paused turn that it resumes.
    pub(super) resumed: Option<ResumeInput>,
    pub(super) kind: TurnKind,
}

impl TurnHarness {
    /// A turn whose model is a function.
    pub(super) fn of(
        model: impl Fn(ModelRequest) -> BoxStream<'static, Result<Delta, ModelError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            recorder: Arc::default(),
            provider: Arc::new(RecordingProvider::new(model)),
            toolbox: Toolbox::new(),
            options: AgentOptions::default(),
            past: FixedHistory(Ok(Vec::new())),
            resumed: None,
            kind: TurnKind::Chat,
        }
    }

    /// A turn whose model plays a script.
    pub(super) fn script(yaml: &str) -> Self {
        let model = ScriptedProvider::new(ModelScript::parse("test.yaml", yaml).expect("a script"));
        Self::of(move |request| model.stream(request))
    }

    /// Adds a tool.
    pub(super) fn tool<F, W>(self, name: &'static str, work: F) -> Self
    where
        F: Fn(ToolInvocation) -> W + Send + Sync + 'static,
        W: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
    {
        self.put(name, false, work)
    }

    /// Adds a tool that needs approval.
    pub(super) fn tool_with_approval<F, W>(self, name: &'static str, work: F) -> Self
    where
        F: Fn(ToolInvocation) -> W + Send + Sync + 'static,
        W: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
    {
        self.put(name, true, work)
    }

    fn put<F, W>(mut self, name: &'static str, approval: bool, work: F) -> Self
    where
        F: Fn(ToolInvocation) -> W + Send + Sync + 'static,
        W: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
    {
        let work = move |call| -> BoxFuture<'static, _> { Box::pin(work(call)) };
        let tool = Arc::new(FunctionTool {
            name,
            approval,
            work,
        });
        self.toolbox = self.toolbox.with(tool).expect("a new name");
        self
    }

    /// Replaces the emitter.
    pub(super) fn record(mut self, recorder: RecordingEmitter) -> Self {
        self.recorder = Arc::new(recorder);
        self
    }

    /// The future of the turn.
    pub(super) fn run(self) -> BoxFuture<'static, TurnOutcome> {
        let agent = StandaloneAgent::new(
            self.options,
            self.provider,
            self.toolbox,
            Arc::new(CountingIdGenerator::default()),
        );
        let mut input = input();
        if self.resumed.is_some() {
            input.content.clear();
        }
        input.resumed = self.resumed;
        input.kind = self.kind;
        (agent.assemble(&input).work)(TurnContext {
            delegate: Arc::new(turnwire_event::port::NoChildTasks),
            child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
            input,
            emitter: self.recorder as Arc<dyn EventEmitter>,
            history: Arc::new(self.past),
        })
    }
}

pub(super) fn input() -> TurnInput {
    TurnInput {
        dm_type: String::new(),
        agent: None,
        resumed: None,
        cost_usd: 0.0,
        kind: TurnKind::Chat,
        session_id: SessionId(Ulid(1)),
        turn_id: TurnId(Ulid(2)),
        owner: Owner {
            tenant: TenantId(0),
            principal: "local".parse().expect("a principal"),
        },
        locale: "en".into(),
        content: vec![ContentBlock::text("hi")],
        metadata: turnwire_event::JsonObject::default(),
        location: None,
        episode_id: EpisodeId(Ulid(3)),
        trace: None,
        propagation: Default::default(),
        turn_timeout: Duration::from_secs(600),
    }
}

pub(super) fn message(turn: u128, role: Role, content: Vec<ContentBlock>) -> Message {
    Message {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(Ulid(9)),
        session_id: SessionId(Ulid(1)),
        turn_id: TurnId(Ulid(turn)),
        role,
        status: MessageStatus::Complete,
        content,
        model: None,
        omitted_bytes: None,
        stop_reason: None,
        usage: None,
        created_at: Timestamp::default(),
        metadata: turnwire_event::JsonObject::default(),
    }
}
