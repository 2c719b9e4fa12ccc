//! Step 5 of a [dispatch](super::dispatch_step): emits the end of an invocation and makes its
//! result for the orchestrator's model.
//!
//! ```text
//! answer:   subagent.completed ─▶ tool.completed
//! failure:  the ends of open model calls and tools ─▶ subagent.failed ─▶ tool.failed
//! ```

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Instrument as _;
use turnwire_event::body::llm::CallFailed;
use turnwire_event::body::subagent::{SubagentCompleted, SubagentFailed};
use turnwire_event::body::tool::{ToolCompleted, ToolFailed};
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{
    AgentErrorClass, DispatchOutcome, LlmErrorClass, ToolErrorClass, ToolType,
};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{Emission, EmitRefusal};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{Actor, Body, InvocationId, ToolUseId, TraceContext, metric};
use turnwire_model::ModelMessage;
use turnwire_plan::SlotOutcome;

use super::invocation::{FailureCause, InvocationError, SubAgentAnswer};
use super::sub_agent::{BoundSubAgent, SubAgentCall};
use super::turn_spans::TurnSpans;
use crate::emitter::sub_agent_emitter::{InvocationRecord, SubAgentEmitter};
use crate::resources::agent_context::{AgentContext, EmitResult, ModelMessages, WaitMeter};
use crate::resources::message_metadata;
use crate::tool_call::tool_request::emit_declined;
use crate::tool_call::tool_result::{envelope_error, millis, tool_result};
use crate::tool_call::worker_quota::abandoned_worker_events;

/// The note in the result of a sub-agent that answered although its data service failed.
const DATA_UNAVAILABLE: &str = "Some data was not available, so this answer may lack something or \
                                be wrong. Say so in your own words; do not name causes or codes.";

/// An invocation that has not ended; [`end_invocation`] ends it.
pub(crate) struct PendingInvocation {
    pub(crate) sub_agent: Arc<BoundSubAgent>,
    pub(crate) tool_use_id: ToolUseId,
    pub(crate) tool_name: String,
    pub(crate) invocation_id: InvocationId,
    pub(crate) emitter: Arc<SubAgentEmitter>,
    pub(crate) wait_meter: Arc<WaitMeter>,
    pub(crate) started_at: Instant,
}

impl PendingInvocation {
    pub(crate) fn sub_agent_id(&self) -> &str {
        &self.sub_agent.id
    }
}

/// Whether an invocation ended with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvocationStatus {
    /// The sub-agent answered with all its data.
    Complete,
    /// The sub-agent answered, but some of its data was missing.
    Incomplete,
    /// The sub-agent gave no answer.
    Failed,
}

/// How an invocation ended, for [`TurnFailures`](super::turn_failures::TurnFailures).
pub(crate) struct InvocationOutcome {
    pub(crate) status: InvocationStatus,
    /// Failures of data services that clients were sent during the invocation.
    pub(crate) reported_errors: Vec<TurnError>,
    /// Failures of data services that no client was sent yet (see [`SubAgentEmitter::defer`]).
    pub(crate) deferred_errors: Vec<TurnError>,
}

/// The result of an invocation, from [`end_invocation`].
pub(crate) struct InvocationResult {
    /// The tool result for the orchestrator's model.
    pub(crate) message: Arc<ModelMessage>,
    pub(crate) outcome: InvocationOutcome,
    /// Tool results, as text, for the prompts of sub-agents in later turns.
    pub(crate) notes: Vec<String>,
}

/// Ends a [`PendingInvocation`] whose slot has finished with `slot_outcome`: emits its end, and
/// records the metric of the dispatch overhead, the time since `dispatch_start` without the waits
/// for models and tools.
pub(crate) async fn end_invocation(
    context: &AgentContext<'_>,
    spans: &TurnSpans,
    invocation: &PendingInvocation,
    slot_outcome: SlotOutcome<SubAgentAnswer, InvocationError>,
    dispatch_start: Instant,
) -> EmitResult<InvocationResult> {
    let trace = spans.child();
    let sub_agent_id = invocation.sub_agent_id();
    let span_id = &trace.span_id;
    let span = tracing::info_span!("dispatch.result", sub_agent_id, span_id);
    // A future that was dropped or panicked has not added its last wait to the meter.
    let is_wait_known = matches!(
        slot_outcome,
        SlotOutcome::Filled(_) | SlotOutcome::Failed(_)
    );
    let ended = close_and_emit_end(context, invocation, slot_outcome, &trace).instrument(span);
    let result = ended.await?;
    if is_wait_known {
        let waited = invocation.wait_meter.total();
        let overhead = dispatch_start.elapsed().saturating_sub(waited);
        let vertical = &invocation.sub_agent.vertical;
        let dimensions = &context.tool_context.dimensions;
        let labels = dimensions.labels_of(vertical, sub_agent_id);
        metrics::histogram!(metric::DISPATCH_OVERHEAD_SECONDS, &labels).record(overhead);
    }
    Ok(result)
}

/// Closes the emitter of the sub-agent, then emits the end of the invocation in the span `trace`.
async fn close_and_emit_end(
    context: &AgentContext<'_>,
    invocation: &PendingInvocation,
    slot_outcome: SlotOutcome<SubAgentAnswer, InvocationError>,
    trace: &Arc<TraceContext>,
) -> EmitResult<InvocationResult> {
    // From here on no event of the sub-agent gets through, even if some of its tasks still run.
    let mut record = invocation.emitter.close();
    for body in record.placeholders.take_endings() {
        let emission = Emission {
            trace: Some(Arc::clone(trace)),
            ..Emission::new(Actor::subagent(invocation.sub_agent_id()), body)
        };
        context.deliver(emission).await?;
    }
    let (status, answer) = match slot_outcome {
        SlotOutcome::Filled(answer) => (InvocationStatus::Complete, Ok(answer)),
        SlotOutcome::Failed(InvocationError::Incomplete(answer)) => {
            (InvocationStatus::Incomplete, Ok(answer))
        }
        // Only the session refuses events, and only when it ends the turn itself.
        SlotOutcome::Failed(InvocationError::Refused) => return Err(EmitRefusal::Ended),
        SlotOutcome::Failed(InvocationError::Failed(cause)) => {
            (InvocationStatus::Failed, Err(cause))
        }
        SlotOutcome::Panicked => (InvocationStatus::Failed, Err(FailureCause::Panicked)),
        SlotOutcome::TimedOut => (InvocationStatus::Failed, Err(FailureCause::TimedOut)),
    };
    let result_emitter = ResultEmitter {
        context,
        invocation,
        trace,
    };
    let (message, notes) = match answer {
        Ok(answer) => {
            let message = result_emitter.complete(status, &answer, &record).await?;
            (message, answer.notes)
        }
        Err(cause) => {
            log_failure(context, invocation, cause);
            let class = cause.class();
            (result_emitter.fail(class, &record).await?, Vec::new())
        }
    };
    Ok(InvocationResult {
        message,
        outcome: InvocationOutcome {
            status,
            reported_errors: record.errors,
            deferred_errors: record.deferred_faults.iter().map(envelope_error).collect(),
        },
        notes,
    })
}

/// Logs why a sub-agent gave no answer: clients are sent the class alone (D-83).
fn log_failure(context: &AgentContext<'_>, invocation: &PendingInvocation, cause: FailureCause) {
    let tool_context = context.tool_context;
    tracing::warn!(
        trace_id = invocation.emitter.span().trace_id,
        session_id = %tool_context.session_id,
        turn_id = %tool_context.turn_id,
        sub_agent_id = invocation.sub_agent_id(),
        invocation_id = %invocation.invocation_id,
        latency_ms = millis(invocation.started_at.elapsed()),
        cause = cause.name(),
        "a sub-agent gave no answer"
    );
}

/// The message that stores `result`, the tool result of the sub-agent `id`. Only the orchestrator
/// may read it.
fn private_message(context: &AgentContext<'_>, id: &str, result: &ModelMessage) -> NewMessage {
    let metadata = message_metadata::of_sub_agent(id);
    context.new_message(
        result.role,
        result.content.clone(),
        metadata,
        MessageScope::Private,
    )
}

/// Declines each of `calls` without running its sub-agent: emits `tool.failed` with `class`, and
/// returns `reason` as the tool result for the orchestrator's model.
pub(crate) async fn decline_sub_agents(
    context: &AgentContext<'_>,
    calls: Vec<SubAgentCall>,
    (class, reason): (ToolErrorClass, &str),
) -> EmitResult<ModelMessages> {
    let mut results = Vec::with_capacity(calls.len());
    for (request, sub_agent) in calls {
        let result = tool_result(request.id, Err(reason.into()));
        let message = private_message(context, &sub_agent.id, &result);
        emit_declined(context, &request, class, message).await?;
        results.push(Arc::new(result));
    }
    Ok(results)
}

/// The part that the results of all invocations have: the composing model is told of each
/// sub-agent how it ended (S2-031).
fn outcome_record(sub_agent_id: &str, outcome: &str) -> Value {
    json!({"sub_agent_id": sub_agent_id, "outcome": outcome})
}

/// Emits the events that end one invocation.
struct ResultEmitter<'a> {
    context: &'a AgentContext<'a>,
    invocation: &'a PendingInvocation,
    /// The span of the events.
    trace: &'a Arc<TraceContext>,
}

impl ResultEmitter<'_> {
    /// Emits the end of an invocation with an `answer`, and returns the tool result.
    async fn complete(
        &self,
        status: InvocationStatus,
        answer: &SubAgentAnswer,
        record: &InvocationRecord,
    ) -> EmitResult<Arc<ModelMessage>> {
        let invocation = self.invocation;
        let (outcome, outcome_name) = match status {
            InvocationStatus::Complete => (DispatchOutcome::Success, "success"),
            InvocationStatus::Incomplete | InvocationStatus::Failed => {
                (DispatchOutcome::StatusError, "status_error")
            }
        };
        let subagent_completed = Body::SubagentCompleted(SubagentCompleted {
            invocation_id: invocation.invocation_id,
            sub_agent_id: invocation.sub_agent_id().to_owned(),
            tool_use_id: invocation.tool_use_id,
            outcome,
            latency_ms: millis(invocation.started_at.elapsed()),
            status_events: record.status_count,
        });
        self.emit(self.sub_agent_actor(), subagent_completed, None)
            .await?;
        let mut content = outcome_record(invocation.sub_agent_id(), outcome_name);
        content["text"] = json!(answer.text);
        content["components"] = json!(record.components);
        if answer.has_caveat {
            content["caveat"] = Value::Bool(true);
        }
        if status == InvocationStatus::Incomplete {
            content["note"] = json!(DATA_UNAVAILABLE);
        }
        let json = content.to_string();
        let tool_completed = Body::ToolCompleted(ToolCompleted {
            upstream_id: None,
            tool_use_id: invocation.tool_use_id,
            tool_name: invocation.tool_name.clone(),
            tool_type: ToolType::SubAgent,
            duration_ms: millis(invocation.started_at.elapsed()),
            // Only the orchestrator may read the answer (D-46).
            result_summary: format!("{outcome_name}, {} bytes", json.len()),
            result_sha256: sha256_hex(json.as_bytes()),
        });
        self.emit_tool_end(tool_completed, Ok(content)).await
    }

    /// Emits the end of an invocation without an answer, and returns the tool result.
    async fn fail(
        &self,
        class: AgentErrorClass,
        record: &InvocationRecord,
    ) -> EmitResult<Arc<ModelMessage>> {
        let invocation = self.invocation;
        self.end_open_work(class, record).await?;
        let subagent_failed = Body::SubagentFailed(SubagentFailed {
            invocation_id: invocation.invocation_id,
            sub_agent_id: invocation.sub_agent_id().to_owned(),
            tool_use_id: invocation.tool_use_id,
            latency_ms: millis(invocation.started_at.elapsed()),
            error_class: class,
            status_events: record.status_count,
        });
        self.emit(self.sub_agent_actor(), subagent_failed, None)
            .await?;
        let tool_failed = Body::ToolFailed(ToolFailed {
            upstream_id: None,
            tool_use_id: invocation.tool_use_id,
            tool_name: invocation.tool_name.clone(),
            tool_type: ToolType::SubAgent,
            error_class: tool_error_class(class),
            // The session sets this: it knows whether the log has the `tool.called`.
            called: false,
        });
        let reason = format!(
            "The {} assistant could not answer. Say so in your own words; do not name causes or \
             codes.",
            invocation.sub_agent_id()
        );
        let mut content = outcome_record(invocation.sub_agent_id(), "failure");
        content["note"] = json!(reason);
        self.emit_tool_end(tool_failed, Err(content)).await
    }

    /// Emits the end of each model call and tool that the sub-agent left open, before the
    /// sub-agent's own end: whatever starts inside a sub-agent ends inside it.
    async fn end_open_work(&self, class: AgentErrorClass, record: &InvocationRecord) -> EmitResult {
        for (call_id, usage) in &record.open_calls {
            // The call was dropped before it could pay for itself.
            self.context.budget.spend(*usage);
            let failed = Body::LlmCallFailed(CallFailed {
                call_id: *call_id,
                usage: *usage,
                message_id: None,
                content_sha256: None,
                error_class: match class {
                    AgentErrorClass::Timeout => LlmErrorClass::Timeout,
                    _ => LlmErrorClass::Internal,
                },
            });
            self.emit(self.sub_agent_actor(), failed, None).await?;
        }
        let error_class = tool_error_class(class);
        for tool in &record.open_tools {
            let id_and_type = (tool.id, tool.tool_type);
            let tool_context = self.context.tool_context;
            let events = abandoned_worker_events(tool_context, id_and_type, error_class).await;
            for (actor, body) in events {
                self.emit(actor, body, None).await?;
            }
            let failed = Body::ToolFailed(ToolFailed {
                upstream_id: None,
                tool_use_id: tool.id,
                tool_name: tool.name.clone(),
                tool_type: tool.tool_type,
                error_class,
                called: false,
            });
            let emission = Emission {
                trace: Some(Arc::clone(self.trace)),
                sub_agent_id: Some(self.invocation.sub_agent_id().into()),
                ..Emission::new(Actor::tool(&tool.name), failed)
            };
            self.context.deliver(emission).await?;
        }
        Ok(())
    }

    /// Emits `body`, the end of the tool use that started the invocation, and stores and returns
    /// its tool result.
    async fn emit_tool_end(
        &self,
        body: Body,
        result: Result<Value, Value>,
    ) -> EmitResult<Arc<ModelMessage>> {
        let result = tool_result(self.invocation.tool_use_id, result);
        let message = private_message(self.context, self.invocation.sub_agent_id(), &result);
        let actor = Actor::tool(&self.invocation.tool_name);
        self.emit(actor, body, Some(message)).await?;
        Ok(Arc::new(result))
    }

    fn sub_agent_actor(&self) -> Actor {
        Actor::subagent(self.invocation.sub_agent_id())
    }

    async fn emit(&self, actor: Actor, body: Body, message: Option<NewMessage>) -> EmitResult {
        let emission = Emission {
            message,
            trace: Some(Arc::clone(self.trace)),
            ..Emission::new(actor, body)
        };
        self.context.deliver(emission).await.map(|_| ())
    }
}

const fn tool_error_class(class: AgentErrorClass) -> ToolErrorClass {
    match class {
        AgentErrorClass::Timeout => ToolErrorClass::Timeout,
        AgentErrorClass::Cancelled => ToolErrorClass::Cancelled,
        AgentErrorClass::Instantiation
        | AgentErrorClass::Model
        | AgentErrorClass::Tool
        | AgentErrorClass::Internal => ToolErrorClass::Internal,
    }
}
