//! Combines several statuses into one sentence, such as `Searching for offers and looking up your
//! points…`.
//!
//! The phrases come from the locale files of the pack, the commas and conjunctions from ICU, the
//! rest of the sentence from the pack's text `combined`.

use icu_list::ListFormatter;
use icu_list::options::{ListFormatterOptions, ListLength};
use icu_locale_core::Locale;
use turnwire_pack::{LocaleLine, LocaleTable};

/// The render key of the sentence that contains the phrases.
const SENTENCE_KEY: &str = "combined";
/// The placeholder in that sentence.
const PLACEHOLDER: &str = "{phrases}";

/// The sentence for the texts of all `keys`, in the first locale of the fallback chain of
/// `requested` that has all of them.
pub(crate) fn combine_statuses(keys: &[&str], locales: &LocaleTable, requested: &str) -> String {
    let chain = locales.chain(requested);
    let has_all_keys = |tag: &&str| keys.iter().all(|key| locales.has(tag, key));
    let tag = chain
        .iter()
        .copied()
        .find(has_all_keys)
        .or(chain.last().copied());
    let tag = tag.unwrap_or("en");
    let lines: Vec<LocaleLine> = keys
        .iter()
        .filter_map(|key| locales.line(tag, key))
        .collect();
    let phrases = join_phrases(lines.iter().map(phrase), tag);
    let frame = locales.line(tag, SENTENCE_KEY);
    let frame = frame.as_ref().map_or("{phrases}…", |line| &line.message);
    capitalize_first(&frame.replace(PLACEHOLDER, &phrases), tag)
}

/// The phrase of a line, or its message without the final punctuation if it has no phrase.
fn phrase(line: &LocaleLine) -> &str {
    let message = || line.message.trim_end_matches(['.', '…', '!', ' ']);
    line.phrase.as_deref().unwrap_or_else(message)
}

fn join_phrases<'a>(phrases: impl Iterator<Item = &'a str> + Clone, tag: &str) -> String {
    let locale: Locale = tag.parse().unwrap_or(Locale::UNKNOWN);
    let options = ListFormatterOptions::default().with_length(ListLength::Wide);
    match ListFormatter::try_new_and(locale.into(), options) {
        Ok(formatter) => formatter.format(phrases).to_string(),
        // ICU's data is compiled in; this handles a language that ICU does not know.
        Err(_) => phrases.collect::<Vec<_>>().join(", "),
    }
}

/// Capitalises the first letter by the rules of the language.
fn capitalize_first(sentence: &str, tag: &str) -> String {
    let mut chars = sentence.chars();
    let has_dotted_i = ["tr", "az"].contains(&tag.split('-').next().unwrap_or_default());
    match chars.next() {
        None => String::new(),
        Some('i') if has_dotted_i => format!("İ{}", chars.as_str()),
        Some(first) => first.to_uppercase().chain(chars).collect(),
    }
}

#[cfg(test)]
mod tests;
