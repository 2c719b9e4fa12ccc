//! Step 5 of a dispatch: the result of an invocation, emitted and given to the orchestrator's
//! model. Calls and tools that the sub-agent left open are ended first.

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
    pub(crate) started: Instant,
}

impl PendingInvocation {
    pub(crate) fn sub_agent_id(&self) -> &str {
        &self.sub_agent.id
    }
}

/// How an invocation ended, for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotStatus {
    /// With a complete answer.
    Complete,
    /// With an answer that lacks data.
    Incomplete,
    Failed,
}

/// The failures of an invocation.
pub(crate) struct SlotFailures {
    pub(crate) status: SlotStatus,
    /// Failures of data services that were reported to clients.
    pub(crate) reported: Vec<TurnError>,
    /// Failures of data services that were deferred.
    pub(crate) deferred: Vec<TurnError>,
}

/// The result of an invocation.
pub(crate) struct InvocationResult {
    /// The result for the orchestrator's model.
    pub(crate) message: Arc<ModelMessage>,
    pub(crate) failures: SlotFailures,
    /// Results that are retained for later turns.
    pub(crate) notes: Vec<String>,
}

/// Ends a [`PendingInvocation`]: emits its end and records the overhead of the dispatch, measured
/// from `dispatch_start`.
pub(crate) async fn end_invocation(
    context: &AgentContext<'_>,
    spans: &TurnSpans,
    invocation: &PendingInvocation,
    ended: SlotOutcome<SubAgentAnswer, InvocationError>,
    dispatch_start: Instant,
) -> EmitResult<InvocationResult> {
    let trace = spans.child();
    let sub_agent_id = invocation.sub_agent_id();
    let span_id = &trace.span_id;
    let span = tracing::info_span!("dispatch.result", sub_agent_id, span_id);
    // An invocation that was dropped was waiting, and its waiting time is unknown.
    let is_measured = matches!(ended, SlotOutcome::Filled(_) | SlotOutcome::Failed(_));
    let emitted = emit_end(context, invocation, ended, &trace).instrument(span);
    let result = emitted.await?;
    if is_measured {
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

async fn emit_end(
    context: &AgentContext<'_>,
    invocation: &PendingInvocation,
    ended: SlotOutcome<SubAgentAnswer, InvocationError>,
    trace: &Arc<TraceContext>,
) -> EmitResult<InvocationResult> {
    // From here on no event of the sub-agent gets through, even if some of its tasks still run.
    let record = invocation.emitter.close();
    let (status, answer) = match ended {
        SlotOutcome::Filled(answer) => (SlotStatus::Complete, Ok(answer)),
        SlotOutcome::Failed(InvocationError::Incomplete(answer)) => {
            (SlotStatus::Incomplete, Ok(answer))
        }
        // Only the session refuses, and it ends the turn itself.
        SlotOutcome::Failed(InvocationError::Refused) => return Err(EmitRefusal::Ended),
        SlotOutcome::Failed(InvocationError::Failed(class)) => (SlotStatus::Failed, Err(class)),
        SlotOutcome::Panicked => {
            let sub_agent_id = invocation.sub_agent_id();
            tracing::error!(sub_agent_id, "a sub-agent panicked");
            (SlotStatus::Failed, Err(AgentErrorClass::Internal))
        }
        SlotOutcome::TimedOut => (SlotStatus::Failed, Err(AgentErrorClass::Timeout)),
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
        failures: SlotFailures {
            status,
            reported: record.errors,
            deferred: record.deferred_faults.iter().map(envelope_error).collect(),
        },
        notes,
    })
}

/// A result of the sub-agent `id` that only the orchestrator may read.
fn private_result(context: &AgentContext<'_>, id: &str, result: &ModelMessage) -> NewMessage {
    let metadata = message_metadata::of_sub_agent(id);
    context.new_message(
        result.role,
        result.content.clone(),
        metadata,
        MessageScope::Private,
    )
}

/// Gives each of `calls`, which are not executed, `reason` as its result.
pub(crate) async fn decline_sub_agents(
    context: &AgentContext<'_>,
    calls: Vec<SubAgentCall>,
    reason: &str,
) -> EmitResult<ModelMessages> {
    let mut results = Vec::with_capacity(calls.len());
    for (request, sub_agent) in calls {
        let result = tool_result(request.id, Err(reason.to_owned()));
        let message = private_result(context, &sub_agent.id, &result);
        emit_declined(context, &request, ToolErrorClass::InvalidInput, message).await?;
        results.push(Arc::new(result));
    }
    Ok(results)
}

/// Emits the end of one invocation.
struct ResultEmitter<'a> {
    context: &'a AgentContext<'a>,
    invocation: &'a PendingInvocation,
    trace: &'a Arc<TraceContext>,
}

impl ResultEmitter<'_> {
    async fn complete(
        &self,
        status: SlotStatus,
        answer: &SubAgentAnswer,
        record: &InvocationRecord,
    ) -> EmitResult<Arc<ModelMessage>> {
        let invocation = self.invocation;
        let (outcome, outcome_name) = match status {
            SlotStatus::Complete => (DispatchOutcome::Success, "success"),
            SlotStatus::Incomplete | SlotStatus::Failed => {
                (DispatchOutcome::StatusError, "status_error")
            }
        };
        let completed = Body::SubagentCompleted(SubagentCompleted {
            invocation_id: invocation.invocation_id,
            sub_agent_id: invocation.sub_agent_id().to_owned(),
            tool_use_id: invocation.tool_use_id,
            outcome,
            latency_ms: millis(invocation.started.elapsed()),
            status_events: record.status_count,
        });
        self.emit(self.sub_agent(), completed, None).await?;
        let mut content = json!({"text": answer.text, "components": record.components});
        if answer.has_caveat {
            content["caveat"] = Value::Bool(true);
        }
        let json = content.to_string();
        let completed = Body::ToolCompleted(ToolCompleted {
            tool_use_id: invocation.tool_use_id,
            tool_name: invocation.tool_name.clone(),
            tool_type: ToolType::SubAgent,
            duration_ms: millis(invocation.started.elapsed()),
            // Only the orchestrator may read the answer (D-46).
            result_summary: format!("{outcome_name}, {} bytes", json.len()),
            result_sha256: sha256_hex(json.as_bytes()),
        });
        self.emit_tool_end(completed, Ok(content)).await
    }

    async fn fail(
        &self,
        class: AgentErrorClass,
        record: &InvocationRecord,
    ) -> EmitResult<Arc<ModelMessage>> {
        let invocation = self.invocation;
        self.end_open_work(class, record).await?;
        let failed = Body::SubagentFailed(SubagentFailed {
            invocation_id: invocation.invocation_id,
            sub_agent_id: invocation.sub_agent_id().to_owned(),
            tool_use_id: invocation.tool_use_id,
            latency_ms: millis(invocation.started.elapsed()),
            error_class: class,
            status_events: record.status_count,
        });
        self.emit(self.sub_agent(), failed, None).await?;
        let failed = Body::ToolFailed(ToolFailed {
            tool_use_id: invocation.tool_use_id,
            tool_name: invocation.tool_name.clone(),
            tool_type: ToolType::SubAgent,
            error_class: tool_error_class(class),
            // Set by the session, which sees the whole turn.
            called: false,
        });
        let for_model = format!(
            "The {} assistant could not answer. Say so in your own words; do not name causes or \
             codes.",
            invocation.sub_agent_id()
        );
        self.emit_tool_end(failed, Err(for_model)).await
    }

    /// Ends the calls and tools that were left open: every pair is closed before its parent.
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
            self.emit(self.sub_agent(), failed, None).await?;
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

    /// Emits the end of the tool use that started the invocation, with its result.
    async fn emit_tool_end(
        &self,
        body: Body,
        result: Result<Value, String>,
    ) -> EmitResult<Arc<ModelMessage>> {
        let result = tool_result(self.invocation.tool_use_id, result);
        let message = private_result(self.context, self.invocation.sub_agent_id(), &result);
        let actor = Actor::tool(&self.invocation.tool_name);
        self.emit(actor, body, Some(message)).await?;
        Ok(Arc::new(result))
    }

    fn sub_agent(&self) -> Actor {
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
