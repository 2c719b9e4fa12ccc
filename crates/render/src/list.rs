//! The registry as a list that can be shown: every status id with all that is known of it.

use turnwire_event::RenderPolicy;
use turnwire_pack::{Pack, StatusLifecycle};

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
    pub lifecycle: StatusLifecycle,
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

#[cfg(test)]
mod tests {
    use crate::stage::pack;

    use super::*;

    #[test]
    fn every_id_is_listed_with_its_file_and_its_texts() {
        let pack = pack();
        let list = status_list(&pack);
        assert_eq!(list.len(), pack.registry.entries.len());
        let searching = list.iter().find(|entry| entry.id == "searching_offers");
        let text = |locale: &str, message: &str, phrase: &str| StatusText {
            locale: locale.into(),
            message: message.into(),
            phrase: Some(phrase.into()),
        };
        let english = "searching for offers";
        let expected = StatusEntry {
            id: "searching_offers".into(),
            description: "when searching_offers".into(),
            render_key: "status.searching_offers".into(),
            policy: RenderPolicy::Transform,
            emitters: vec!["shop".into()],
            lifecycle: StatusLifecycle::Active,
            note: None,
            fragment: "verticals/shop/status_events.yaml".into(),
            texts: vec![
                text("de", "Angebote werden gesucht …", "Angebote werden gesucht"),
                text("en", "Searching for offers...", english),
                text("es", "Buscando ofertas…", "buscando ofertas"),
            ],
        };
        assert_eq!(searching, Some(&expected));
    }
}
