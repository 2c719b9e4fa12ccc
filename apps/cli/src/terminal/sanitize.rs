//! Makes text from a model safe for a terminal.
//!
//! A model may write escape sequences that move the cursor, change the title or hide text, marks
//! that change the direction of writing, and characters without a glyph. [`TextSanitizer`] removes
//! them all. Joiners stay where scripts and emoji need them, line separators become line ends. A
//! sequence may be split over several deltas, so the sanitizer keeps its state between deltas. A
//! sequence without an end counts as text after [`SEQUENCE_CHARS_MAX`] characters, so that it cannot
//! hide the rest of the answer.

use std::borrow::Cow;

use crate::terminal::character::{
    COMBINING_MAX, is_combining, is_emoji_selector, is_invisible, is_joiner, is_line_separator,
    takes_joiner,
};

/// The maximum length of an escape sequence; the characters after it count as text.
const SEQUENCE_CHARS_MAX: usize = 1_024;

/// The state of a [`TextSanitizer`] between two characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC, before the character that names the sequence.
    Escape,
    /// In a control sequence (CSI, `ESC [ …`), until its final character. Counts its characters.
    Csi(usize),
    /// In a control string (OSC, DCS, SOS, PM or APC: a title, a link …), until BEL or `ESC \`.
    /// Counts its characters.
    ControlString(usize),
    /// After ESC in a control string. Keeps the count of its characters.
    ControlStringEscape(usize),
}

/// Removes escape sequences from one stream of text, delta by delta.
#[derive(Debug, Default)]
pub(crate) struct TextSanitizer {
    state: EscapeState,
    /// The last character that was written.
    last: Option<char>,
    /// A joiner after `last` that stays if the next character takes it.
    joiner: Option<char>,
    /// The number of combining characters at the end of the text.
    combining: usize,
}

impl TextSanitizer {
    /// `text`, the next part of the stream, without escape sequences and hidden characters.
    /// Newlines and tabs stay.
    pub(crate) fn clean(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let (state, is_text) = self.state.step(c);
            self.state = state;
            if is_text {
                self.push(c, &mut out);
            }
        }
        out
    }

    /// Appends `c` to `out`, if it is visible there.
    fn push(&mut self, c: char, out: &mut String) {
        if is_joiner(c) {
            let is_taken = self.last.is_some_and(takes_joiner);
            self.joiner = self.joiner.or(Some(c)).filter(|_| is_taken);
            return;
        }
        let is_selector = is_emoji_selector(c) && self.last.is_some_and(|last| !is_invisible(last));
        if is_hidden(c) && !is_selector && !is_line_separator(c) {
            return;
        }
        let c = if is_line_separator(c) { '\n' } else { c };
        self.combining = match is_combining(c) {
            true => self.combining + 1,
            false => 0,
        };
        if self.combining > COMBINING_MAX {
            return;
        }
        out.extend(self.joiner.take().filter(|_| takes_joiner(c)));
        out.push(c);
        self.last = Some(c);
    }
}

/// A sanitized `text` on one line: each run of whitespace becomes a space. A text of more than
/// `chars_max` characters is cut there and ends with `…`.
pub(crate) fn sanitized_line(text: &str, chars_max: usize) -> String {
    let clean = TextSanitizer::default().clean(text);
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars_max) {
        None => line,
        Some((cut, _)) => format!("{}…", &line[..cut]),
    }
}

/// `json` and a newline. For a terminal, hidden characters are escaped.
pub(crate) fn json_line(json: &[u8], is_terminal: bool) -> Vec<u8> {
    let mut line = match is_terminal {
        true => escape_hidden(json).into_owned(),
        false => json.to_vec(),
    };
    line.push(b'\n');
    line
}

/// The same JSON value, with hidden characters escaped as `\uXXXX`. Bytes that are not UTF-8 are
/// escaped as ASCII.
fn escape_hidden(json: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = str::from_utf8(json) else {
        return Cow::Owned(json.escape_ascii().collect());
    };
    // JSON does not allow characters below U+0020 in strings: they are escaped already.
    let needs_escape = |c: char| c >= '\u{7f}' && is_hidden(c);
    if !text.contains(needs_escape) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    let mut last = '"';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let is_joined = is_joiner(c)
            && takes_joiner(last)
            && characters.peek().is_some_and(|next| takes_joiner(*next));
        if needs_escape(c) && !is_joined {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
        last = c;
    }
    Cow::Owned(escaped.into_bytes())
}

impl EscapeState {
    /// The state after `c`, and false if `c` belongs to a sequence that ESC or a C1 character has
    /// started. The C1 character itself counts as text here; [`is_hidden`] is true for it.
    fn step(self, c: char) -> (Self, bool) {
        match (self, c) {
            // Each ESC counts as well, so that many of them do not hide the rest.
            (Self::ControlString(n) | Self::ControlStringEscape(n), '\u{1b}')
                if n < SEQUENCE_CHARS_MAX =>
            {
                (Self::ControlStringEscape(n + 1), false)
            }
            (_, '\u{1b}') => (Self::Escape, false),
            (Self::Text, _) => (Self::after_text(c), true),
            (Self::Escape, '[') => (Self::Csi(0), false),
            (Self::Escape, ']' | 'P' | 'X' | '^' | '_') => (Self::ControlString(0), false),
            // ESC, any number of intermediate characters, and a final character.
            (Self::Escape, ' '..='/') => (Self::Escape, false),
            (Self::Escape, '0'..='~') => (Self::Text, false),
            (Self::Escape, _) => (Self::after_text(c), true),
            (Self::Csi(_), '@'..='~') => (Self::Text, false),
            (Self::Csi(n), ' '..='?') if n < SEQUENCE_CHARS_MAX => (Self::Csi(n + 1), false),
            (Self::Csi(_), _) => (Self::after_text(c), true),
            (Self::ControlString(_), '\u{7}' | '\u{9c}') => (Self::Text, false),
            (Self::ControlString(n), _) if n < SEQUENCE_CHARS_MAX && c != '\n' => {
                (Self::ControlString(n + 1), false)
            }
            (Self::ControlString(_), _) => (Self::after_text(c), true),
            (Self::ControlStringEscape(_), '\\') => (Self::Text, false),
            (Self::ControlStringEscape(n), _) => Self::ControlString(n).step(c),
        }
    }

    /// The state after `c` outside of a sequence. A C1 control character starts a sequence like ESC
    /// and a second character: U+009B is `ESC [`.
    fn after_text(c: char) -> Self {
        match c {
            '\u{9b}' => Self::Csi(0),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => Self::ControlString(0),
            _ => Self::Text,
        }
    }
}

/// True for control characters, line separators and characters without a glyph.
fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        _ => c.is_control() || is_line_separator(c) || is_invisible(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        TextSanitizer::default().clean(text)
    }

    // G10
    #[test]
    fn escape_sequences_never_reach_the_terminal() {
        let cases = [
            ("plain é 漢 👩‍🚀\n\tx", "plain é 漢 👩‍🚀\n\tx"),
            ("a\u{1b}[31;1mred\u{1b}[0mb", "aredb"),
            ("a\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\c", "abc"),
            ("a\u{9b}2Jb\u{9d}t\u{9c}c", "abc"),
            ("a\u{1b}cb\u{1b}(Bc\u{1b}7d", "abcd"),
            ("a\u{1b}Pq#0\u{1b}\\b", "ab"),
            ("over\rwrite\u{8}\u{7}\u{0}\u{7f}\u{85}", "overwrite"),
            ("a\u{202e}b\u{2066}c\u{200f}d", "abcd"),
            ("a\u{1b}\u{1b}[1mb\u{1b}", "ab"),
            ("pa\u{200b}ss\u{2060}wo\u{ad}rd\u{feff}", "password"),
            (
                "a\u{e0072}\u{e006d}b\u{e0100}c\u{3164}d\u{fe0f}\u{fe0f}",
                "abcd\u{fe0f}",
            ),
            ("a\u{2028}b\u{2029}c", "a\nb\nc"),
            ("a\u{200d}b\u{200c}c\u{200d}", "abc"),
            ("می\u{200c}خواهم क्\u{200d}ष", "می\u{200c}خواهم क्\u{200d}ष"),
            (
                "👩\u{200d}\u{200d}\u{200c}🚀 ❤\u{fe0f}\u{200d}🔥",
                "👩\u{200d}🚀 ❤\u{fe0f}\u{200d}🔥",
            ),
        ];
        for (text, shown) in cases {
            assert_eq!(clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn sequence_split_over_deltas_is_removed() {
        let mut sanitizer = TextSanitizer::default();
        let parts = ["a\u{1b}", "[3", "1mb\u{1b}]0;t", "itle\u{1b}", "\\c"];
        let shown: String = parts.iter().map(|part| sanitizer.clean(part)).collect();
        assert_eq!(shown, "abc");
    }

    #[test]
    fn sequence_without_an_end_does_not_hide_the_answer() {
        assert_eq!(clean("\u{1b}]0;never\nends"), "\nends");
        let long = format!("\u{1b}]{}", "x".repeat(2 * SEQUENCE_CHARS_MAX));
        assert_eq!(clean(&long).len(), SEQUENCE_CHARS_MAX);
        // An ESC inside does not begin the count again.
        for hiding in ["\u{1b}x", "\u{1b}", "xx\u{1b}["] {
            let long = format!("\u{1b}]{}the end", hiding.repeat(2 * SEQUENCE_CHARS_MAX));
            assert!(clean(&long).ends_with("end"), "{hiding:?}");
        }
    }

    #[test]
    fn combining_characters_do_not_pile_up() {
        let flood = format!("a{}b", "\u{301}".repeat(100));
        assert_eq!(clean(&flood).chars().count(), 2 + COMBINING_MAX);
    }

    // G10
    #[test]
    fn json_for_a_terminal_is_equal_and_visible() {
        let hidden = "\u{7f}\u{80}\u{9b}2J\u{9f}\u{61c}\u{200e}\u{202e}\u{2069}\u{1b}[1m\r\n\"\\\u{200b}\u{2028}\u{e0041}a\u{200d}b";
        let value = serde_json::json!({ hidden: [hidden, "é 漢 👩‍🚀"], "n": 1.5 });
        let text = value.to_string();
        let safe = escape_hidden(text.as_bytes());
        let safe = str::from_utf8(&safe).expect("text");
        assert!(!safe.replace("👩‍🚀", "").contains(is_hidden), "{safe:?}");
        assert!(
            safe.contains("\\u200b\\u2028\\udb40\\udc41a\\u200db"),
            "{safe}"
        );
        assert!(safe.contains("\\u007f\\u0080\\u009b2J"), "{safe}");
        assert!(safe.contains("é 漢 👩‍🚀"), "{safe}");
        let again: serde_json::Value = serde_json::from_str(safe).expect("JSON");
        assert_eq!(again, value);
        let plain = b"{\r\n\t\"a\": 1}";
        assert!(matches!(escape_hidden(plain), Cow::Borrowed(same) if same == plain));
    }

    #[test]
    fn line_is_joined_and_cut() {
        assert_eq!(sanitized_line("a\nb\t  c", 10), "a b c");
        assert_eq!(sanitized_line("éééé", 3), "ééé…");
    }
}
