//! `status_events.yaml` as it is written: a list of status ids.

use schemars::JsonSchema;
use serde::Deserialize;
use turnwire_event::RenderPolicy;

use crate::place::At;
use crate::registry::Lifecycle;

/// One status id.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntrySource {
    /// The id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))]
    pub(crate) id: Option<At<String>>,
    /// When it is emitted.
    #[schemars(required)]
    pub(crate) description: Option<At<String>>,
    /// The key of its text in the locale files.
    #[schemars(required)]
    pub(crate) default_render_key: Option<At<String>>,
    /// How it is shown.
    #[schemars(required, with = "Option<RenderPolicy>")]
    pub(crate) default_policy: Option<At<String>>,
    /// The sub-agents that may emit it.
    #[schemars(required)]
    pub(crate) emitter_subagents: Option<At<Vec<At<String>>>>,
    /// Whether it may still be used.
    #[schemars(required, with = "Option<Lifecycle>")]
    pub(crate) lifecycle: Option<At<String>>,
    /// What to use instead; a deprecated id needs it.
    pub(crate) note: Option<At<String>>,
}
