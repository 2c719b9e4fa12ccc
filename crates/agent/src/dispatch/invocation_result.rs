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

use super::invocation::{InvocationError, SubAgentAnswer};
use super::sub_agent::{BoundSubAgent, SubAgentCall};
use super::turn_spans::TurnSpans;
use crate::emitter::sub_agent_emitter::{InvocationRecord, SubAgentEmitter};
use crate::resources::agent_context::{AgentContext, EmitResult, ModelMessages, WaitMeter};
use crate::resources::message_metadata;
use crate::tool_call::tool_request::emit_declined;
use crate::tool_call::tool_result::{envelope_error, millis, tool_result};
use crate::tool_call::worker_quota::abandoned_worker_events;

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
        let definition = &context.tool_context.definition;
        let labels = metric::dimensions_of(definition, vertical, sub_agent_id);
        let overhead_ms = overhead.as_secs_f64() * 1_000.0;
        metrics::histogram!(metric::DISPATCH_OVERHEAD_MS, &labels).record(overhead_ms);
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
    let record = invocation.emitter.close();
    let (status, answer) = match slot_outcome {
        SlotOutcome::Filled(answer) => (InvocationStatus::Complete, Ok(answer)),
        SlotOutcome::Failed(InvocationError::Incomplete(answer)) => {
            (InvocationStatus::Incomplete, Ok(answer))
        }
        // Only the session refuses events, and only when it ends the turn itself.
        SlotOutcome::Failed(InvocationError::Refused) => return Err(EmitRefusal::Ended),
        SlotOutcome::Failed(InvocationError::Failed(class)) => {
            (InvocationStatus::Failed, Err(class))
        }
        SlotOutcome::Panicked => {
            let sub_agent_id = invocation.sub_agent_id();
            tracing::error!(sub_agent_id, "a sub-agent panicked");
            (InvocationStatus::Failed, Err(AgentErrorClass::Internal))
        }
        SlotOutcome::TimedOut => (InvocationStatus::Failed, Err(AgentErrorClass::Timeout)),
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
        Err(class) => (result_emitter.fail(class, &record).await?, Vec::new()),
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

/// Declines each of `calls` without running its sub-agent: emits `tool.failed`, and returns
/// `reason` as the tool result for the orchestrator's model.
pub(crate) async fn decline_sub_agents(
    context: &AgentContext<'_>,
    calls: Vec<SubAgentCall>,
    reason: &str,
) -> EmitResult<ModelMessages> {
    let mut results = Vec::with_capacity(calls.len());
    for (request, sub_agent) in calls {
        let result = tool_result(request.id, Err(reason.to_owned()));
        let message = private_message(context, &sub_agent.id, &result);
        emit_declined(context, &request, ToolErrorClass::InvalidInput, message).await?;
        results.push(Arc::new(result));
    }
    Ok(results)
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
        let mut content = json!({"text": answer.text, "components": record.components});
        if answer.has_caveat {
            content["caveat"] = Value::Bool(true);
        }
        let json = content.to_string();
        let tool_completed = Body::ToolCompleted(ToolCompleted {
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
        self.emit_tool_end(tool_failed, Err(reason)).await
    }

    /// Emits the end of each model call and tool that the sub-agent left open, before the
    /// sub-agent's own end: whatever starts inside a sub-agent ends inside it.
    async fn end_open_work(&self, class: AgentErrorClass, record: &InvocationRecord) -> EmitResult {
        for call_id in &record.open_calls {
            let failed = Body::LlmCallFailed(CallFailed {
                call_id: *call_id,
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
                tool_use_id: tool.id,
                tool_name: tool.name.clone(),
                tool_type: tool.tool_type,
                error_class,
                called: false,
            });
            self.emit(Actor::tool(&tool.name), failed, None).await?;
        }
        Ok(())
    }

    /// Emits `body`, the end of the tool use that started the invocation, and stores and returns
    /// its tool result.
    async fn emit_tool_end(
        &self,
        body: Body,
        result: Result<Value, String>,
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
