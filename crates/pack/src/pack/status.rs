//! The registry of status ids: the union of the platform's fragment and the verticals'.

use serde::Deserialize;
use turnwire_event::RenderPolicy;

use crate::text::digest::Digest;

/// Whether a status may still be emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Lifecycle")
)]
#[serde(rename_all = "snake_case")]
pub enum StatusLifecycle {
    /// Agents may emit the status.
    Active,
    /// Old logs may have the status; no agent may emit it.
    Deprecated,
}

/// A status that agents may emit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredStatus {
    pub id: String,
    /// When agents emit the status.
    pub description: String,
    /// The key of the text in the locale files.
    pub render_key: String,
    /// How the status is shown unless a [`RenderOverride`](crate::RenderOverride) says otherwise.
    pub policy: RenderPolicy,
    /// The sub-agents that may emit the status.
    pub emitters: Vec<String>,
    /// Whether the status may still be emitted.
    pub lifecycle: StatusLifecycle,
    /// What to use instead of a deprecated status.
    pub note: Option<String>,
    /// The file that registers the status.
    pub fragment: String,
}

/// Every [`RegisteredStatus`] of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRegistry {
    /// The platform's statuses first, then vertical by vertical, in file order.
    pub entries: Vec<RegisteredStatus>,
    /// A digest of the entries.
    pub version: String,
}

impl StatusRegistry {
    pub(crate) fn new(entries: Vec<RegisteredStatus>) -> Self {
        let mut digest = Digest::default();
        for entry in &entries {
            digest.add(&format!("{entry:?}"));
        }
        Self {
            entries,
            version: digest.short(),
        }
    }

    /// The status with this id.
    pub fn get(&self, id: &str) -> Option<&RegisteredStatus> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}
