//! `GET /status-events`: the status ids that agents may emit as progress, merged from all registry
//! files, with their texts by language and how often each was emitted (S1-064, S1-065).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use turnwire_event::RenderPolicy;

/// 200 of `GET /status-events`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusEvents {
    /// One page of the registered statuses, in the order of the registry.
    pub status_events: Vec<StatusEvent>,
    /// The `after` of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
    /// The version of the registry that new turns are bound to.
    pub version: String,
}

/// A status of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusEvent {
    /// The status id, `data.event_id` of a `status` frame.
    pub id: String,
    /// When an agent emits the status.
    pub description: String,
    /// The key of the text in the locale files.
    pub default_render_key: String,
    /// The rendering policy while no flag overrides it.
    pub default_policy: RenderPolicy,
    /// The ids of the sub-agents that may emit the status.
    pub emitter_subagents: Vec<String>,
    /// Whether agents may still emit the status.
    pub lifecycle: LifecycleState,
    /// For a deprecated status: what to use instead, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The registry file that defines the status.
    pub fragment: String,
    /// The text by language tag.
    pub messages: BTreeMap<String, String>,
    /// How often the status was emitted.
    pub emissions: Emissions,
}

/// Whether a status may still be emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Lifecycle")
)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleState {
    /// The status is in use.
    Active,
    /// The status will be removed.
    Deprecated,
}

/// How often a status was emitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Emissions {
    /// The sum over all days.
    pub total: u64,
    /// By day (UTC, `2026-11-16`); days without an emission are omitted.
    pub days: BTreeMap<String, u64>,
}
