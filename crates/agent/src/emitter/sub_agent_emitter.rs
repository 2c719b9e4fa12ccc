//! The emitter of one sub-agent in one invocation.
//!
//! [`SubAgentEmitter`] passes events on to the turn's emitter, in the span of the invocation, and
//! keeps an [`InvocationRecord`]: what is open and what was shown. Once the emitter is closed,
//! nothing of the sub-agent gets through, even if some of its tasks still run; the record says what
//! was left open.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::ToolType;
use turnwire_event::port::{BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, MessageEnd};
use turnwire_event::{Body, CallId, ContentBlock, Position, ToolUseId, TraceContext};
use turnwire_tool::ServiceFault;

/// A tool with a `tool.called` and no end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenTool {
    pub(crate) id: ToolUseId,
    pub(crate) name: String,
    pub(crate) tool_type: ToolType,
}

/// What a sub-agent has done so far in one invocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct InvocationRecord {
    /// The number of status events, shown or not.
    pub(crate) status_count: u32,
    last_shown: Option<ShownStatus>,
    /// The data and components shown to the user: types and ids.
    pub(crate) components: Vec<Value>,
    /// The errors that were reported to clients.
    pub(crate) errors: Vec<TurnError>,
    /// Failures of data services that were not reported (see [`SubAgentEmitter::defer`]).
    pub(crate) deferred_faults: Vec<ServiceFault>,
    /// Model calls in flight.
    pub(crate) open_calls: Vec<CallId>,
    pub(crate) open_tools: Vec<OpenTool>,
}

/// A status that the user may have been shown; [`SubAgentEmitter::last_shown`] returns the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownStatus {
    /// Counts the shown statuses of the invocation, from 1.
    pub(crate) number: u32,
    pub(crate) at: Instant,
}

/// An [`EventEmitter`] for one sub-agent that can be closed.
pub(crate) struct SubAgentEmitter {
    inner: Arc<dyn EventEmitter>,
    span: Arc<TraceContext>,
    /// The status ids that users are shown; the gate drops all others.
    shown_status_ids: Vec<String>,
    /// Notified when a shown status is emitted. The watchdog of the invocation waits on it, through
    /// [`Self::status_shown`].
    status_shown: Notify,
    /// `None` once closed. Locked while an event is passed on, so that no event gets through after
    /// [`Self::close`] has returned.
    record: Mutex<Option<InvocationRecord>>,
}

impl SubAgentEmitter {
    pub(crate) fn new(
        inner: Arc<dyn EventEmitter>,
        span: Arc<TraceContext>,
        shown_status_ids: Vec<String>,
    ) -> Self {
        Self {
            inner,
            span,
            shown_status_ids,
            status_shown: Notify::new(),
            record: Mutex::new(Some(InvocationRecord::default())),
        }
    }

    /// The last status that the user may have been shown.
    pub(crate) fn last_shown(&self) -> Option<ShownStatus> {
        let record = self.record.lock();
        record.as_ref().and_then(|record| record.last_shown)
    }

    /// Completes when a status is emitted that the user may be shown, at once if one was emitted
    /// since the last call. For a single waiter.
    pub(crate) async fn status_shown(&self) {
        self.status_shown.notified().await;
    }

    /// True if the sub-agent has shown the user data or a component.
    pub(crate) fn has_components(&self) -> bool {
        let record = self.record.lock();
        record
            .as_ref()
            .is_some_and(|record| !record.components.is_empty())
    }

    /// Keeps a [`ServiceFault`] in the record instead of reporting it to clients.
    pub(crate) fn defer(&self, fault: ServiceFault) {
        if let Some(record) = self.record.lock().as_mut() {
            record.deferred_faults.push(fault);
        }
    }

    /// Refuses all further events and returns the [`InvocationRecord`].
    pub(crate) fn close(&self) -> InvocationRecord {
        self.record.lock().take().unwrap_or_default()
    }

    pub(crate) fn span(&self) -> &Arc<TraceContext> {
        &self.span
    }
}

impl InvocationRecord {
    fn apply(&mut self, update: RecordUpdate) {
        match update {
            RecordUpdate::HiddenStatus => self.status_count += 1,
            RecordUpdate::ShownStatus => {
                self.status_count += 1;
                self.last_shown = Some(ShownStatus {
                    number: self.last_shown.map_or(0, |last| last.number) + 1,
                    at: Instant::now(),
                });
            }
            RecordUpdate::Component(component) => self.components.push(component),
            RecordUpdate::Error(error) => self.errors.push(error),
            RecordUpdate::CallStarted(id) => self.open_calls.push(id),
            RecordUpdate::CallEnded(id) => self.open_calls.retain(|open| *open != id),
            RecordUpdate::ToolStarted(tool) => self.open_tools.push(tool),
            RecordUpdate::ToolEnded(id) => self.open_tools.retain(|open| open.id != id),
        }
    }
}

/// How an event changes an [`InvocationRecord`].
enum RecordUpdate {
    HiddenStatus,
    ShownStatus,
    Component(Value),
    Error(TurnError),
    CallStarted(CallId),
    CallEnded(CallId),
    ToolStarted(OpenTool),
    ToolEnded(ToolUseId),
}

fn update_of(body: &Body, shown_status_ids: &[String]) -> Option<RecordUpdate> {
    Some(match body {
        Body::StatusEmitted(status) if shown_status_ids.contains(&status.event_id) => {
            RecordUpdate::ShownStatus
        }
        Body::StatusEmitted(_) => RecordUpdate::HiddenStatus,
        Body::DataLoaded(data) => {
            let ids: Vec<&str> = data.key.ids.iter().map(|item| item.id.as_str()).collect();
            RecordUpdate::Component(json!({"type": data.data_type, "ids": ids}))
        }
        Body::ComponentRendered(rendered) => {
            let text = |key: &str| rendered.component.get(key).and_then(Value::as_str);
            let name = rendered.tool_call.name.as_str();
            let kind = text("type").unwrap_or(name.strip_prefix("render_").unwrap_or(name));
            let ids: Vec<&str> = text("id").into_iter().collect();
            RecordUpdate::Component(json!({"type": kind, "ids": ids}))
        }
        Body::ErrorReported(error) => RecordUpdate::Error(error.clone()),
        Body::LlmCallStarted(call) => RecordUpdate::CallStarted(call.call_id),
        Body::LlmCallCompleted(call) => RecordUpdate::CallEnded(call.call_id),
        Body::LlmCallFailed(call) => RecordUpdate::CallEnded(call.call_id),
        Body::ToolCalled(tool) => RecordUpdate::ToolStarted(OpenTool {
            id: tool.tool_use_id,
            name: tool.tool_name.clone(),
            tool_type: tool.tool_type,
        }),
        Body::ToolCompleted(tool) => RecordUpdate::ToolEnded(tool.tool_use_id),
        Body::ToolFailed(tool) => RecordUpdate::ToolEnded(tool.tool_use_id),
        _ => return None,
    })
}

impl EventEmitter for SubAgentEmitter {
    fn emit(&self, mut emission: Emission) -> Result<Position, EmitError> {
        let mut record = self.record.lock();
        let Some(record) = record.as_mut() else {
            return Err(EmitRefusal::Ended.into());
        };
        if emission.trace.is_none() {
            emission.trace = Some(Arc::clone(&self.span));
        }
        let update = update_of(&emission.body, &self.shown_status_ids);
        let position = self.inner.emit(emission)?;
        if let Some(update) = update {
            if let RecordUpdate::ShownStatus = update {
                self.status_shown.notify_one();
            }
            record.apply(update);
        }
        Ok(position)
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        let record = self.record.lock();
        if record.is_none() {
            return Err(EmitRefusal::Ended);
        }
        self.inner.complete(end)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.inner.ready()
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        self.inner.committed(at)
    }
}
