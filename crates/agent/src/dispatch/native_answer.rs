//! The answer of a sub-agent that runs in this process, with its own prompt, memory, model and tools.
//!
//! The loop is that of the orchestrator: call the model, run its tools, until it calls none. Only
//! the orchestrator gets the answer, and only at the end: the text, what was shown, and whether
//! data was missing.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_event::code::{CallPurpose, ToolType};
use turnwire_event::port::EventEmitter;
use turnwire_event::{ContentBlock, Role};
use turnwire_model::ModelMessage;

use super::invocation::{FailureCause, Invocation, InvocationError, SubAgentAnswer};
use crate::history::conversation::{by_invocation, complete_pairs};
use crate::history::prior_context::truncate_words;
use crate::model_call::fallback::call_with_fallbacks;
use crate::prompt::system_prompt::sub_agent_prompt;
use crate::resources::agent_context::{AgentContext, ModelMessages};
use crate::resources::agent_resources::AgentResources;
use crate::resources::model_choice::CandidateCursor;
use crate::resources::turn_budget::BudgetLimit;
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

pub(super) async fn answer(invocation: &Invocation) -> Result<SubAgentAnswer, InvocationError> {
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
