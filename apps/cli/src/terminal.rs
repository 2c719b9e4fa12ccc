//! Output for a terminal: sanitized text, colour, events and components as lines for
//! people, and the input that a person approves.

pub(crate) mod output;
pub(crate) mod wording;
pub(crate) mod character;
pub(crate) mod sanitize;
pub(crate) mod color;
pub(crate) mod component_line;
pub(crate) mod event_line;
pub(crate) mod word_wrap;
pub(crate) mod approval_text;
pub(crate) mod keyboard;
