//! Output for a terminal: sanitized text, colour, and events and components as lines for people.

pub(crate) mod output;
pub(crate) mod wording;
pub(crate) mod sanitize;
pub(crate) mod color;
pub(crate) mod component_line;
pub(crate) mod event_line;
