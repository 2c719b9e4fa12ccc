//! `status_events.yaml` as it is written: a list of status ids.

use serde::Deserialize;
#[cfg(feature = "schema")]
use turnwire_event::RenderPolicy;

use crate::place::At;
#[cfg(feature = "schema")]
use crate::registry::Lifecycle;

/// One status id.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct EntrySource {
    /// The id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) id: Option<At<String>>,
    /// When it is emitted.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) description: Option<At<String>>,
    /// The key of its text in the locale files.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) default_render_key: Option<At<String>>,
    /// How it is shown.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<RenderPolicy>"))]
    pub(crate) default_policy: Option<At<String>>,
    /// The sub-agents that may emit it.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) emitter_subagents: Option<At<Vec<At<String>>>>,
    /// Whether it may still be used.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<Lifecycle>"))]
    pub(crate) lifecycle: Option<At<String>>,
    /// What to use instead; a deprecated id needs it.
    pub(crate) note: Option<At<String>>,
}
