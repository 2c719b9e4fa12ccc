//! All status ids of a pack with their texts, as the HTTP API lists them.

use turnwire_event::RenderPolicy;
use turnwire_pack::{Pack, StatusLifecycle};

/// A status id of the registry, with its texts in all languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusEntry {
    /// Unique in the pack, such as `searching_offers`.
    pub id: String,
    /// The author's note on when an agent emits the status.
    pub description: String,
    /// The key of the text in the locale files.
    pub render_key: String,
    /// The policy while no flag overrides it.
    pub policy: RenderPolicy,
    /// The ids of the sub-agents that may emit the status.
    pub emitters: Vec<String>,
    /// Whether agents may still emit the status.
    pub lifecycle: StatusLifecycle,
    /// The author's remark, such as the id that replaces a deprecated one.
    pub note: Option<String>,
    /// The registry file that defines the id, relative to the pack.
    pub fragment: String,
    /// One text per locale of the pack, sorted by language tag.
    pub texts: Vec<StatusText>,
}

/// The text of a status id in one locale, taken from a fallback locale if it has no own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusText {
    /// The language tag, such as `de`.
    pub locale: String,
    /// The complete sentence, shown when the status is shown alone.
    pub message: String,
    /// The part of a combined sentence, or `None` if the text has no such form.
    pub phrase: Option<String>,
}

/// Lists every status id of `pack`, in the order of the registry.
pub fn status_list(pack: &Pack) -> Vec<StatusEntry> {
    let texts = |key: &str| {
        let tags = pack.locales.tags();
        tags.filter_map(|tag| {
            let text = pack.locales.line(tag, key)?;
            Some(StatusText {
                locale: tag.to_owned(),
                message: text.message,
                phrase: text.phrase,
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
    use crate::tests::support::pack;

    use super::*;

    #[test]
    fn status_list_has_every_id_with_file_and_texts() {
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
