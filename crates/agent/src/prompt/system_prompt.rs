//! System prompts, built from the prompt blocks of a pack when a turn is bound.

use std::fmt::Write as _;

use turnwire_event::body::subagent::SubagentContext;
use turnwire_event::port::TurnInput;
use turnwire_pack::{AgentDefinition, FlagCohort, Pack};

/// The placeholder in a block for the number of sub-agents that may be called at once.
const CAP_PLACEHOLDER: &str = "{{cap}}";

/// The [`SubagentContext`] of an agent that works for the turn of `input`.
pub(crate) fn subagent_context(
    input: &TurnInput,
    prior_context: Option<String>,
) -> SubagentContext {
    let principal = input.owner.principal.to_string();
    SubagentContext {
        user_id: principal.clone(),
        principal,
        episode_id: input.episode_id,
        locale: input.locale.clone(),
        location: input.location.clone(),
        prior_context,
    }
}

/// The texts of the blocks of `agent` that `cohort` has, in order.
fn block_texts<'a>(
    pack: &'a Pack,
    agent: &'a AgentDefinition,
    cohort: &'a FlagCohort,
) -> impl Iterator<Item = &'a String> {
    let blocks = agent.prompt_blocks.iter();
    let active = blocks.filter(|block| block.is_active(cohort));
    active.filter_map(|block| pack.prompts.get(&block.name))
}

/// The prompt of `agent` in a turn of `cohort`.
pub(crate) fn prompt_blocks(pack: &Pack, agent: &AgentDefinition, cohort: &FlagCohort) -> String {
    let blocks: Vec<String> = block_texts(pack, agent, cohort)
        .map(|text| text.trim().replace(CAP_PLACEHOLDER, &pack.cap.to_string()))
        .collect();
    blocks.join("\n\n")
}

/// The prompt of the orchestrator: its blocks, and in any case how many sub-agents it may call at once
/// and how to choose them, because only its model chooses (S2-028).
pub(crate) fn orchestrator_prompt(pack: &Pack, cohort: &FlagCohort) -> String {
    let mut prompt = prompt_blocks(pack, &pack.orchestrator, cohort);
    let mut blocks = block_texts(pack, &pack.orchestrator, cohort);
    if !blocks.any(|text| text.contains(CAP_PLACEHOLDER)) {
        let cap = pack.cap;
        let gap = if prompt.is_empty() { "" } else { "\n\n" };
        let _ = write!(
            prompt,
            "{gap}You can ask at most {cap} assistants at once. If more of them fit, choose the \
             {cap} that matter most for what the person said."
        );
    }
    prompt
}

/// The prompt of a sub-agent in one invocation: its blocks, the inherited context, and the notes that
/// earlier turns retained.
pub(crate) fn sub_agent_prompt(
    blocks: Option<&str>,
    context: &SubagentContext,
    retained_notes: &[String],
) -> String {
    let mut prompt = blocks.unwrap_or_default().to_owned();
    if !prompt.is_empty() {
        prompt.push_str("\n\n");
    }
    let _ = write!(
        prompt,
        "Context of this request:\n- person: {}\n- episode: {}\n- locale: {}",
        context.user_id, context.episode_id, context.locale
    );
    if let Some(location) = &context.location {
        let _ = write!(prompt, "\n- location: {location}");
    }
    if let Some(prior) = &context.prior_context {
        let _ = write!(prompt, "\n- before this: {prior}");
    }
    if !retained_notes.is_empty() {
        prompt.push_str("\n\nKept from earlier turns:");
        for note in retained_notes {
            let _ = write!(prompt, "\n- {note}");
        }
    }
    prompt
}
