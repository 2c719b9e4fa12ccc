//! Output for a terminal: text made safe, colour, and events and components as lines for people.

pub(crate) mod sanitize;
pub(crate) mod color;
pub(crate) mod component_line;
pub(crate) mod event_line;
