//! A dispatch: the sub-agents that one message calls, in the six steps of S2 5.3.
//!
//! ```text
//! 1 emitted       the tool calls of one message; those beyond the cap are not executed
//! 2 resolve       which sub-agent a call means                 tool.called
//! 3 instantiate   the sub-agent, with what it inherits         subagent.started
//! 4 run           its own loop, all of them at once
//! 5 result        what came back, as each comes                subagent.*, tool.*
//! 6 compose       the orchestrator's next call
//! ```
//! One call and several take the same path; several are one plan step with more slots (S2-032).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;
use turnwire_event::body::plan::StepStarted;
use turnwire_event::body::subagent::{SubagentContext, SubagentStarted};
use turnwire_event::body::support::SupportNoted;
use turnwire_event::body::tool::ToolCalled;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CallPurpose, StepStatus, ToolErrorClass, ToolType};
use turnwire_event::port::{Emission, TurnContext};
use turnwire_event::row::MessageScope;
use turnwire_event::{Actor, Body, ContentBlock, InvocationId, Role};
use turnwire_plan::{ExpectedSlot, SlotKey, SlotWork, StepRun};

use super::invocation::{Invocation, InvocationError, SubAgentAnswer};
use super::invocation_result::{PendingInvocation, decline_sub_agents, end_invocation};
use super::invocation_run::run_invocation;
use super::sub_agent::{BoundSubAgent, SubAgentCall, question, written_context};
use super::turn_binding::{DispatchIntent, EnvelopeFailurePolicy, TurnBinding};
use super::turn_failures::{AxisFailure, TurnFailures};
use super::turn_spans::TurnSpans;
use crate::emitter::sub_agent_emitter::SubAgentEmitter;
use crate::history::prior_context::{PriorExchange, truncate_words};
use crate::prompt::system_prompt::subagent_context;
use crate::resources::agent_context::{
    AgentContext, EmitResult, ModelMessages, WaitMeter, tool_context_of,
};
use crate::resources::message_metadata;
use crate::tool_call::tool_request::ToolRequest;
use crate::tool_call::tool_result::millis;

/// One dispatch of a turn; [`Self::run`] runs it.
pub(crate) struct DispatchStep<'a> {
    pub(crate) binding: &'a TurnBinding,
    pub(crate) turn: &'a TurnContext,
    pub(crate) context: &'a AgentContext<'a>,
    pub(crate) spans: &'a TurnSpans,
    pub(crate) prior_exchange: Option<&'a PriorExchange>,
    /// The number of the dispatch in the turn, from 1.
    pub(crate) number: u32,
    /// The time of the turn that remains for its sub-agents.
    pub(crate) time_left: Duration,
}

/// A tool result of a sub-agent, as text, for the prompts of sub-agents in later turns.
pub(crate) struct RetainedNote {
    sub_agent_id: String,
    text: String,
}

impl DispatchStep<'_> {
    /// Runs the sub-agents of `calls` and returns their results for the orchestrator's model.
    pub(crate) async fn run(
        &self,
        mut calls: Vec<SubAgentCall>,
        failures: &mut TurnFailures,
        notes: &mut Vec<RetainedNote>,
    ) -> EmitResult<ModelMessages> {
        let dispatch_start = Instant::now();
        // An earlier failure no longer ends the turn: the turn now calls another sub-agent.
        failures.report_pending(self.context).await?;
        // Step 1: the calls in the model's order, as many as the cap allows (D-28). The cap is for one
        // message of the model (I-16): the next may call as many again. The number of messages is
        // bounded by `calls_max`.
        let dropped = calls.split_off(calls.len().min(self.binding.fan_out_max));
        let intent = match (self.number, calls.len()) {
            (1, 1) => DispatchIntent::Single,
            _ => DispatchIntent::Mixed,
        };
        if intent == DispatchIntent::Mixed {
            self.store_notes(notes).await?;
        }
        // A data service that fails the only sub-agent of a turn can be made to end the turn (S1-102).
        let defers_faults = intent == DispatchIntent::Single
            && self.binding.envelope_failure_policy == EnvelopeFailurePolicy::EndTurn;
        let step_id = self.start_step(&calls, &dropped).await?;
        // Calls beyond the cap are declined (S2-029).
        let cap = self.binding.fan_out_max;
        let reason = format!("not executed: at most {cap} assistants can be asked at once.");
        let declined = (ToolErrorClass::NotExecuted, reason.as_str());
        let mut results = decline_sub_agents(self.context, dropped, declined).await?;
        let mut pending = HashMap::new();
        let mut works = Vec::new();
        for (request, sub_agent) in calls {
            self.resolve(&request).await?;
            let instantiated = self.instantiate(&step_id, request, sub_agent, defers_faults);
            let (pending_invocation, invocation) = instantiated.await?;
            works.push(self.work(&pending_invocation, invocation));
            let key = pending_invocation.tool_use_id.to_string();
            pending.insert(key, pending_invocation);
        }
        // The sub-agents call their models while their starts are being written (S2-070): a model acts
        // on nothing. Their tools with effects wait until their own calls are durable, and then all
        // before them are.
        let mut run =
            StepRun::start(&*step_id, works).expect("every tool use has an id of its own");
        let mut errors = Vec::new();
        while let Some(slot) = run.next().await {
            let Some(invocation) = pending.remove(&slot.key.result_key) else {
                continue;
            };
            let (context, spans) = (self.context, self.spans);
            let ended = end_invocation(context, spans, &invocation, slot.outcome, dispatch_start);
            let result = ended.await?;
            results.push(result.message);
            let sub_agent_id = invocation.sub_agent_id();
            notes.extend(result.notes.into_iter().map(|text| RetainedNote {
                sub_agent_id: sub_agent_id.to_owned(),
                text,
            }));
            let added = failures.add(context, sub_agent_id, result.outcome, intent);
            errors.extend(added.await?);
        }
        self.end_step(&mut run, errors, failures).await?;
        if intent == DispatchIntent::Mixed {
            self.store_notes(notes).await?;
        }
        Ok(results)
    }

    /// The timeout of an invocation: that of the definition, within the turn's own time (D-82).
    fn timeout(&self, sub_agent: &BoundSubAgent) -> Duration {
        sub_agent.timeout.min(self.time_left)
    }

    async fn start_step(
        &self,
        accepted: &[SubAgentCall],
        dropped: &[SubAgentCall],
    ) -> EmitResult<String> {
        let plan_step_id = format!("turn-{}-{}", self.turn.input.turn_id, self.number);
        let ids = |calls: &[SubAgentCall]| -> Vec<String> {
            calls.iter().map(|(_, agent)| agent.id.clone()).collect()
        };
        let timeouts = accepted.iter().map(|(_, agent)| self.timeout(agent));
        let started = Body::PlanStepStarted(StepStarted {
            plan_step_id: plan_step_id.clone(),
            expected_subagents: ids(accepted),
            cap: u32::try_from(self.binding.fan_out_max).unwrap_or(u32::MAX),
            dropped: ids(dropped),
            deadline_ms: millis(timeouts.max().unwrap_or(Duration::ZERO)),
        });
        self.context.emit(Actor::ORCHESTRATOR, started).await?;
        Ok(plan_step_id)
    }

    /// Step 2: emits that the call means a sub-agent of the turn.
    async fn resolve(&self, request: &ToolRequest) -> EmitResult {
        let trace = self.spans.child();
        let span_id = &trace.span_id;
        let span = tracing::info_span!("dispatch.resolve", tool = request.name, span_id);
        let called = Body::ToolCalled(ToolCalled {
            upstream_id: None,
            tool_use_id: request.id,
            tool_name: request.name.clone(),
            tool_type: ToolType::SubAgent,
            input_summary: format!("{} bytes", request.input.to_string().len()),
        });
        let emission = Emission {
            trace: Some(trace),
            ..Emission::new(Actor::tool(&request.name), called)
        };
        let delivered = self.context.deliver(emission).instrument(span);
        delivered.await.map(|_| ())
    }

    /// Step 3: the sub-agent with what it inherits: references and short values (S2-016).
    async fn instantiate(
        &self,
        step_id: &str,
        request: ToolRequest,
        sub_agent: Arc<BoundSubAgent>,
        defers_faults: bool,
    ) -> EmitResult<(PendingInvocation, Invocation)> {
        let trace = self.spans.child();
        let span_id = &trace.span_id;
        let span =
            tracing::info_span!("dispatch.instantiate", sub_agent_id = sub_agent.id, span_id);
        let context = self.inherited_context(&request, &sub_agent);
        let question = question(&request.input, &self.turn.input.content);
        let invocation_id = InvocationId(self.context.resources.id_generator.ulid());
        let started = Body::SubagentStarted(SubagentStarted {
            invocation_id,
            sub_agent_id: sub_agent.id.clone(),
            tool_use_id: request.id,
            plan_step_id: step_id.to_owned(),
            context: context.clone(),
        });
        let emission = Emission {
            message: Some(self.context.new_message(
                Role::User,
                vec![ContentBlock::text(&*question)],
                message_metadata::of_invocation(&sub_agent.id, invocation_id),
                MessageScope::Agent(sub_agent.id.clone()),
            )),
            trace: Some(trace),
            ..Emission::new(Actor::subagent(&sub_agent.id), started)
        };
        self.context.deliver(emission).instrument(span).await?;
        let run_span = self.spans.of_invocation(invocation_id);
        let emitter = SubAgentEmitter::new(
            Arc::clone(self.context.emitter),
            (&sub_agent.id, invocation_id),
            Arc::clone(&run_span),
            sub_agent.shown_status_ids.clone(),
            self.binding.component_bytes_max,
        );
        let pending = PendingInvocation {
            sub_agent: Arc::clone(&sub_agent),
            tool_use_id: request.id,
            tool_name: request.name,
            invocation_id,
            emitter: Arc::new(emitter),
            wait_meter: Arc::new(WaitMeter::default()),
            started_at: Instant::now(),
        };
        let invocation = Invocation {
            tool_context: tool_context_of(
                self.turn,
                Some(&sub_agent.id),
                Some(run_span),
                &self.binding.dimensions,
            ),
            history: Arc::clone(&self.turn.history),
            emitter: Arc::clone(&pending.emitter),
            wait_meter: Arc::clone(&pending.wait_meter),
            budget: Arc::clone(self.context.budget),
            timeout: self.timeout(&sub_agent),
            watchdog: self.binding.watchdog,
            sub_agent,
            invocation_id,
            context,
            question,
            defers_faults,
        };
        Ok((pending, invocation))
    }

    /// The context of `sub_agent`. The prior context is what the orchestrator's model wrote, or
    /// else a summary of the last exchange with another sub-agent.
    fn inherited_context(
        &self,
        request: &ToolRequest,
        sub_agent: &BoundSubAgent,
    ) -> SubagentContext {
        let chars_max = self.binding.prior_context_chars_max;
        let written = written_context(&request.input)
            .map(|written| truncate_words(written, chars_max))
            .filter(|written| !written.is_empty());
        let prior_context = written.or_else(|| {
            let labels = &self.binding.prior_context_labels;
            let exchange = self.prior_exchange?;
            exchange.summary_for(&sub_agent.id, labels, chars_max)
        });
        subagent_context(&self.turn.input, prior_context)
    }

    /// Step 4: the loop of the sub-agent, on a task of its own.
    fn work(
        &self,
        pending: &PendingInvocation,
        invocation: Invocation,
    ) -> SlotWork<impl Future<Output = Result<SubAgentAnswer, InvocationError>> + Send + 'static>
    {
        SlotWork {
            expected: ExpectedSlot {
                key: SlotKey {
                    subagent: pending.sub_agent_id().to_owned(),
                    result_key: pending.tool_use_id.to_string(),
                },
                deadline: self.timeout(&pending.sub_agent),
            },
            future: run_invocation(invocation),
        }
    }

    /// Ends the step, and reports the failures of several sub-agents together (D-11).
    async fn end_step(
        &self,
        run: &mut StepRun<SubAgentAnswer, InvocationError>,
        errors: Vec<TurnError>,
        failures: &mut TurnFailures,
    ) -> EmitResult {
        let Some(completed) = run.completion() else {
            return Ok(());
        };
        let has_several = completed.slots.len() > 1;
        let has_failed = completed.status != StepStatus::Success;
        let completed = Body::PlanStepCompleted(completed);
        self.context.emit(Actor::ORCHESTRATOR, completed).await?;
        if has_several && has_failed {
            failures.degrade();
            let failure = AxisFailure {
                error: TurnError::fan_out(errors),
                axis: 3,
                sub_agent_id: None,
            };
            failure.report(self.context).await?;
        }
        Ok(())
    }

    /// Stores the notes of a turn that calls several sub-agents for the sub-agents of later turns
    /// (S1-144). A single sub-agent remembers its exchange by itself.
    async fn store_notes(&self, notes: &mut Vec<RetainedNote>) -> EmitResult {
        for RetainedNote { sub_agent_id, text } in notes.drain(..) {
            let message = self.context.new_message(
                Role::System,
                vec![ContentBlock::text(&*text)],
                message_metadata::of_sub_agent(&sub_agent_id),
                MessageScope::Agents,
            );
            let actor = Actor::subagent(&sub_agent_id);
            let noted = Body::SupportNoted(SupportNoted { sub_agent_id, text });
            let emission = Emission {
                message: Some(message),
                ..Emission::new(actor, noted)
            };
            self.context.deliver(emission).await?;
        }
        Ok(())
    }

    /// Step 6: the context and the span in which the orchestrator composes its answer.
    pub(crate) fn compose_context<'a>(
        context: &AgentContext<'a>,
        spans: &TurnSpans,
    ) -> (AgentContext<'a>, tracing::Span) {
        let trace = spans.child();
        let span = tracing::info_span!("orchestrator.compose", span_id = trace.span_id);
        let context = AgentContext {
            purpose: CallPurpose::Compose,
            span: Some(trace),
            ..context.clone()
        };
        (context, span)
    }
}

/// The requests of one message by what they call.
#[derive(Default)]
pub(crate) struct SortedRequests {
    pub(crate) sub_agent_calls: Vec<SubAgentCall>,
    /// Calls of sub-agents whose input is unusable.
    pub(crate) broken_sub_agent_calls: Vec<SubAgentCall>,
    pub(crate) tool_calls: Vec<ToolRequest>,
}

/// Sorts `requests` by whether they call a sub-agent of the [`TurnBinding`].
pub(crate) fn sort_requests(requests: Vec<ToolRequest>, binding: &TurnBinding) -> SortedRequests {
    let mut sorted = SortedRequests::default();
    for request in requests {
        match binding.sub_agent_called_by(&request.name).map(Arc::clone) {
            Some(sub_agent) if request.is_broken => {
                sorted.broken_sub_agent_calls.push((request, sub_agent));
            }
            Some(sub_agent) => sorted.sub_agent_calls.push((request, sub_agent)),
            None => sorted.tool_calls.push(request),
        }
    }
    sorted
}
