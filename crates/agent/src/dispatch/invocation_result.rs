//! Step 5 of a dispatch: what came back from a sub-agent, told to the log and to the model that
//! asked. Whatever the sub-agent left open is ended before it is.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Instrument as _;
use turnwire_event::body::llm::CallFailed;
use turnwire_event::body::subagent::{Completed, Failed as SubagentFailed};
use turnwire_event::body::tool::{Completed as ToolCompleted, Failed as ToolFailed};
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{
    AgentErrorClass, DispatchOutcome, LlmErrorClass, ToolErrorClass, ToolType,
};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{Emission, Refusal};
use turnwire_event::row::{NewMessage, Scope};
use turnwire_event::{
    Actor, Body, ContentBlock, InvocationId, MessageId, Mint, Role, ToolUseId, Trace, metric,
};
use turnwire_model::Said;
use turnwire_plan::Ended;

use crate::dispatch::invocation::{Answer, Miss};
use crate::dispatch::sub_agent::Member;
use crate::dispatch::turn_spans::Spans;
use crate::emitter::sub_agent_emitter::{Trail, Voice};
use crate::resources::agent_resources::{self, Desk, Meter};
use crate::tool_call::execute::{Use, error_of, millis, result as told};
use crate::tool_call::turn_workers;

/// A sub-agent that was asked and has not answered.
pub(crate) struct Asked {
    pub(crate) member: Arc<Member>,
    pub(crate) tool_use_id: ToolUseId,
    pub(crate) tool_name: String,
    pub(crate) invocation_id: InvocationId,
    pub(crate) voice: Arc<Voice>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) begun: Instant,
}

impl Asked {
    pub(crate) fn id(&self) -> &str {
        &self.member.id
    }
}

/// How a slot ended, for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// With all that was wanted.
    Filled,
    /// With an answer that lacks data.
    Short,
    /// With nothing.
    Failed,
}

/// What failed in a slot.
pub(crate) struct Failed {
    pub(crate) slot: Slot,
    /// Failures of data services that clients were told.
    pub(crate) told: Vec<TurnError>,
    /// Those they were not.
    pub(crate) kept: Vec<TurnError>,
}

/// What came back.
pub(crate) struct Back {
    /// What the orchestrator's model is told.
    pub(crate) said: Arc<Said>,
    pub(crate) failed: Failed,
    /// What is kept for later turns.
    pub(crate) notes: Vec<String>,
}

/// Ends an invocation; gives what came back of it.
pub(crate) async fn result(
    desk: &Desk<'_>,
    spans: &Spans,
    one: &Asked,
    ended: Ended<Answer, Miss>,
    parsed: Instant,
) -> Result<Back, Refusal> {
    let trace = spans.child();
    let span_id = &trace.span_id;
    let span = tracing::info_span!("dispatch.result", sub_agent_id = one.id(), span_id);
    // One that was cut was cut while it waited; how long for is not known.
    let measured = matches!(ended, Ended::Filled(_) | Ended::Failed(_));
    let back = conclude(desk, one, ended, &trace).instrument(span).await?;
    if measured {
        let overhead = parsed.elapsed().saturating_sub(one.meter.waited());
        let ms = overhead.as_secs_f64() * 1_000.0;
        let (member, definition) = (&one.member, &desk.scene.definition);
        let labels = metric::dimensions_of(definition, &member.vertical, &member.id);
        metrics::histogram!(metric::DISPATCH_OVERHEAD_MS, &labels).record(ms);
    }
    Ok(back)
}

async fn conclude(
    desk: &Desk<'_>,
    one: &Asked,
    ended: Ended<Answer, Miss>,
    trace: &Arc<Trace>,
) -> Result<Back, Refusal> {
    // Nothing of it gets through from here on, whatever of it still runs elsewhere.
    let trail = one.voice.close();
    let (slot, answer) = match ended {
        Ended::Filled(answer) => (Slot::Filled, Ok(answer)),
        Ended::Failed(Miss::Short(answer)) => (Slot::Short, Ok(answer)),
        // Only the session refuses, and it ends the turn itself.
        Ended::Failed(Miss::Refused) => return Err(Refusal::Ended),
        Ended::Failed(Miss::Failed(class)) => (Slot::Failed, Err(class)),
        Ended::Broke => {
            tracing::error!(sub_agent_id = one.id(), "a sub-agent panicked");
            (Slot::Failed, Err(AgentErrorClass::Internal))
        }
        Ended::TimedOut => (Slot::Failed, Err(AgentErrorClass::Timeout)),
    };
    let teller = Teller { desk, one, trace };
    let (said, notes) = match answer {
        Ok(answer) => {
            let said = teller.answered(slot, &answer, &trail).await?;
            (said, answer.notes)
        }
        Err(class) => (teller.failed(class, &trail).await?, Vec::new()),
    };
    Ok(Back {
        said,
        failed: Failed {
            slot,
            told: trail.errors,
            kept: trail.kept.iter().map(error_of).collect(),
        },
        notes,
    })
}

/// A result that the orchestrator alone is shown.
pub(crate) fn private(mint: &dyn Mint, id: &str, content: Vec<ContentBlock>) -> NewMessage {
    NewMessage {
        kept: turnwire_event::Kept::default(),
        id: MessageId(mint.ulid()),
        role: Role::Tool,
        content,
        metadata: agent_resources::sub_agent(id),
        scope: Scope::Private,
    }
}

/// Gives a call that is not executed a result, because a model's vendor wants one for each, and
/// no `tool.called`, because nothing acts.
pub(crate) async fn refuse(
    desk: &Desk<'_>,
    call: &Use,
    id: &str,
    why: String,
) -> Result<Arc<Said>, Refusal> {
    let said = told(call.id, Err(why));
    let failed = Body::ToolFailed(ToolFailed {
        tool_use_id: call.id,
        tool_name: call.name.clone(),
        tool_type: ToolType::SubAgent,
        error_class: ToolErrorClass::InvalidInput,
        called: false,
    });
    let mut message = private(&*desk.means.mint, id, said.content.clone());
    message.metadata.extend([agent_resources::not_executed()]);
    let emission = Emission {
        message: Some(message),
        ..Emission::new(Actor::tool(&call.name), failed)
    };
    desk.deliver(emission).await?;
    Ok(Arc::new(said))
}

/// Tells the end of one invocation.
struct Teller<'a> {
    desk: &'a Desk<'a>,
    one: &'a Asked,
    trace: &'a Arc<Trace>,
}

impl Teller<'_> {
    async fn answered(
        &self,
        slot: Slot,
        answer: &Answer,
        trail: &Trail,
    ) -> Result<Arc<Said>, Refusal> {
        let one = self.one;
        let (outcome, word) = match slot {
            Slot::Filled => (DispatchOutcome::Success, "success"),
            Slot::Short | Slot::Failed => (DispatchOutcome::StatusError, "status_error"),
        };
        let completed = Body::SubagentCompleted(Completed {
            invocation_id: one.invocation_id,
            sub_agent_id: one.id().to_owned(),
            tool_use_id: one.tool_use_id,
            outcome,
            latency_ms: millis(one.begun.elapsed()),
            status_events: trail.statuses,
        });
        self.tell(Actor::subagent(one.id()), completed, None)
            .await?;
        let mut content = json!({"text": answer.text, "components": trail.components});
        if answer.caveat {
            content["caveat"] = Value::Bool(true);
        }
        let json = content.to_string();
        let completed = Body::ToolCompleted(ToolCompleted {
            tool_use_id: one.tool_use_id,
            tool_name: one.tool_name.clone(),
            tool_type: ToolType::SubAgent,
            duration_ms: millis(one.begun.elapsed()),
            // Its words are for the orchestrator only (D-46).
            result_summary: format!("{word}, {} bytes", json.len()),
            result_sha256: sha256_hex(json.as_bytes()),
        });
        self.back(completed, Ok(content)).await
    }

    async fn failed(&self, class: AgentErrorClass, trail: &Trail) -> Result<Arc<Said>, Refusal> {
        let one = self.one;
        self.end_open(class, trail).await?;
        let failed = Body::SubagentFailed(SubagentFailed {
            invocation_id: one.invocation_id,
            sub_agent_id: one.id().to_owned(),
            tool_use_id: one.tool_use_id,
            latency_ms: millis(one.begun.elapsed()),
            error_class: class,
            status_events: trail.statuses,
        });
        self.tell(Actor::subagent(one.id()), failed, None).await?;
        let failed = Body::ToolFailed(ToolFailed {
            tool_use_id: one.tool_use_id,
            tool_name: one.tool_name.clone(),
            tool_type: ToolType::SubAgent,
            error_class: tool_class(class),
            // Known to the writer, who sees the whole turn.
            called: false,
        });
        let told = format!(
            "The {} assistant could not answer. Say so in your own words; do not name causes or \
             codes.",
            one.id()
        );
        self.back(failed, Err(told)).await
    }

    /// Ends the calls and tools that were left open: every pair is closed before its parent.
    async fn end_open(&self, class: AgentErrorClass, trail: &Trail) -> Result<(), Refusal> {
        let actor = Actor::subagent(self.one.id());
        for call_id in &trail.calls {
            let failed = Body::LlmCallFailed(CallFailed {
                call_id: *call_id,
                message_id: None,
                content_sha256: None,
                error_class: match class {
                    AgentErrorClass::Timeout => LlmErrorClass::Timeout,
                    _ => LlmErrorClass::Internal,
                },
            });
            self.tell(actor.clone(), failed, None).await?;
        }
        for tool in &trail.tools {
            let which = (tool.id, tool.tool_type);
            for (actor, body) in turn_workers::lost(self.desk.scene, which, tool_class(class)).await
            {
                self.tell(actor, body, None).await?;
            }
            let failed = Body::ToolFailed(ToolFailed {
                tool_use_id: tool.id,
                tool_name: tool.name.clone(),
                tool_type: tool.tool_type,
                error_class: tool_class(class),
                called: false,
            });
            self.tell(Actor::tool(&tool.name), failed, None).await?;
        }
        Ok(())
    }

    /// Tells the end of the tool use that asked, with what its model is told.
    async fn back(&self, body: Body, given: Result<Value, String>) -> Result<Arc<Said>, Refusal> {
        let said = told(self.one.tool_use_id, given);
        let mint = &*self.desk.means.mint;
        let message = private(mint, self.one.id(), said.content.clone());
        let actor = Actor::tool(&self.one.tool_name);
        self.tell(actor, body, Some(message)).await?;
        Ok(Arc::new(said))
    }

    async fn tell(
        &self,
        actor: Actor,
        body: Body,
        message: Option<NewMessage>,
    ) -> Result<(), Refusal> {
        let emission = Emission {
            message,
            trace: Some(Arc::clone(self.trace)),
            ..Emission::new(actor, body)
        };
        self.desk.deliver(emission).await.map(|_| ())
    }
}

const fn tool_class(class: AgentErrorClass) -> ToolErrorClass {
    match class {
        AgentErrorClass::Timeout => ToolErrorClass::Timeout,
        AgentErrorClass::Cancelled => ToolErrorClass::Cancelled,
        AgentErrorClass::Instantiation
        | AgentErrorClass::Model
        | AgentErrorClass::Tool
        | AgentErrorClass::Internal => ToolErrorClass::Internal,
    }
}
