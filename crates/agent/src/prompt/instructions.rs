//! Standing instructions, made of the blocks of a pack when a turn is bound.

use std::fmt::Write as _;

use turnwire_event::body::subagent::Context;
use turnwire_pack::Pack;

/// Where a block wants the number of sub-agents that may be asked at once.
const CAP: &str = "{{cap}}";

/// The blocks named by `names`, in that order.
pub(crate) fn blocks(pack: &Pack, names: &[String]) -> String {
    let texts = names.iter().filter_map(|name| pack.prompts.get(name));
    let texts: Vec<String> = texts
        .map(|text| text.trim().replace(CAP, &pack.cap.to_string()))
        .collect();
    texts.join("\n\n")
}

/// The instruction of the orchestrator: its blocks, and in any case how many it may ask at once
/// and how to choose, because nobody but its model chooses (S2-028).
pub(crate) fn speaker(pack: &Pack) -> String {
    let names = &pack.orchestrator.prompt_blocks;
    let mut system = blocks(pack, names);
    let mut texts = names.iter().filter_map(|name| pack.prompts.get(name));
    if !texts.any(|text| text.contains(CAP)) {
        let cap = pack.cap;
        let gap = if system.is_empty() { "" } else { "\n\n" };
        let _ = write!(
            system,
            "{gap}You can ask at most {cap} assistants at once. If more of them fit, choose the \
             {cap} that matter most for what the person said."
        );
    }
    system
}

/// The instruction of a sub-agent in one invocation: its blocks, what it inherits, and what was
/// kept of earlier turns.
pub(crate) fn sub_agent(blocks: Option<&str>, context: &Context, kept: &[String]) -> String {
    let mut system = blocks.unwrap_or_default().to_owned();
    if !system.is_empty() {
        system.push_str("\n\n");
    }
    let _ = write!(
        system,
        "Context of this request:\n- person: {}\n- episode: {}\n- locale: {}",
        context.user_id, context.episode_id, context.locale
    );
    if let Some(location) = &context.location {
        let _ = write!(system, "\n- location: {location}");
    }
    if let Some(prior) = &context.prior_context {
        let _ = write!(system, "\n- before this: {prior}");
    }
    if !kept.is_empty() {
        system.push_str("\n\nKept from earlier turns:");
        for note in kept {
            let _ = write!(system, "\n- {note}");
        }
    }
    system
}
