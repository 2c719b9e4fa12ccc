//! The emitter of one sub-agent in one invocation.
//!
//! [`SubAgentEmitter`] passes events on to the turn's emitter, in the span of the invocation, names
//! the invocation in statuses, and keeps an [`InvocationRecord`]: what is open and what was shown.
//! Once the emitter is closed, nothing of the sub-agent gets through, even if some of its tasks still
//! run; the record says what was left open.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::ToolType;
use turnwire_event::port::{
    BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, MeasuredSpan, MessageEnd,
};
use turnwire_event::{
    ActorKind, Body, CallId, ContentBlock, InvocationId, Position, TokenUsage, ToolUseId,
    TraceContext,
};
use turnwire_tool::ServiceFault;

use super::open_placeholders::OpenPlaceholders;

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
    /// The data and components shown to the user: types, and ids and items as far as
    /// `component_bytes_left` allows.
    pub(crate) components: Vec<Value>,
    /// The bytes of ids and items that `components` may still grow by.
    component_bytes_left: usize,
    pub(crate) placeholders: OpenPlaceholders,
    /// The errors that were reported to clients.
    pub(crate) errors: Vec<TurnError>,
    /// Failures of data services that were not reported (see [`SubAgentEmitter::defer`]).
    pub(crate) deferred_faults: Vec<ServiceFault>,
    /// Model calls in flight, with what each has used so far.
    pub(crate) open_calls: Vec<(CallId, TokenUsage)>,
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
    sub_agent_id: Arc<str>,
    invocation_id: InvocationId,
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
        (sub_agent_id, invocation_id): (&str, InvocationId),
        span: Arc<TraceContext>,
        shown_status_ids: Vec<String>,
        component_bytes_max: usize,
    ) -> Self {
        Self {
            inner,
            sub_agent_id: sub_agent_id.into(),
            invocation_id,
            span,
            shown_status_ids,
            status_shown: Notify::new(),
            record: Mutex::new(Some(InvocationRecord {
                component_bytes_left: component_bytes_max,
                ..InvocationRecord::default()
            })),
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
            RecordUpdate::Component(component, bytes) => {
                self.components.push(component);
                self.component_bytes_left = self.component_bytes_left.saturating_sub(bytes);
            }
            RecordUpdate::Error(error) => self.errors.push(error),
            RecordUpdate::CallStarted(id) => self.open_calls.push((id, TokenUsage::default())),
            RecordUpdate::CallEnded(id) => self.open_calls.retain(|(open, _)| *open != id),
            RecordUpdate::ToolStarted(tool) => self.open_tools.push(tool),
            RecordUpdate::ToolEnded(id) => self.open_tools.retain(|open| open.id != id),
        }
    }
}

/// How an event changes an [`InvocationRecord`].
enum RecordUpdate {
    HiddenStatus,
    ShownStatus,
    /// A component, and the bytes of its ids and items.
    Component(Value, usize),
    Error(TurnError),
    CallStarted(CallId),
    CallEnded(CallId),
    ToolStarted(OpenTool),
    ToolEnded(ToolUseId),
}

fn update_of(
    body: &Body,
    shown_status_ids: &[String],
    component_bytes_left: usize,
) -> Option<RecordUpdate> {
    Some(match body {
        Body::StatusEmitted(status) if shown_status_ids.contains(&status.event_id) => {
            RecordUpdate::ShownStatus
        }
        Body::StatusEmitted(_) => RecordUpdate::HiddenStatus,
        Body::DataLoaded(data) if !data.items.is_empty() => {
            let ids: Vec<&str> = data.key.ids.iter().map(|item| item.id.as_str()).collect();
            component(&data.data_type, &ids, &data.items, component_bytes_left)
        }
        Body::ComponentRendered(rendered) => {
            let text = |key: &str| rendered.component.get(key).and_then(Value::as_str);
            let name = rendered.tool_call.name.as_str();
            let kind = text("type").unwrap_or(name.strip_prefix("render_").unwrap_or(name));
            let ids: Vec<&str> = text("id").into_iter().collect();
            let items = std::slice::from_ref(&rendered.component);
            component(kind, &ids, items, component_bytes_left)
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

/// What was shown, for the orchestrator's model (S2-014): the ids that fit into `bytes_max`, then the
/// items that fit into the rest. `omitted` counts the items that do not.
fn component(data_type: &str, ids: &[&str], items: &[Value], bytes_max: usize) -> RecordUpdate {
    let mut bytes = 0;
    let mut fits = |value: &Value| {
        let value_bytes = value.to_string().len();
        let fits = bytes + value_bytes <= bytes_max;
        bytes += if fits { value_bytes } else { 0 };
        fits
    };
    let ids = ids.iter().map(|id| Value::from(*id));
    let sent_ids: Vec<Value> = ids.filter(|id| fits(id)).collect();
    let sent_items: Vec<&Value> = items.iter().filter(|item| fits(item)).collect();
    let mut component = json!({"type": data_type, "ids": sent_ids, "items": sent_items});
    if sent_items.len() < items.len() {
        component["omitted"] = json!(items.len() - sent_items.len());
    }
    RecordUpdate::Component(component, bytes)
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
        if emission.actor.kind() == ActorKind::Tool {
            emission.sub_agent_id = Some(Arc::clone(&self.sub_agent_id));
        }
        if let Body::StatusEmitted(status) = &mut emission.body {
            status.invocation_id = Some(self.invocation_id);
        }
        let bytes_left = record.component_bytes_left;
        let update = update_of(&emission.body, &self.shown_status_ids, bytes_left);
        let placeholder = OpenPlaceholders::concerns(&emission.body).then(|| emission.body.clone());
        let position = self.inner.emit(emission)?;
        if let Some(body) = placeholder {
            record.placeholders.apply(&body);
        }
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

    fn report_usage(&self, call_id: CallId, usage: TokenUsage) {
        if let Some(record) = self.record.lock().as_mut() {
            let mut calls = record.open_calls.iter_mut();
            if let Some((_, reported)) = calls.find(|(open, _)| *open == call_id) {
                *reported = usage;
            }
            self.inner.report_usage(call_id, usage);
        }
    }

    /// Passed on also after the end of the sub-agent: the span has its own times.
    fn record_span(&self, span: MeasuredSpan) {
        self.inner.record_span(span);
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.inner.ready()
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        self.inner.committed(at)
    }
}
