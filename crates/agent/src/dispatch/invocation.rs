//! One invocation of a sub-agent, with its own prompt, memory, model and tools.
//!
//! The loop is that of the orchestrator: call the model, run its tools, until it calls none. Only
//! the orchestrator gets the answer, and only at the end: the text, what was shown, and whether
//! data was missing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tracing::Instrument as _;
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::body::subagent::SubagentContext;
use turnwire_event::code::{AgentErrorClass, CallPurpose, LlmErrorClass, ToolType};
use turnwire_event::port::{Emission, EmitRefusal, EventEmitter, HistoryReader};
use turnwire_event::{Actor, Body, ContentBlock, InvocationId, Role};
use turnwire_model::ModelMessage;
use turnwire_tool::{LiveTask, ToolContext, deliver};

use super::sub_agent::BoundSubAgent;
use crate::emitter::ambient;
use crate::emitter::sub_agent_emitter::SubAgentEmitter;
use crate::history::conversation::{by_invocation, complete_pairs};
use crate::history::prior_context::truncate_words;
use crate::model_call::fallback::{CallHalt, call_with_fallbacks};
use crate::prompt::system_prompt::sub_agent_prompt;
use crate::resources::agent_context::{AgentContext, ModelMessages, WaitMeter};
use crate::resources::agent_resources::AgentResources;
use crate::resources::model_choice::{CandidateCursor, class_name};
use crate::resources::turn_budget::{BudgetLimit, TurnBudget};
use crate::tool_call::execute::{ToolOutcome, run_tools};
use crate::tool_call::summary::summary;
use crate::tool_call::tool_request::{decline_excess, split_excess, tool_requests};

/// The most characters of a tool result in [`SubAgentAnswer::notes`]: a few dozen lines.
const NOTE_CHARS_MAX: usize = 2_000;
/// The most [`SubAgentAnswer::notes`] of one invocation: more than any answer needs, few enough not
/// to displace everything else that a sub-agent remembers.
const NOTES_MAX: usize = 4;
/// The most bytes of an answer that the orchestrator gets: dozens of pages.
const ANSWER_BYTES_MAX: usize = 65_536;

/// The silence after which the default status is shown again: often enough that the user does not
/// take the stream for dead, rarely enough not to flood (C-18). Three fit into the minute after
/// which a client takes a silent stream for dead.
const STATUS_REPEAT: Duration = Duration::from_secs(20);

/// An invocation that is ready to run.
pub(crate) struct Invocation {
    pub(crate) sub_agent: Arc<BoundSubAgent>,
    pub(crate) invocation_id: InvocationId,
    pub(crate) context: SubagentContext,
    pub(crate) question: String,
    pub(crate) tool_context: Arc<ToolContext>,
    pub(crate) history: Arc<dyn HistoryReader>,
    pub(crate) emitter: Arc<SubAgentEmitter>,
    pub(crate) wait_meter: Arc<WaitMeter>,
    pub(crate) budget: Arc<TurnBudget>,
    pub(crate) timeout: Duration,
    /// True if failures of data services are kept until the end: the turn may end with them
    /// (S1-102).
    pub(crate) defers_faults: bool,
    /// How long the sub-agent may be silent.
    pub(crate) watchdog: Duration,
}

/// The answer of a sub-agent, from [`run_invocation`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SubAgentAnswer {
    pub(crate) text: String,
    /// True if some of its data was incomplete.
    pub(crate) has_caveat: bool,
    /// Tool results, as text, for the prompts of sub-agents in later turns.
    pub(crate) notes: Vec<String>,
}

/// An invocation without a complete answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InvocationError {
    /// The sub-agent answered, but some of its data was missing.
    Incomplete(SubAgentAnswer),
    /// The sub-agent gave no answer (axis 1).
    Failed(FailureCause),
    /// The session accepts no more events of the turn.
    Refused,
}

/// Why a sub-agent gave no answer: the class for events, and the name for the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// Its tools or models could not be created.
    Unavailable,
    /// Its memory could not be read.
    Memory,
    /// Its model call failed.
    ModelCall(LlmErrorClass),
    /// A [`BudgetLimit`] of the turn, or its own limit of model calls.
    Limit(BudgetLimit),
    /// Its model stopped without a text, and nothing was shown.
    EmptyAnswer,
    /// A tool failed beyond repair.
    FatalTool,
    /// The invocation took longer than its timeout.
    TimedOut,
    /// The code of the server panicked.
    Panicked,
}

impl FailureCause {
    pub(crate) const fn class(self) -> AgentErrorClass {
        match self {
            Self::Unavailable => AgentErrorClass::Instantiation,
            Self::ModelCall(_) | Self::Limit(_) | Self::EmptyAnswer => AgentErrorClass::Model,
            Self::FatalTool => AgentErrorClass::Tool,
            Self::TimedOut => AgentErrorClass::Timeout,
            Self::Memory | Self::Panicked => AgentErrorClass::Internal,
        }
    }

    /// The name in the server's log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "no_model_or_tools",
            Self::Memory => "memory",
            Self::ModelCall(class) => class_name(class),
            Self::Limit(limit) => limit.reason(),
            Self::EmptyAnswer => "empty_answer",
            Self::FatalTool => "fatal_tool",
            Self::TimedOut => "timeout",
            Self::Panicked => "panic",
        }
    }
}

impl From<EmitRefusal> for InvocationError {
    fn from(_: EmitRefusal) -> Self {
        Self::Refused
    }
}

impl From<CallHalt> for InvocationError {
    fn from(halt: CallHalt) -> Self {
        match halt {
            CallHalt::Refused => Self::Refused,
            CallHalt::Model(class) => Self::Failed(FailureCause::ModelCall(class)),
            CallHalt::Limit(limit) => Self::Failed(FailureCause::Limit(limit)),
        }
    }
}

/// Runs an [`Invocation`] with its [`SubAgentEmitter`] as the ambient emitter.
pub(crate) fn run_invocation(
    invocation: Invocation,
) -> impl Future<Output = Result<SubAgentAnswer, InvocationError>> + Send + 'static {
    // Created here and not on the task of the invocation, so that the caller's span is its parent.
    let span = tracing::info_span!(
        "subagent.run",
        sub_agent_id = invocation.sub_agent.id,
        span_id = invocation.emitter.span().span_id
    );
    let emitter = Arc::clone(&invocation.emitter) as Arc<dyn EventEmitter>;
    let live = LiveTask::begin();
    let work = async move {
        let _live = live;
        let _child_task = invocation.tool_context.child_tasks.enter()?;
        answer_with_watchdog(invocation).await
    };
    // The caller's span too: a filter may keep the lines and not the span of the sub-agent.
    let work = ambient::scope(emitter, work).instrument(span);
    work.in_current_span()
}

/// Runs the invocation, and emits the default status whenever the sub-agent is silent for too long
/// (D-12b).
async fn answer_with_watchdog(invocation: Invocation) -> Result<SubAgentAnswer, InvocationError> {
    let mut answer = Box::pin(answer(&invocation));
    let Some(status) = &invocation.sub_agent.default_status else {
        return answer.await;
    };
    let mut last_seen = None;
    let mut due = Instant::now() + invocation.watchdog;
    loop {
        tokio::select! {
            biased;
            ended = &mut answer => return ended,
            () = invocation.emitter.status_shown() => {}
            () = sleep_until(due) => {}
        }
        let last_shown = invocation.emitter.last_shown();
        // The default status, emitted below, is recorded too; it must not restart the watchdog.
        if let Some(status) = last_shown.filter(|_| last_shown != last_seen) {
            last_seen = last_shown;
            due = status.at + invocation.watchdog;
        }
        if Instant::now() < due {
            continue;
        }
        let emitted = Body::StatusEmitted(StatusEmitted {
            event_id: status.clone(),
            message: String::new(),
            invocation_id: None,
        });
        let emission = Emission::new(Actor::subagent(&invocation.sub_agent.id), emitted);
        deliver(&*invocation.emitter, emission).await?;
        last_seen = invocation.emitter.last_shown();
        due = Instant::now() + STATUS_REPEAT;
    }
}

async fn answer(invocation: &Invocation) -> Result<SubAgentAnswer, InvocationError> {
    let Some(resources) = invocation.sub_agent.resources.as_deref() else {
        return Err(InvocationError::Failed(FailureCause::Unavailable));
    };
    let emitter = Arc::clone(&invocation.emitter) as Arc<dyn EventEmitter>;
    let candidate_cursor = CandidateCursor::default();
    let context = AgentContext {
        resources,
        emitter: &emitter,
        tool_context: &invocation.tool_context,
        wait_meter: &invocation.wait_meter,
        candidate_cursor: &candidate_cursor,
        budget: &invocation.budget,
        deadline: Instant::now() + invocation.timeout,
        deferred_to: invocation.defers_faults.then_some(&*invocation.emitter),
        invocation_id: Some(invocation.invocation_id),
        purpose: CallPurpose::Subagent,
        span: None,
    };
    let (notes, mut messages) = memory(invocation, resources).await?;
    let question = vec![ContentBlock::text(&*invocation.question)];
    messages.push(Arc::new(ModelMessage::new(Role::User, question)));
    let options = &resources.options;
    let system = sub_agent_prompt(options.system.as_deref(), &invocation.context, &notes);
    let mut builder = AnswerBuilder::default();
    for number in 1..=options.calls_max {
        let completed = complete_pairs(&messages);
        let request = context.model_request(number, Some(system.clone()), completed);
        let reply = call_with_fallbacks(&context, request).await?;
        builder.add_reply(&reply.content);
        let mut requests = tool_requests(&reply.content, &reply.broken_tool_uses);
        if requests.is_empty() {
            return builder.finish(invocation);
        }
        messages.push(reply.into_message());
        let excess = split_excess(&mut requests, resources);
        messages.extend(decline_excess(&context, excess).await?);
        let outcomes = run_tools(&context, requests).await?;
        builder.add_outcomes(&outcomes)?;
        messages.extend(outcomes.into_iter().map(|outcome| outcome.message));
    }
    let limit = FailureCause::Limit(BudgetLimit::Calls);
    Err(InvocationError::Failed(limit))
}

/// What a sub-agent remembers: the notes retained for all sub-agents, and its own earlier
/// exchanges.
async fn memory(
    invocation: &Invocation,
    resources: &AgentResources,
) -> Result<(Vec<String>, ModelMessages), InvocationError> {
    let budget = resources.options.history;
    let history = &invocation.history;
    let messages = history.of_agent(&invocation.sub_agent.id, budget).await;
    let (notes, own): (Vec<_>, Vec<_>) = messages
        .map_err(|_| InvocationError::Failed(FailureCause::Memory))?
        .into_iter()
        .partition(|message| message.role == Role::System);
    let notes = notes.iter().map(|message| message.text());
    Ok((notes.collect(), by_invocation(own)))
}

/// The [`SubAgentAnswer`] as it grows.
#[derive(Default)]
struct AnswerBuilder {
    answer: SubAgentAnswer,
    /// True if some of its newest data is missing. A sub-agent that failed and then found another
    /// way has its data; one whose last attempt failed has not. Tools that ran at once are one
    /// attempt.
    is_incomplete: bool,
}

impl AnswerBuilder {
    /// The last text counts: a text before a tool call only announces the call.
    fn add_reply(&mut self, content: &[ContentBlock]) {
        let mut text: String = content.iter().filter_map(ContentBlock::as_text).collect();
        text.truncate(text.floor_char_boundary(ANSWER_BYTES_MAX));
        if !text.trim().is_empty() {
            self.answer.text = text;
        }
    }

    /// Adds the [`ToolOutcome`]s of one message.
    fn add_outcomes(&mut self, outcomes: &[ToolOutcome]) -> Result<(), InvocationError> {
        let has_data =
            |outcome: &ToolOutcome| outcome.tool_type == ToolType::Ccs && outcome.result.is_ok();
        let is_incomplete = outcomes.iter().any(ToolOutcome::has_fault);
        if is_incomplete || outcomes.iter().any(has_data) {
            self.is_incomplete = is_incomplete;
        }
        for outcome in outcomes {
            match &outcome.result {
                Ok(result) => self.add_result(outcome, result),
                Err(failure) if failure.fatal => {
                    return Err(InvocationError::Failed(FailureCause::FatalTool));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn add_result(&mut self, outcome: &ToolOutcome, result: &Value) {
        if outcome.tool_type == ToolType::Ccs {
            self.answer.has_caveat |= result.get("caveat") == Some(&json!(true));
        }
        if outcome.is_retained && self.answer.notes.len() < NOTES_MAX {
            let note = truncate_words(&summary(result, usize::MAX), NOTE_CHARS_MAX);
            self.answer.notes.push(note);
        }
    }

    fn finish(self, invocation: &Invocation) -> Result<SubAgentAnswer, InvocationError> {
        if self.answer.text.is_empty() && !invocation.emitter.has_components() {
            return Err(InvocationError::Failed(FailureCause::EmptyAnswer));
        }
        if self.is_incomplete {
            return Err(InvocationError::Incomplete(self.answer));
        }
        Ok(self.answer)
    }
}
