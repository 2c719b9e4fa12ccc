//! The answer of a sub-agent that runs elsewhere: one question, whose answer the orchestrator gets as it
//! gets that of a native sub-agent.

use tokio::time::Instant;
use turnwire_event::Role;
use turnwire_event::port::HistoryBudget;
use turnwire_relay::{AgentQuestion, AskError, RelayedAgent};

use super::invocation::{FailureCause, Invocation, InvocationError, SubAgentAnswer};
use crate::resources::message_metadata;

/// Bytes of earlier exchanges that a question takes along: dozens of pages.
const HISTORY_BYTES_MAX: usize = 1_048_576;

impl From<AskError> for InvocationError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Refused => Self::Refused,
            AskError::Failed(class) => Self::Failed(FailureCause::ModelCall(class)),
        }
    }
}

/// Asks `remote` the question of the invocation.
pub(super) async fn ask(
    invocation: &Invocation,
    remote: &RelayedAgent,
) -> Result<SubAgentAnswer, InvocationError> {
    let id = &invocation.sub_agent.id;
    let budget = HistoryBudget {
        messages_max: remote.history_max(),
        bytes_max: HISTORY_BYTES_MAX,
    };
    let messages = invocation.history.of_agent(id, budget).await;
    let messages = messages.map_err(|_| InvocationError::Failed(FailureCause::Memory))?;
    let (notes, messages): (Vec<_>, Vec<_>) = messages
        .into_iter()
        .partition(|message| message.role == Role::System);
    let tool_context = &invocation.tool_context;
    let question = AgentQuestion {
        session_id: tool_context.session_id,
        turn_id: tool_context.turn_id,
        tenant: tool_context.owner.tenant,
        invocation_id: invocation.invocation_id,
        context: &invocation.context,
        question: &invocation.question,
        notes: notes.iter().map(|note| note.text()).collect(),
        messages,
        metadata: message_metadata::of_invocation(id, invocation.invocation_id),
        trace: tool_context.trace.as_deref(),
        propagation: &tool_context.propagation,
        emitter: &*invocation.emitter,
    };
    let wait_start = Instant::now();
    let asked = remote.ask(question).await;
    invocation.wait_meter.add(wait_start.elapsed());
    let asked = asked?;
    invocation.budget.spend(asked.usage);
    if asked.text.trim().is_empty() && !invocation.emitter.has_components() {
        return Err(InvocationError::Failed(FailureCause::EmptyAnswer));
    }
    let answer = SubAgentAnswer {
        text: asked.text,
        ..SubAgentAnswer::default()
    };
    match asked.is_incomplete {
        true => Err(InvocationError::Incomplete(answer)),
        false => Ok(answer),
    }
}
