//! Text filters: the hook for rules on wording, safety or format, and a deny list.
//!
//! A [`TextFilter`] receives the text of one content block in pieces and may delay at most
//! [`BUFFERED_CHARS_MAX`] characters, so that it also sees a word that is split over two pieces.
//! The log stores the filtered text only, so the deltas of a message always add up to its text
//! (C-09).

use std::sync::Arc;

/// The largest number of characters that a [`TextFilter`] may delay: longer than any word, and
/// short enough that no reader notices the delay.
pub const BUFFERED_CHARS_MAX: usize = 64;

/// Replaces a denied word.
const MASK: &str = "•••";

/// Filters the text of content blocks, one block after the other. The output must not depend on
/// how the text is split into pieces.
pub trait TextFilter: Send {
    /// Takes the next piece of text and appends the output that is final to `out`. At most
    /// [`BUFFERED_CHARS_MAX`] characters stay in the filter.
    fn push(&mut self, text: &str, out: &mut String);

    /// Ends the block: appends the delayed characters to `out` and resets the filter.
    fn finish(&mut self, out: &mut String);
}

/// A denied word, in lower case.
#[derive(Debug)]
struct DeniedWord {
    chars: Vec<char>,
    /// True if a letter may follow the match: the word was longer than the limit and is truncated.
    is_truncated: bool,
}

/// A [`TextFilter`] that masks denied words, ignoring case. Only complete words match: `art`
/// does not mask a part of `cart`.
#[derive(Clone, Debug)]
pub struct DenyList {
    words: Arc<[DeniedWord]>,
    buffered: String,
    previous: Option<char>,
}

/// How a denied word matches the text at one offset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordMatch {
    No,
    /// The text ends before the word does, and matches so far.
    Partial,
    /// The word matches this number of bytes.
    Full(usize),
}

/// Whether more text of the block may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockState {
    Open,
    Finished,
}

impl DenyList {
    /// Masks `words`. A word longer than [`BUFFERED_CHARS_MAX`] matches by its beginning.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let word = |text: &str| {
            let text = text.trim();
            DeniedWord {
                chars: text
                    .chars()
                    .take(BUFFERED_CHARS_MAX)
                    .map(to_lower)
                    .collect(),
                is_truncated: text.chars().nth(BUFFERED_CHARS_MAX).is_some(),
            }
        };
        let words = words.into_iter().map(word);
        Self {
            words: words.filter(|word| !word.chars.is_empty()).collect(),
            buffered: String::new(),
            previous: None,
        }
    }

    /// The longest word that matches the start of `text`, or [`WordMatch::Partial`] if a longer
    /// match is still possible.
    fn match_at(&self, previous: Option<char>, text: &str, state: BlockState) -> WordMatch {
        let mut best = WordMatch::No;
        for word in &*self.words {
            match (word.match_at(previous, text, state), best) {
                (WordMatch::Partial, _) => return WordMatch::Partial,
                (WordMatch::Full(end), WordMatch::No) => best = WordMatch::Full(end),
                (WordMatch::Full(end), WordMatch::Full(longest)) if end > longest => {
                    best = WordMatch::Full(end)
                }
                (WordMatch::Full(_) | WordMatch::No, _) => {}
            }
        }
        best
    }

    fn filter_buffered(&mut self, state: BlockState, out: &mut String) {
        let text = std::mem::take(&mut self.buffered);
        let mut previous = self.previous;
        let mut offset = 0;
        while let Some(next) = text[offset..].chars().next() {
            match self.match_at(previous, &text[offset..], state) {
                WordMatch::Partial => break,
                WordMatch::No => {
                    out.push(next);
                    previous = Some(next);
                    offset += next.len_utf8();
                }
                WordMatch::Full(end) => {
                    out.push_str(MASK);
                    previous = text[offset..offset + end].chars().next_back();
                    offset += end;
                }
            }
        }
        self.previous = previous;
        self.buffered.push_str(&text[offset..]);
    }
}

impl TextFilter for DenyList {
    fn push(&mut self, text: &str, out: &mut String) {
        self.buffered.push_str(text);
        self.filter_buffered(BlockState::Open, out);
    }

    fn finish(&mut self, out: &mut String) {
        self.filter_buffered(BlockState::Finished, out);
        self.previous = None;
    }
}

impl DeniedWord {
    fn match_at(&self, previous: Option<char>, text: &str, state: BlockState) -> WordMatch {
        let first = self.chars[0];
        if is_letter(first) && previous.is_some_and(is_letter) {
            return WordMatch::No;
        }
        let mut chars = text.chars();
        for &expected in &self.chars {
            match chars.next() {
                None if state == BlockState::Open => return WordMatch::Partial,
                None => return WordMatch::No,
                Some(actual) if to_lower(actual) == expected => {}
                Some(_) => return WordMatch::No,
            }
        }
        let end = text.len() - chars.as_str().len();
        let last = self.chars[self.chars.len() - 1];
        match chars.next() {
            _ if self.is_truncated || !is_letter(last) => WordMatch::Full(end),
            None if state == BlockState::Open => WordMatch::Partial,
            None => WordMatch::Full(end),
            Some(next) if is_letter(next) => WordMatch::No,
            Some(_) => WordMatch::Full(end),
        }
    }
}

/// Lower case, one character for one, so that the number of characters does not change.
fn to_lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
