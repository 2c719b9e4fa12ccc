//! The registry as a list that can be shown: every status id with all that is known of it.

use turnwire_event::RenderPolicy;
use turnwire_pack::{Lifecycle, Pack};

/// A status id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusEntry {
    /// The id.
    pub id: String,
    /// When it is emitted.
    pub description: String,
    /// Which text is shown.
    pub render_key: String,
    /// How it is shown unless a flag says otherwise.
    pub policy: RenderPolicy,
    /// The sub-agents that may emit it.
    pub emitters: Vec<String>,
    /// Whether it may still be used.
    pub lifecycle: Lifecycle,
    /// What to use instead, or why it is as it is.
    pub note: Option<String>,
    /// The file it stands in.
    pub fragment: String,
    /// Its text by language, sorted by tag.
    pub texts: Vec<StatusText>,
}

/// The text of a status id in one language, which may be one that it falls back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusText {
    /// The language.
    pub locale: String,
    /// The sentence.
    pub message: String,
    /// The same as a part of a sentence.
    pub phrase: Option<String>,
}

/// Every status id of a pack, in the registry's order.
pub fn status_list(pack: &Pack) -> Vec<StatusEntry> {
    let texts = |key: &str| {
        let tags = pack.locales.tags();
        tags.filter_map(|tag| {
            let line = pack.locales.line(tag, key)?;
            Some(StatusText {
                locale: tag.to_owned(),
                message: line.message,
                phrase: line.phrase,
            })
        })
        .collect()
    };
    let entries = pack.registry.entries.iter();
    entries
        .map(|entry| StatusEntry {
            id: entry.id.clone(),
            description: entry.description.clone(),
            render_key: entry.render_key.clone(),
            policy: entry.policy,
            emitters: entry.emitters.clone(),
            lifecycle: entry.lifecycle,
            note: entry.note.clone(),
            fragment: entry.fragment.clone(),
            texts: texts(&entry.render_key),
        })
        .collect()
}
