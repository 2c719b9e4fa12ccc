//! Checks the locale files and that every render key has a text in the default language (S1-071).

use std::collections::BTreeMap;

use super::folder::Doc;
use super::manifest::Manifest;
use super::page::Page;
use crate::finding::Findings;
use crate::locale::{Line, Locales, PLATFORM_KEYS, is_tag};
use crate::source::form::Either;
use crate::source::text::{LineSource, LocaleSource};
use crate::wording::closest_name;
use crate::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// Where the phrases go in the text of `combined`.
const PHRASES: &str = "{phrases}";

/// The texts, and whether some are unknown because a file is broken.
pub(crate) struct Texts {
    pub(crate) locales: Locales,
    /// Whether nobody can say that a text is missing.
    pub(crate) hidden: bool,
}

/// Checks the files.
pub(crate) fn check(
    docs: &[Doc<LocaleSource>],
    manifest: &Manifest,
    found: &mut Findings,
) -> Texts {
    let mut locales = Locales::new(&manifest.default_locale);
    let mut seen: Vec<(String, &str)> = Vec::new();
    for doc in docs {
        let mut page = Page {
            file: &doc.file,
            found,
        };
        let tag = doc.name.replace('_', "-");
        if !is_tag(&tag) {
            page.error(
                TextPosition::TOP,
                format!("`{}` is not a language tag", one_line(&doc.name)),
            )
            .write("a name such as locales/en.yaml or locales/es-MX.yaml");
            continue;
        }
        let lower = tag.to_ascii_lowercase();
        if let Some((_, other)) = seen.iter().find(|(tag, _)| *tag == lower) {
            page.error(TextPosition::TOP, format!("{other} has the same language"))
                .write("one file for each language");
        }
        seen.push((lower, &doc.file));
        if let Some(source) = &doc.source {
            locales.add(&tag, lines(&mut page, source));
        }
    }
    let default = &manifest.default_locale;
    let serves = |doc: &&Doc<LocaleSource>| {
        let tag = doc.name.replace('_', "-").to_ascii_lowercase();
        default.to_ascii_lowercase().starts_with(&tag)
    };
    let broken = docs.iter().filter(serves).any(|doc| doc.source.is_none());
    Texts {
        locales,
        hidden: manifest.hidden || !is_tag(default) || broken,
    }
}

fn lines(page: &mut Page<'_>, source: &LocaleSource) -> BTreeMap<String, Line> {
    let mut lines = BTreeMap::new();
    for (key, written) in &source.0 {
        let line = match &written.value {
            Either::Short(message) => {
                if message.trim().is_empty() {
                    page.error(
                        written.position,
                        format!("the text of `{}` is empty", one_line(&key.value)),
                    )
                    .write("what a person is to read");
                }
                Line {
                    message: message.clone(),
                    phrase: None,
                }
            }
            Either::Long(long) => long_line(page, long),
        };
        if key.value == "combined" && !line.message.contains(PHRASES) {
            page.error(
                written.position,
                format!("`combined` has no `{PHRASES}` in it"),
            )
            .write(format!("for example `combined: \"{PHRASES}…\"`"));
        }
        lines.insert(key.value.clone(), line);
    }
    lines
}

fn long_line(page: &mut Page<'_>, source: &LineSource) -> Line {
    let phrase = page.text(&source.phrase, "phrase", "phrase: searching for offers");
    Line {
        message: page.text(&source.message, "message", "message: Searching for offers…"),
        phrase: source.phrase.is_some().then_some(phrase),
    }
}

/// Every key that is asked for has a text: in the default language it must, in others it should.
pub(crate) fn keys(
    asked: &[(String, Located<String>)],
    texts: &Texts,
    docs: &[Doc<LocaleSource>],
    manifest: &Manifest,
    found: &mut Findings,
) {
    let default = &manifest.default_locale;
    let has = |key: &str| texts.locales.line(default, key).is_some();
    let asked_keys = asked.iter().map(|(_, key)| key.value.as_str());
    if !texts.hidden && !asked_keys.chain(PLATFORM_KEYS).any(has) {
        // One finding, not one for each key.
        found
            .error(
                "pack.yaml",
                manifest.locale_position,
                format!("there are no texts in `{default}`"),
            )
            .write(format!("them in locales/{default}.yaml"));
    } else if !texts.hidden {
        for (file, key) in asked {
            if !key.value.is_empty() && !has(&key.value) {
                let what = format!("`{}` has no text in `{default}`", one_line(&key.value));
                found.error(file, key.position, what).write(format!(
                    "`{}: …` in locales/{default}.yaml",
                    one_line(&key.value)
                ));
            }
        }
        for key in PLATFORM_KEYS {
            if !has(key) {
                let file = format!("locales/{default}.yaml");
                found
                    .error(
                        &file,
                        TextPosition::TOP,
                        format!("`{key}` has no text in `{default}`"),
                    )
                    .write(format!("`{key}: …`; only en, de and es have it built in"));
            }
        }
    }
    for doc in docs.iter().filter(|doc| doc.source.is_some()) {
        gaps(doc, asked, texts, default, found);
    }
}

/// Texts that nobody asks for. Where a text is missing, one of them may be meant for it: then only
/// that is told.
pub(crate) fn unasked(
    asked: &[(String, Located<String>)],
    texts: &Texts,
    docs: &[Doc<LocaleSource>],
    manifest: &Manifest,
    found: &mut Findings,
) {
    let default = &manifest.default_locale;
    let has = |key: &str| texts.locales.line(default, key).is_some();
    let known = || {
        let asked = asked.iter().map(|(_, key)| key.value.as_str());
        asked.chain(PLATFORM_KEYS)
    };
    if texts.hidden || !known().all(has) {
        return;
    }
    for doc in docs.iter().filter(|doc| is_tag(&doc.name)) {
        for (key, _) in doc.source.iter().flat_map(|source| &source.0) {
            if known().any(|known| known == key.value) {
                continue;
            }
            let what = format!("nobody asks for the text of `{}`", one_line(&key.value));
            match closest_name(&key.value, known()) {
                Some(meant) => {
                    let what = format!("{what}, did you mean `{meant}`?");
                    found.warning(&doc.file, key.position, what);
                }
                None => found
                    .warning(&doc.file, key.position, what)
                    .write("a key that a status or an override names, or no entry"),
            }
        }
    }
}

/// Texts that are shown as a part of a sentence and have no form for it.
pub(crate) fn phrases(together: &[&str], docs: &[Doc<LocaleSource>], found: &mut Findings) {
    for doc in docs {
        for (key, line) in doc.source.iter().flat_map(|source| &source.0) {
            let has_phrase = match &line.value {
                Either::Short(_) => false,
                Either::Long(long) => long.phrase.is_some(),
            };
            if !has_phrase && together.contains(&key.value.as_str()) {
                let what = format!(
                    "`{}` is shown together with others and has no `phrase`",
                    one_line(&key.value)
                );
                found
                    .warning(&doc.file, line.position, what)
                    .write("`{message: …, phrase: …}`, the phrase as a part of a sentence");
            }
        }
    }
}

fn gaps(
    doc: &Doc<LocaleSource>,
    asked: &[(String, Located<String>)],
    texts: &Texts,
    default: &str,
    found: &mut Findings,
) {
    let tag = doc.name.replace('_', "-");
    // The text of `es` serves `es-MX` too; only what falls to the default language is a gap.
    let chain = texts.locales.chain(&tag);
    let own: Vec<&str> = chain
        .into_iter()
        .filter(|link| !link.eq_ignore_ascii_case(default))
        .collect();
    if own.is_empty() {
        return;
    }
    let mut told: Vec<&str> = Vec::new();
    for (_, key) in asked {
        let key = key.value.as_str();
        let has = own.iter().any(|tag| texts.locales.has(tag, key));
        // What the default language lacks too has been told already.
        let elsewhere = texts.locales.line(default, key).is_some();
        if elsewhere && !has && !told.contains(&key) {
            let what = format!(
                "`{}` has no text here: that of `{default}` is shown",
                one_line(key)
            );
            found
                .warning(&doc.file, TextPosition::TOP, what)
                .write(format!("`{}: …`", one_line(key)));
            told.push(key);
        }
    }
}
