//! Texts of a pack for its agents: system prompts, and replies for when the model itself fails.

pub(crate) mod system_prompt;
pub(crate) mod failure_text;
