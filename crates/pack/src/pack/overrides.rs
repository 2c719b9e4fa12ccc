//! Overrides: what a flag changes about how a status or an event type is shown.

use turnwire_event::{EventType, RenderPolicy};

/// What an override is about. Never a sub-agent (S1-051).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideTarget {
    /// A status id.
    Status(String),
    /// An event type.
    Type(EventType),
}

/// What changes while a flag is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOverride {
    /// The flag.
    pub flag: String,
    /// What it is about.
    pub target: OverrideTarget,
    /// How it is shown instead.
    pub policy: Option<RenderPolicy>,
    /// Which text is shown instead.
    pub render_key: Option<String>,
}
