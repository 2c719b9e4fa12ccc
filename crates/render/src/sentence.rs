//! Several statuses as one sentence: their phrases joined as the language joins them.
//!
//! `Searching for offers and looking up your points…`: the phrases come from the locale files,
//! the commas and the word between them from ICU, the frame around them from the pack's `combined`.

use icu_list::ListFormatter;
use icu_list::options::{ListFormatterOptions, ListLength};
use icu_locale_core::Locale;
use turnwire_pack::{LocaleLine, LocaleTable};

/// The key of the frame.
const COMBINED: &str = "combined";
/// Where the phrases stand in the frame.
const PHRASES: &str = "{phrases}";

/// The sentence for the texts of all keys, in the best language that has them all.
pub(crate) fn combined(keys: &[&str], locales: &LocaleTable, wanted: &str) -> String {
    let chain = locales.chain(wanted);
    let whole = |tag: &&str| keys.iter().all(|key| locales.has(tag, key));
    let tag = chain.iter().copied().find(whole).or(chain.last().copied());
    let tag = tag.unwrap_or("en");
    let lines: Vec<LocaleLine> = keys
        .iter()
        .filter_map(|key| locales.line(tag, key))
        .collect();
    let listed = list(lines.iter().map(phrase), tag);
    let frame = locales.line(tag, COMBINED);
    let frame = frame.as_ref().map_or("{phrases}…", |line| &line.message);
    opened(&frame.replace(PHRASES, &listed), tag)
}

/// What a line adds to a sentence; without a phrase of its own, the sentence without its end.
fn phrase(line: &LocaleLine) -> &str {
    let whole = || line.message.trim_end_matches(['.', '…', '!', ' ']);
    line.phrase.as_deref().unwrap_or_else(whole)
}

fn list<'a>(phrases: impl Iterator<Item = &'a str> + Clone, tag: &str) -> String {
    let locale: Locale = tag.parse().unwrap_or(Locale::UNKNOWN);
    let options = ListFormatterOptions::default().with_length(ListLength::Wide);
    match ListFormatter::try_new_and(locale.into(), options) {
        Ok(formatter) => formatter.format(phrases).to_string(),
        // ICU's data is compiled in, so this is for a language it has nothing on.
        Err(_) => phrases.collect::<Vec<_>>().join(", "),
    }
}

/// With a capital at its beginning, as the language writes it.
fn opened(sentence: &str, tag: &str) -> String {
    let mut rest = sentence.chars();
    let dotted = ["tr", "az"].contains(&tag.split('-').next().unwrap_or_default());
    match rest.next() {
        None => String::new(),
        Some('i') if dotted => format!("İ{}", rest.as_str()),
        Some(first) => first.to_uppercase().chain(rest).collect(),
    }
}

#[cfg(test)]
mod tests;
