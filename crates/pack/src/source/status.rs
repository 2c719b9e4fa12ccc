//! The shape of `status_events.yaml`: a list of status ids.

use serde::Deserialize;
#[cfg(feature = "schema")]
use turnwire_event::RenderPolicy;

#[cfg(feature = "schema")]
use super::form::{ID_PATTERN, NOT_BLANK};
#[cfg(feature = "schema")]
use crate::pack::status::StatusLifecycle;
use crate::yaml::Located;

/// One status id of the registry.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct EntrySource {
    /// The status id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = ID_PATTERN)))]
    pub(crate) id: Option<Located<String>>,
    /// When the status is emitted.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = NOT_BLANK)))]
    pub(crate) description: Option<Located<String>>,
    /// The key of the status text in the locale files.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = NOT_BLANK)))]
    pub(crate) default_render_key: Option<Located<String>>,
    /// How the status is shown.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<RenderPolicy>"))]
    pub(crate) default_policy: Option<Located<String>>,
    /// The sub-agents that may emit the status, at least one.
    #[cfg_attr(feature = "schema", schemars(required, length(min = 1)))]
    pub(crate) emitter_subagents: Option<Located<Vec<Located<String>>>>,
    /// Whether the status may still be used.
    #[cfg_attr(
        feature = "schema",
        schemars(required, with = "Option<StatusLifecycle>")
    )]
    pub(crate) lifecycle: Option<Located<String>>,
    /// What to use instead; a deprecated id needs it.
    pub(crate) note: Option<Located<String>>,
}
