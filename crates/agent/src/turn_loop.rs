//! The loop of one turn: choose the model, then call it and run its tools until it calls no more
//! tools. Where the model calls sub-agents, part of the work is a dispatch, and the next call
//! composes the answer from their results.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join;
use tokio::time::Instant;
use tracing::Instrument as _;
use turnwire_event::Actor;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CallPurpose, ErrorCode, LlmErrorClass, ToolErrorClass, TurnStatus};
use turnwire_event::port::{Emission, EmitRefusal, TurnContext, TurnOutcome};
use turnwire_model::{ModelMessage, ModelProvider, ModelRequest};
use turnwire_tool::deliver;

use crate::dispatch::dispatch_step::{DispatchStep, RetainedNote, sort_requests};
use crate::dispatch::invocation_result::decline_sub_agents;
use crate::dispatch::turn_binding::TurnBinding;
use crate::dispatch::turn_failures::TurnFailures;
use crate::dispatch::turn_spans::TurnSpans;
use crate::emitter::output_recorder::OutputRecorder;
use crate::history::conversation::{complete_pairs, with_user_message};
use crate::history::prior_context::PriorExchange;
use crate::model_call::fallback::{CallHalt, call_with_fallbacks};
use crate::model_call::single_call::{CallError, ModelReply, call_model};
use crate::resources::agent_context::{
    AgentContext, EmitResult, ModelMessages, WaitMeter, tool_context_of,
};
use crate::resources::model_choice::CandidateCursor;
use crate::resources::turn_budget::{BudgetLimit, TurnBudget};
use crate::tool_call::approval::{request_approvals, split_by_approval};
use crate::tool_call::execute::{ToolOutcome, run_tools};
use crate::tool_call::resumed_turn::ResumedTurn;
use crate::tool_call::tool_request::{
    BROKEN_INPUT, ToolRequest, decline_all, decline_excess, excess_result, split_excess,
    tool_requests,
};

/// The time of a turn that is reserved for the orchestrator to tell the user the outcome.
const ANSWER_RESERVE: Duration = Duration::from_secs(1);
/// The least time of a sub-agent: enough to find that there is none, and to fail properly.
const SUB_AGENT_TIME_MIN: Duration = Duration::from_millis(100);

/// How long sub-agents may take in a turn with `timeout` of which `elapsed` is over (D-82).
fn sub_agent_time(timeout: Duration, elapsed: Duration) -> Duration {
    let remaining = timeout.saturating_sub(elapsed + ANSWER_RESERVE);
    remaining.max(SUB_AGENT_TIME_MIN)
}

pub(crate) async fn run_turn(
    binding: &TurnBinding,
    turn: TurnContext,
    output: &OutputRecorder,
) -> TurnOutcome {
    let trace = turn.input.trace.clone();
    let tool_context = tool_context_of(&turn, None, trace, &binding.dimensions);
    let wait_meter = WaitMeter::default();
    let candidate_cursor = CandidateCursor::default();
    let budget = Arc::new(TurnBudget::new(&binding.resources.options));
    let started = Instant::now();
    let context = AgentContext {
        resources: &binding.resources,
        emitter: &turn.emitter,
        tool_context: &tool_context,
        wait_meter: &wait_meter,
        candidate_cursor: &candidate_cursor,
        budget: &budget,
        deadline: started + turn.input.turn_timeout,
        deferred_to: None,
        invocation_id: None,
        purpose: CallPurpose::Orchestrate,
        span: None,
    };
    let mut turn_loop = TurnLoop {
        binding,
        turn: &turn,
        output,
        context,
        spans: None,
        failures: TurnFailures::default(),
        notes: Vec::new(),
        started,
        dispatch_count: 0,
        need_approval: Vec::new(),
        earlier_calls: 0,
    };
    let ended = match turn_loop.answer().await {
        Ok(()) => {
            let TurnLoop {
                failures, context, ..
            } = turn_loop;
            failures.into_outcome(&context).await
        }
        Err(TurnStop::Failed(code)) => turn_loop.fail(code, None).await,
        Err(TurnStop::Limit(limit)) => turn_loop.exhaust(limit).await,
        Err(TurnStop::NeedsApproval) => turn_loop.pause().await,
        Err(TurnStop::Refused) => Err(EmitRefusal::Ended),
    };
    for body in output.placeholder_endings() {
        let emission = Emission::new(Actor::ORCHESTRATOR, body);
        // Refused only if the session ends the turn itself, and with it every placeholder.
        let _ = deliver(&*turn.emitter, emission).await;
    }
    // After a refusal the session ends the turn itself and ignores this outcome.
    ended.unwrap_or_else(|_| failed_outcome(ErrorCode::InternalError.into(), None))
}

fn failed_outcome(error: TurnError, limit: Option<BudgetLimit>) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: limit.map(|limit| limit.reason().to_owned()),
        status: TurnStatus::Failed,
        error: Some(error),
    }
}

/// Why [`TurnLoop::answer`] stops before its model has finished.
enum TurnStop {
    Refused,
    NeedsApproval,
    Failed(ErrorCode),
    Limit(BudgetLimit),
}

impl From<EmitRefusal> for TurnStop {
    fn from(_: EmitRefusal) -> Self {
        Self::Refused
    }
}

impl From<CallHalt> for TurnStop {
    fn from(halt: CallHalt) -> Self {
        match halt {
            CallHalt::Refused => Self::Refused,
            CallHalt::Model(LlmErrorClass::RateLimited) => Self::Failed(ErrorCode::RateLimitError),
            CallHalt::Model(
                LlmErrorClass::Provider | LlmErrorClass::Timeout | LlmErrorClass::Transport,
            ) => Self::Failed(ErrorCode::ModelUnavailable),
            CallHalt::Model(LlmErrorClass::Internal | LlmErrorClass::Cancelled) => {
                Self::Failed(ErrorCode::InternalError)
            }
            CallHalt::Limit(limit) => Self::Limit(limit),
        }
    }
}

/// A turn that is running.
struct TurnLoop<'a> {
    binding: &'a TurnBinding,
    turn: &'a TurnContext,
    output: &'a OutputRecorder,
    context: AgentContext<'a>,
    /// Created by the first dispatch.
    spans: Option<TurnSpans>,
    failures: TurnFailures,
    /// Notes for later turns, stored once the turn calls a second sub-agent.
    notes: Vec<RetainedNote>,
    started: Instant,
    dispatch_count: u32,
    /// The tools that a person must approve.
    need_approval: Vec<ToolRequest>,
    /// The model calls of the turn that this one resumes.
    earlier_calls: u32,
}

impl TurnLoop<'_> {
    async fn answer(&mut self) -> Result<(), TurnStop> {
        let resources = &self.binding.resources;
        let decided = resources.models.decided_event();
        self.context.emit(Actor::SYSTEM, decided).await?;
        for body in resources.mcp_server_events() {
            self.context.emit(Actor::SYSTEM, body).await?;
        }
        let history = self.turn.history.recent(resources.options.history).await;
        let history = history.map_err(|_| TurnStop::Failed(ErrorCode::InternalError))?;
        let prior_exchange = PriorExchange::find(&history, &self.turn.input, |tool| {
            let sub_agent = self.binding.sub_agent_called_by(tool);
            sub_agent.map(|sub_agent| sub_agent.id.clone())
        });
        let mut messages = with_user_message(history, &self.turn.input);
        let resumed = self.resume(&messages).await?;
        messages.extend(resumed);
        for number in 1..=resources.options.calls_max {
            let reply = self.call(number, &messages).await?;
            let requests = tool_requests(&reply.content, &reply.broken_tool_uses);
            if requests.is_empty() {
                return self.check_output();
            }
            messages.push(reply.into_message());
            messages.extend(self.execute(requests, prior_exchange.as_ref()).await?);
            if !self.need_approval.is_empty() {
                return Err(TurnStop::NeedsApproval);
            }
        }
        Err(TurnStop::Limit(BudgetLimit::Calls))
    }

    /// Runs the tools that a person approved, if this turn resumes a paused one ([`ResumedTurn`]).
    async fn resume(&mut self, messages: &[Arc<ModelMessage>]) -> EmitResult<ModelMessages> {
        let Some(resumed) = &self.turn.input.resumed else {
            return Ok(Vec::new());
        };
        let resumed = ResumedTurn::new(&self.binding.resources, resumed, messages);
        self.earlier_calls = resumed.call_count;
        let outcomes = run_tools(&self.context, resumed.approved).await?;
        let mut results = self.results(outcomes);
        results.extend(decline_all(&self.context, resumed.declined).await?);
        Ok(results)
    }

    /// Requests the approvals, and leaves the tools open for the turn that resumes this one.
    async fn pause(mut self) -> EmitResult<TurnOutcome> {
        // A paused turn does not end with a failure: it has not ended for the user.
        self.failures.report_pending(&self.context).await?;
        request_approvals(&self.context, &self.need_approval).await?;
        Ok(TurnOutcome {
            cancelled: None,
            status: TurnStatus::Paused,
            error: None,
            reason: None,
        })
    }

    /// A turn without output has not answered, even if its model stopped properly.
    fn check_output(&self) -> Result<(), TurnStop> {
        if self.output.has_output() {
            return Ok(());
        }
        let cursor = self.context.candidate_cursor;
        let model = &self.binding.resources.models.current(cursor).model;
        tracing::warn!(
            trace_id = self.context.trace_id(),
            session_id = %self.turn.input.session_id,
            turn_id = %self.turn.input.turn_id,
            model,
            "the model of a turn stopped without output"
        );
        Err(TurnStop::Failed(ErrorCode::InternalError))
    }

    /// Call `number` of the orchestrator's model: to decide, or to compose the results of
    /// sub-agents.
    async fn call(
        &self,
        number: u32,
        messages: &[Arc<ModelMessage>],
    ) -> Result<ModelReply, CallHalt> {
        let request = self.request(number, messages);
        let Some(spans) = &self.spans else {
            return call_with_fallbacks(&self.context, request).await;
        };
        let (context, span) = DispatchStep::compose_context(&self.context, spans);
        call_with_fallbacks(&context, request)
            .instrument(span)
            .await
    }

    fn request(&self, number: u32, messages: &[Arc<ModelMessage>]) -> ModelRequest {
        let number = self.earlier_calls.saturating_add(number);
        let system = self.binding.resources.options.system.clone();
        let messages = complete_pairs(messages);
        self.context.model_request(number, system, messages)
    }

    /// Executes the tool calls of one message: a [`DispatchStep`] runs sub-agents while other tools
    /// run.
    async fn execute(
        &mut self,
        mut requests: Vec<ToolRequest>,
        prior_exchange: Option<&PriorExchange>,
    ) -> EmitResult<ModelMessages> {
        let resources = &self.binding.resources;
        let excess = split_excess(&mut requests, resources);
        let mut results = self.decline_excess(excess).await?;
        let sorted = sort_requests(requests, self.binding);
        let broken = sorted.broken_sub_agent_calls;
        let declined = (ToolErrorClass::InvalidInput, BROKEN_INPUT);
        results.extend(decline_sub_agents(&self.context, broken, declined).await?);
        let split = split_by_approval(resources, self.turn.input.kind, sorted.tool_calls);
        results.extend(decline_all(&self.context, split.invalid).await?);
        self.need_approval = split.need_approval;
        let tools = run_tools(&self.context, split.run_now);
        if sorted.sub_agent_calls.is_empty() {
            let outcomes = tools.await?;
            results.extend(self.results(outcomes));
            return Ok(results);
        }
        self.dispatch_count += 1;
        let spans = self.spans.get_or_insert_with(|| {
            TurnSpans::new(&self.turn.input, Arc::clone(&resources.id_generator))
        });
        let step = DispatchStep {
            binding: self.binding,
            turn: self.turn,
            context: &self.context,
            spans,
            prior_exchange,
            number: self.dispatch_count,
            time_left: sub_agent_time(self.turn.input.turn_timeout, self.started.elapsed()),
        };
        let dispatch = step.run(sorted.sub_agent_calls, &mut self.failures, &mut self.notes);
        let (outcomes, answers) = try_join(tools, dispatch).await?;
        results.extend(answers);
        results.extend(self.results(outcomes));
        Ok(results)
    }

    /// Declines the requests beyond the number that a message may make, sub-agents included.
    async fn decline_excess(&self, excess: Vec<ToolRequest>) -> EmitResult<ModelMessages> {
        let mut sorted = sort_requests(excess, self.binding);
        let mut calls = sorted.sub_agent_calls;
        calls.append(&mut sorted.broken_sub_agent_calls);
        let mut results = decline_excess(&self.context, sorted.tool_calls).await?;
        let reason = excess_result(&self.binding.resources);
        let declined = (ToolErrorClass::NotExecuted, reason.as_str());
        results.extend(decline_sub_agents(&self.context, calls, declined).await?);
        Ok(results)
    }

    /// The results of the orchestrator's own tools. The failure of a data service degrades the
    /// turn.
    fn results(&mut self, outcomes: Vec<ToolOutcome>) -> ModelMessages {
        if outcomes.iter().any(ToolOutcome::has_fault) {
            self.failures.degrade();
        }
        let messages = outcomes.into_iter().map(|outcome| outcome.message);
        messages.collect()
    }

    /// Ends a turn whose own model failed: the user gets a text of the pack.
    async fn fail(self, code: ErrorCode, limit: Option<BudgetLimit>) -> EmitResult<TurnOutcome> {
        // If a sub-agent failed before, the turn ends with that failure: it is what the turn was about.
        let pending = self.failures.pending_error();
        let code = pending.map_or(code, |error| error.code);
        if let Some(texts) = &self.binding.failure_texts {
            let reply = texts.reply(code);
            // Clients show all text of a turn as one: the reply must not run into a broken sentence.
            let reply = match self.output.has_text() {
                true => reply.in_new_paragraph(),
                false => reply,
            };
            let provider: Arc<dyn ModelProvider> = Arc::new(reply);
            let request = ModelRequest {
                model: texts.model.clone(),
                ..self.request(1, &[])
            };
            let context = AgentContext {
                purpose: CallPurpose::Compose,
                ..self.context.clone()
            };
            match call_model(&context, &provider, request).await {
                Ok(_) | Err(CallError::BeforeOutput(..) | CallError::AfterOutput(_)) => {}
                Err(CallError::Refused) => return Err(EmitRefusal::Ended),
            }
        }
        let outcome = self.failures.into_outcome(&self.context).await?;
        let error = outcome.error.unwrap_or_else(|| code.into());
        Ok(failed_outcome(error, limit))
    }

    /// Ends a turn that has reached a [`BudgetLimit`]. A bound of the whole turn is the turn's own
    /// end, whichever agent reached it: a sub-agent that had to stop for it did not fail by itself.
    async fn exhaust(mut self, limit: BudgetLimit) -> EmitResult<TurnOutcome> {
        tracing::warn!(
            trace_id = self.context.trace_id(),
            session_id = %self.turn.input.session_id,
            turn_id = %self.turn.input.turn_id,
            limit = limit.reason(),
            "a turn reached a limit"
        );
        match limit {
            BudgetLimit::Tokens | BudgetLimit::Cost => {
                self.failures.report_pending(&self.context).await?;
            }
            BudgetLimit::Calls => {}
        }
        self.fail(ErrorCode::InternalError, Some(limit)).await
    }
}
