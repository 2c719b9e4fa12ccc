//! Texts by language: what a person reads for a render key, with a chain of languages to look in.

use std::collections::BTreeMap;

/// The text of a render key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The sentence.
    pub message: String,
    /// The same as a part of a sentence, for when several are shown as one.
    pub phrase: Option<String>,
}

/// Texts by language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locales {
    default: String,
    texts: BTreeMap<String, BTreeMap<String, Line>>,
}

impl Locales {
    /// Texts by language and render key.
    pub fn of(default: &str, texts: BTreeMap<String, BTreeMap<String, Line>>) -> Self {
        Self {
            default: default.to_owned(),
            texts,
        }
    }

    /// The languages there are texts in.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.texts.keys().map(String::as_str)
    }

    /// The languages to look in, best first: `es-MX`, `es`, then the default. Only those there are.
    pub fn chain(&self, wanted: &str) -> Vec<&str> {
        let wanted = wanted.replace('_', "-").to_ascii_lowercase();
        let mut chain = Vec::new();
        let mut tag = wanted.as_str();
        while !tag.is_empty() {
            self.link(tag, &mut chain);
            tag = tag.rfind('-').map_or("", |end| &tag[..end]);
        }
        self.link(&self.default.to_ascii_lowercase(), &mut chain);
        chain
    }

    fn link<'a>(&'a self, lowercase: &str, chain: &mut Vec<&'a str>) {
        let known = self.tags().find(|tag| tag.eq_ignore_ascii_case(lowercase));
        if let Some(tag) = known
            && !chain.contains(&tag)
        {
            chain.push(tag);
        }
    }

    /// The text of a key in the best language that has it.
    pub fn line(&self, wanted: &str, key: &str) -> Option<Line> {
        let mut chain = self.chain(wanted).into_iter();
        chain.find_map(|tag| self.texts.get(tag)?.get(key).cloned())
    }
}
