//! Texts: digests, the words of messages, and templates with fields.

pub(crate) mod digest;
pub(crate) mod wording;
pub(crate) mod template;
