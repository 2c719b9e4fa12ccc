//! `GET /status-events`: the identifiers that agents may emit as progress, merged from all
//! fragments, with the words for each language and how often each was emitted (S1-064, S1-065).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use turnwire_event::RenderPolicy;

/// 200.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusEvents {
    /// Every entry, in the order of the registry.
    pub status_events: Vec<StatusEvent>,
    /// The version of the registry, as turns are bound to it.
    pub version: String,
}

/// One entry of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusEvent {
    /// The identifier, `data.event_id` of a `status` frame.
    pub id: String,
    /// When it is emitted.
    pub description: String,
    /// Which line of the locale map its words are.
    pub default_render_key: String,
    /// What is done with it unless a cohort says otherwise.
    pub default_policy: RenderPolicy,
    /// The sub-agents that may emit it.
    pub emitter_subagents: Vec<String>,
    /// Whether it is in use.
    pub lifecycle: Lifecycle,
    /// On a deprecated one: what to use instead, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The file that holds it.
    pub fragment: String,
    /// Its words, by language.
    pub messages: BTreeMap<String, String>,
    /// How often it was emitted.
    pub emissions: Emissions,
}

/// Whether an entry is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// It is.
    Active,
    /// It is on its way out.
    Deprecated,
}

/// How often an identifier was emitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Emissions {
    /// In all.
    pub total: u64,
    /// By day (UTC, `2026-11-16`), days without one left out.
    pub days: BTreeMap<String, u64>,
}
