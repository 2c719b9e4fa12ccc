//! Texts that a pack gives to an agent: system prompts, and sentences for when the model fails.

pub(crate) mod instructions;
pub(crate) mod failure_text;
