//! The [`Tool`] trait: a name, a schema, and a future that is stopped by being dropped. Beside it
//! what a running tool uses: its [`ToolContext`], the [`ItemStore`] and [`deliver()`].

mod live_task;
mod item_store;
mod context;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::{Reason, ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, Emission, EmitRefusal, EventEmitter};
use turnwire_event::{Actor, Body, Position, SpanId, ToolUseId, TraceContext};

pub use context::ToolContext;
pub use item_store::ItemStore;
pub use live_task::LiveTask;
pub use turnwire_event::port::deliver;

pub(crate) use item_store::json_bytes;

/// One call of a [`Tool`] by a model.
#[derive(Clone)]
pub struct ToolInvocation {
    /// The id of the tool use in the model's message.
    pub tool_use_id: ToolUseId,
    /// The input that the model wrote: always an object, otherwise unchecked.
    pub input: Value,
    /// Accepts the events of the tool; see [`deliver()`].
    pub emitter: Arc<dyn EventEmitter>,
    /// The turn that the tool works for.
    pub context: Arc<ToolContext>,
}

impl ToolInvocation {
    /// Emits `body` in the span of the call, as soon as the outbox has room.
    pub(crate) async fn emit(&self, actor: Actor, body: Body) -> Result<Position, EmitRefusal> {
        let emission = Emission {
            trace: self.context.trace.clone(),
            ..Emission::new(actor, body)
        };
        deliver(&*self.emitter, emission).await
    }

    /// The trace of the turn of a worker that the call delegates to: below the span of the tool.
    pub(crate) fn worker_trace(&self) -> TraceContext {
        TraceContext {
            trace_id: self.context.trace_id(),
            span_id: SpanId::of_worker(self.tool_use_id).to_string(),
            parent_span_id: Some(SpanId::of_tool(self.tool_use_id).to_string()),
        }
    }

    /// The trace headers of a request that the tool sends; none unless this server exports spans.
    pub(crate) fn trace_headers(&self) -> Vec<(&'static str, String)> {
        let propagation = &self.context.propagation;
        match propagation.is_exporting {
            false => Vec::new(),
            true => {
                let span = SpanId::of_tool(self.tool_use_id);
                propagation.headers(&self.context.trace_id(), span)
            }
        }
    }
}

/// A failure of a data service: the pair of labels that dashboards join on (S1-145).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFault {
    /// The enricher that the tool asked.
    pub enricher_id: String,
    /// The reason, in the codes of the envelope contract.
    pub reason: Reason,
}

/// Why a [`Tool`] returned no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class:?}: {message}")]
pub struct ToolFailure {
    /// The error class in `tool.failed`.
    pub class: ToolErrorClass,
    /// The message for the model: no error text of a library, no host and no path.
    pub message: String,
    /// The data service that failed, if one did (axis 2). Boxed: results carry this type by value.
    pub fault: Option<Box<ServiceFault>>,
    /// The calling sub-agent fails with the tool (axis 1, S2-089). Otherwise its model gets the
    /// message and may try something else.
    pub fatal: bool,
}

impl ToolFailure {
    /// A failure that the model may work around.
    pub fn new(class: ToolErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            fault: None,
            fatal: false,
        }
    }

    /// The input is not valid; `message` says what would be.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ToolErrorClass::InvalidInput, message)
    }

    /// Fails with [`Self::invalid_input`] unless `is_valid`.
    pub(crate) fn require<M: Into<String>>(
        is_valid: bool,
        message: impl FnOnce() -> M,
    ) -> Result<(), Self> {
        let error = || Self::invalid_input(message());
        is_valid.then_some(()).ok_or_else(error)
    }

    /// The tool, its program or its service failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ToolErrorClass::Internal, message)
    }

    /// The turn refused an event, so nothing was `done`.
    pub(crate) fn refused(done: &str, refusal: EmitRefusal) -> Self {
        Self::new(ToolErrorClass::Cancelled, format!("Not {done}: {refusal}."))
    }

    /// The same failure, and the calling sub-agent fails with it.
    #[must_use]
    pub fn fatal(self) -> Self {
        Self {
            fatal: true,
            ..self
        }
    }
}

/// A tool that a model can call. Tools of a pack are made by [`build_toolbox`](crate::build_toolbox).
pub trait Tool: Send + Sync {
    /// The name, unique in a [`crate::Toolbox`].
    fn name(&self) -> &str;

    /// The description for the model.
    fn description(&self) -> &str;

    /// The JSON Schema of the input.
    fn input_schema(&self) -> Value;

    /// The type in `tool.called`.
    fn tool_type(&self) -> ToolType {
        ToolType::Function
    }

    /// The time limit; `None` for the agent's own.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// The status that a person sees while the tool runs.
    fn status(&self) -> Option<&str> {
        None
    }

    /// Whether the result is kept for sub-agents of later turns.
    fn remember(&self) -> bool {
        false
    }

    /// Whether a person must approve each call.
    fn approval(&self) -> bool {
        false
    }

    /// False if a call only reads, or acts inside of its turn alone. Such a call may begin before its
    /// `tool.called` is durable: a crash leaves nothing behind that the log would have to name.
    fn has_effects(&self) -> bool {
        true
    }

    /// The name of the MCP server that has the tool.
    fn server(&self) -> Option<&str> {
        None
    }

    /// Checks `input` against the compiled schema; `None` if the tool has not compiled it.
    fn check_input(&self, _input: &Value) -> Option<Result<(), ToolFailure>> {
        None
    }

    /// Runs the tool. Nothing happens before the future is polled, and dropping it stops the work;
    /// a request that a data service has received goes on, and its response is dropped (S1-110).
    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>>;
}
