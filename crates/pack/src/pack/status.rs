//! The status ids that may be emitted: the union of the platform's fragment and the verticals'.

use serde::Deserialize;
use turnwire_event::RenderPolicy;

use crate::text::digest::Digest;

/// Whether an id may still be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Lifecycle")
)]
#[serde(rename_all = "snake_case")]
pub enum StatusLifecycle {
    /// It may.
    Active,
    /// Old logs may have it; no agent emits it.
    Deprecated,
}

/// One status id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredStatus {
    /// The id.
    pub id: String,
    /// When it is emitted.
    pub description: String,
    /// Which text of the locale files is shown.
    pub render_key: String,
    /// How it is shown.
    pub policy: RenderPolicy,
    /// The sub-agents that may emit it.
    pub emitters: Vec<String>,
    /// Whether it may still be used.
    pub lifecycle: StatusLifecycle,
    /// What to use instead, or why it is as it is.
    pub note: Option<String>,
    /// The file it stands in.
    pub fragment: String,
}

/// All status ids of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRegistry {
    /// The ids: the platform's first, then vertical by vertical, as written.
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

    /// The entry of an id.
    pub fn get(&self, id: &str) -> Option<&RegisteredStatus> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}
