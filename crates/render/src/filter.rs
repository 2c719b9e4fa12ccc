//! What words pass on their way out: the hook for voice, safety and format, and a deny list.
//!
//! A filter sees the text of one block in pieces and may keep back at most `HELD_CHARS_MAX`
//! characters, so that a word which is split over two pieces is still seen as one. The log only
//! has what came out, so the deltas of a message always add up to its text (C-09).

use std::sync::Arc;

/// The most characters a filter may keep back: longer than any word, short enough that nobody
/// waits for them.
pub const HELD_CHARS_MAX: usize = 64;

/// What stands in place of a word that may not be said.
const VEIL: &str = "•••";

/// Looks at the text of one block after the other. How the text is cut into pieces must not
/// matter to what comes out.
pub trait TextFilter: Send {
    /// Takes more text and appends to `out` what may be said of it now. Keeps back at most
    /// `HELD_CHARS_MAX` characters.
    fn push(&mut self, text: &str, out: &mut String);

    /// The block has ended: appends what was kept back, and is ready for the next block.
    fn finish(&mut self, out: &mut String);
}

/// A word that may not be said, in lower case.
#[derive(Debug)]
struct Word {
    chars: Vec<char>,
    /// Whether a letter may follow: only if the word was too long and is cut.
    goes_on: bool,
}

/// Veils words, whatever their case. Only whole words: `cart` is not veiled because of `art`.
#[derive(Clone, Debug)]
pub struct DenyList {
    words: Arc<[Word]>,
    held: String,
    before: Option<char>,
}

/// What a word is to the text at some place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    No,
    /// As far as the text goes.
    Perhaps,
    /// The word, in so many bytes.
    Yes(usize),
}

/// Whether more of the block may come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    Open,
    Closed,
}

impl DenyList {
    /// Veils these words. Of a word longer than `HELD_CHARS_MAX` the beginning is looked for.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let word = |text: &str| {
            let text = text.trim();
            Word {
                chars: text.chars().take(HELD_CHARS_MAX).map(fold).collect(),
                goes_on: text.chars().nth(HELD_CHARS_MAX).is_some(),
            }
        };
        let words = words.into_iter().map(word);
        Self {
            words: words.filter(|word| !word.chars.is_empty()).collect(),
            held: String::new(),
            before: None,
        }
    }

    /// What begins at the start of `text`: the longest word, unless a longer one is possible.
    fn fit(&self, before: Option<char>, text: &str, tail: Tail) -> Fit {
        let mut best = Fit::No;
        for word in &*self.words {
            match (word.fit(before, text, tail), best) {
                (Fit::Perhaps, _) => return Fit::Perhaps,
                (Fit::Yes(end), Fit::No) => best = Fit::Yes(end),
                (Fit::Yes(end), Fit::Yes(longest)) if end > longest => best = Fit::Yes(end),
                (Fit::Yes(_) | Fit::No, _) => {}
            }
        }
        best
    }

    fn run(&mut self, tail: Tail, out: &mut String) {
        let text = std::mem::take(&mut self.held);
        let mut before = self.before;
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            match self.fit(before, &text[at..], tail) {
                Fit::Perhaps => break,
                Fit::No => {
                    out.push(next);
                    before = Some(next);
                    at += next.len_utf8();
                }
                Fit::Yes(end) => {
                    out.push_str(VEIL);
                    before = text[at..at + end].chars().next_back();
                    at += end;
                }
            }
        }
        self.before = before;
        self.held.push_str(&text[at..]);
    }
}

impl TextFilter for DenyList {
    fn push(&mut self, text: &str, out: &mut String) {
        self.held.push_str(text);
        self.run(Tail::Open, out);
    }

    fn finish(&mut self, out: &mut String) {
        self.run(Tail::Closed, out);
        self.before = None;
    }
}

impl Word {
    fn fit(&self, before: Option<char>, text: &str, tail: Tail) -> Fit {
        let open = self.chars[0];
        if is_letter(open) && before.is_some_and(is_letter) {
            return Fit::No;
        }
        let mut rest = text.chars();
        for &expected in &self.chars {
            match rest.next() {
                None if tail == Tail::Open => return Fit::Perhaps,
                None => return Fit::No,
                Some(found) if fold(found) == expected => {}
                Some(_) => return Fit::No,
            }
        }
        let end = text.len() - rest.as_str().len();
        let close = self.chars[self.chars.len() - 1];
        match rest.next() {
            _ if self.goes_on || !is_letter(close) => Fit::Yes(end),
            None if tail == Tail::Open => Fit::Perhaps,
            None => Fit::Yes(end),
            Some(after) if is_letter(after) => Fit::No,
            Some(_) => Fit::Yes(end),
        }
    }
}

/// One character for one, so that lengths stay what they are.
fn fold(c: char) -> char {
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
