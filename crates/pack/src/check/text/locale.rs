//! Checks the locale files: every render key has a text in the default language (S1-071).

use std::collections::BTreeMap;

use crate::check::folder::ParsedFile;
use crate::check::manifest::CheckedManifest;
use crate::check::report::{FileReport, text_of, value_of};
use crate::finding::Findings;
use crate::pack::locale::{LocaleLine, LocaleTable, OPTIONAL_KEYS, PLATFORM_KEYS, is_tag};
use crate::source::form::ShortOrLong;
use crate::source::text::LocaleSource;
use crate::text::wording::{did_you_mean, one_line};
use crate::yaml::{Located, TextPosition};

/// The placeholder of the phrases in the text of `combined`.
const PHRASES: &str = "{phrases}";

/// The [`LocaleTable`] of a pack.
pub(crate) struct CheckedTexts {
    pub(crate) locales: LocaleTable,
    /// True if a file is broken, so that no text counts as missing.
    pub(crate) incomplete: bool,
}

/// Checks the locale files.
pub(crate) fn check(
    docs: &[ParsedFile<LocaleSource>],
    manifest: &CheckedManifest,
    findings: &mut Findings,
) -> CheckedTexts {
    let mut locales = LocaleTable::new(&manifest.default_locale);
    let mut seen: Vec<(String, &str)> = Vec::new();
    for doc in docs {
        let mut report = FileReport::new(&doc.file, findings);
        let tag = doc.name.replace('_', "-");
        if !is_tag(&tag) {
            let message = format!("`{}` is not a language tag", one_line(&doc.name));
            let instead = "a name such as locales/en.yaml or locales/es-MX.yaml";
            report.error(TextPosition::TOP, message, instead);
            continue;
        }
        let lower = tag.to_ascii_lowercase();
        if let Some((_, other)) = seen.iter().find(|(tag, _)| *tag == lower) {
            let message = format!("{other} has the same language");
            let instead = "one file for each language";
            report.error(TextPosition::TOP, message, instead);
        }
        seen.push((lower, &doc.file));
        if let Some(source) = &doc.source {
            locales.add(&tag, lines(&mut report, source));
        }
    }
    let default = &manifest.default_locale;
    let serves = |doc: &&ParsedFile<LocaleSource>| {
        let tag = doc.name.replace('_', "-").to_ascii_lowercase();
        default.to_ascii_lowercase().starts_with(&tag)
    };
    let broken = docs.iter().filter(serves).any(|doc| doc.source.is_none());
    CheckedTexts {
        locales,
        incomplete: manifest.incomplete || !is_tag(default) || broken,
    }
}

fn lines(report: &mut FileReport<'_>, source: &LocaleSource) -> BTreeMap<String, LocaleLine> {
    let mut lines = BTreeMap::new();
    for (key, written) in &source.0 {
        let line = match &written.value {
            ShortOrLong::Short(message) => {
                if message.trim().is_empty() {
                    let message = format!("the text of `{}` is empty", one_line(&key.value));
                    let instead = "what a person is to read";
                    report.error(written.position, message, instead);
                }
                LocaleLine {
                    message: message.clone(),
                    phrase: None,
                }
            }
            ShortOrLong::Long(long) => LocaleLine {
                message: text_of(&long.message),
                phrase: value_of(&long.phrase),
            },
        };
        if key.value == "combined" && !line.message.contains(PHRASES) {
            let message = format!("`combined` has no `{PHRASES}` in it");
            let instead = format!("for example `combined: \"{PHRASES}…\"`");
            report.error(written.position, message, instead);
        }
        lines.insert(key.value.clone(), line);
    }
    lines
}

/// Reports render keys without a text: an error in the default language, a warning in others.
pub(crate) fn check_keys(
    used_keys: &[(String, Located<String>)],
    texts: &CheckedTexts,
    docs: &[ParsedFile<LocaleSource>],
    manifest: &CheckedManifest,
    findings: &mut Findings,
) {
    let default = &manifest.default_locale;
    let has = |key: &str| texts.locales.line(default, key).is_some();
    let asked_keys = used_keys.iter().map(|(_, key)| key.value.as_str());
    if !texts.incomplete && !asked_keys.chain(PLATFORM_KEYS).any(has) {
        // One finding instead of one for each key.
        findings.error(
            "pack.yaml",
            manifest.locale_position,
            format!("there are no texts in `{default}`"),
            format!("them in locales/{default}.yaml"),
        );
    } else if !texts.incomplete {
        for (file, key) in used_keys {
            if !key.value.is_empty() && !has(&key.value) {
                let message = format!("`{}` has no text in `{default}`", one_line(&key.value));
                let instead = format!("`{}: …` in locales/{default}.yaml", one_line(&key.value));
                findings.error(file, key.position, message, instead);
            }
        }
        for key in PLATFORM_KEYS {
            if !has(key) {
                let file = format!("locales/{default}.yaml");
                let message = format!("`{key}` has no text in `{default}`");
                let instead = format!("`{key}: …`; only en, de and es have it built in");
                findings.error(&file, TextPosition::TOP, message, instead);
            }
        }
    }
    for doc in docs.iter().filter(|doc| doc.source.is_some()) {
        check_translations(doc, used_keys, texts, default, findings);
    }
}

/// Reports texts that no render key uses. If a text is missing, an unused one may be meant for it:
/// then only the missing one is reported.
pub(crate) fn check_unused(
    used_keys: &[(String, Located<String>)],
    texts: &CheckedTexts,
    docs: &[ParsedFile<LocaleSource>],
    manifest: &CheckedManifest,
    findings: &mut Findings,
) {
    let default = &manifest.default_locale;
    let has = |key: &str| texts.locales.line(default, key).is_some();
    let known_names = || {
        let used_keys = used_keys.iter().map(|(_, key)| key.value.as_str());
        used_keys.chain(PLATFORM_KEYS)
    };
    if texts.incomplete || !known_names().all(has) {
        return;
    }
    let known_names = || known_names().chain(OPTIONAL_KEYS);
    for doc in docs.iter().filter(|doc| is_tag(&doc.name)) {
        for (key, _) in doc.source.iter().flat_map(|source| &source.0) {
            if known_names().any(|known_names| known_names == key.value) {
                continue;
            }
            let message = format!("nobody asks for the text of `{}`", one_line(&key.value));
            let instead = "a key that a status or an override names, or no entry";
            let (message, instead) = did_you_mean(message, &key.value, known_names(), instead);
            findings.warning(&doc.file, key.position, message, instead);
        }
    }
}

/// Reports texts that are shown as a part of a sentence and have no phrase.
pub(crate) fn check_phrases(
    together: &[&str],
    docs: &[ParsedFile<LocaleSource>],
    findings: &mut Findings,
) {
    for doc in docs {
        for (key, line) in doc.source.iter().flat_map(|source| &source.0) {
            let has_phrase = match &line.value {
                ShortOrLong::Short(_) => false,
                ShortOrLong::Long(long) => long.phrase.is_some(),
            };
            if !has_phrase && together.contains(&key.value.as_str()) {
                let message = format!(
                    "`{}` is shown together with others and has no `phrase`",
                    one_line(&key.value)
                );
                let instead = "`{message: …, phrase: …}`, the phrase as a part of a sentence";
                findings.warning(&doc.file, line.position, message, instead);
            }
        }
    }
}

fn check_translations(
    doc: &ParsedFile<LocaleSource>,
    used_keys: &[(String, Located<String>)],
    texts: &CheckedTexts,
    default: &str,
    findings: &mut Findings,
) {
    let tag = doc.name.replace('_', "-");
    // A text of `es` serves `es-MX` too; only a fallback to the default language is reported.
    let chain = texts.locales.chain(&tag);
    let own: Vec<&str> = chain
        .into_iter()
        .filter(|link| !link.eq_ignore_ascii_case(default))
        .collect();
    if own.is_empty() {
        return;
    }
    let mut reported: Vec<&str> = Vec::new();
    for (_, key) in used_keys {
        let key = key.value.as_str();
        let has = own.iter().any(|tag| texts.locales.has(tag, key));
        // A text that the default language lacks too is reported there.
        let elsewhere = texts.locales.line(default, key).is_some();
        if elsewhere && !has && !reported.contains(&key) {
            let message = format!(
                "`{}` has no text here: that of `{default}` is shown",
                one_line(key)
            );
            let instead = format!("`{}: …`", one_line(key));
            findings.warning(&doc.file, TextPosition::TOP, message, instead);
            reported.push(key);
        }
    }
}
