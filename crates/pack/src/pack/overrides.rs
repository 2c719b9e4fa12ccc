//! Overrides: what a flag changes about how a status or an event type is shown.

use turnwire_event::{EventType, RenderPolicy};

/// What an override changes. Never a sub-agent (S1-051).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideTarget {
    /// A status, by its id.
    Status(String),
    /// All events of a type.
    Type(EventType),
}

/// A change that applies while a flag is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOverride {
    /// The flag that turns the change on.
    pub flag: String,
    /// The status or event type that changes.
    pub target: OverrideTarget,
    /// The [`RenderPolicy`] to use instead.
    pub policy: Option<RenderPolicy>,
    /// The key of the text to show instead.
    pub render_key: Option<String>,
}
