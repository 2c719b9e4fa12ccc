//! Texts by language and render key, with a chain of languages to fall back to.

mod platform;

use std::collections::BTreeMap;

/// The render keys of the platform: every pack needs a text for them.
pub(crate) const PLATFORM_KEYS: [&str; 5] = [
    "combined",
    "failure.sub_agent",
    "failure.internal",
    "failure.model",
    "failure.rate_limit",
];

/// Render keys of the platform that a pack may leave out: the platform's English text replaces them.
pub(crate) const OPTIONAL_KEYS: [&str; 2] = ["prior_context.question", "prior_context.answer"];

/// The text of a render key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocaleLine {
    /// The text as a sentence of its own.
    pub message: String,
    /// The text as a part of a sentence, for several statuses shown as one.
    pub phrase: Option<String>,
}

/// Each [`LocaleLine`] by language and render key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocaleTable {
    default: String,
    texts: BTreeMap<String, BTreeMap<String, LocaleLine>>,
}

impl LocaleTable {
    /// A table of `texts` alone, without those of the platform.
    pub fn of(default: &str, texts: BTreeMap<String, BTreeMap<String, LocaleLine>>) -> Self {
        Self {
            default: default.to_owned(),
            texts,
        }
    }

    /// A table of the platform's texts.
    pub(crate) fn new(default: &str) -> Self {
        let mut texts: BTreeMap<String, BTreeMap<String, LocaleLine>> = BTreeMap::new();
        for (tag, key, message) in platform::TEXTS {
            let line = LocaleLine {
                message: message.to_owned(),
                phrase: None,
            };
            let lines = texts.entry(tag.to_owned()).or_default();
            lines.insert(key.to_owned(), line);
        }
        Self {
            default: default.to_owned(),
            texts,
        }
    }

    /// Adds a pack's texts, over those of the platform.
    pub(crate) fn add(&mut self, tag: &str, lines: BTreeMap<String, LocaleLine>) {
        let stored_tag = self
            .tags()
            .find(|stored_tag| stored_tag.eq_ignore_ascii_case(tag));
        let tag = stored_tag.unwrap_or(tag).to_owned();
        self.texts.entry(tag).or_default().extend(lines);
    }

    /// True if the language itself has a text for `key`.
    pub fn has(&self, tag: &str, key: &str) -> bool {
        let lines = self.texts.get(tag);
        lines.is_some_and(|lines| lines.contains_key(key))
    }

    /// The languages that have texts.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }

    /// The languages to look in, best first: `es-MX`, `es`, then the default and its own fallbacks.
    /// Only languages that have texts.
    pub fn chain(&self, wanted: &str) -> Vec<&str> {
        let mut chain = Vec::new();
        for tag in [wanted, &self.default] {
            let tag = tag.replace('_', "-");
            let mut prefix = tag.as_str();
            while !prefix.is_empty() {
                self.link(prefix, &mut chain);
                prefix = prefix.rfind('-').map_or("", |end| &prefix[..end]);
            }
        }
        chain
    }

    fn link<'a>(&'a self, wanted: &str, chain: &mut Vec<&'a str>) {
        let stored_tag = self.tags().find(|tag| tag.eq_ignore_ascii_case(wanted));
        if let Some(tag) = stored_tag
            && !chain.contains(&tag)
        {
            chain.push(tag);
        }
    }

    /// The text of a key in the best language that has it.
    pub fn line(&self, wanted: &str, key: &str) -> Option<LocaleLine> {
        let mut chain = self.chain(wanted).into_iter();
        chain.find_map(|tag| self.texts.get(tag)?.get(key).cloned())
    }
}

/// True if `text` has the form of a language tag: `en`, `es-MX`, `zh-Hant-TW`, also with `_`.
pub(crate) fn is_tag(text: &str) -> bool {
    let text = text.replace('_', "-");
    let mut parts = text.split('-');
    let language = parts.next().unwrap_or_default();
    let is_language =
        (2..=3).contains(&language.len()) && language.bytes().all(|b| b.is_ascii_alphabetic());
    let is_part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    is_language && text.len() <= 35 && parts.all(is_part)
}

#[cfg(test)]
mod tests;
