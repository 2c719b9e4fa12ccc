//! Classes of characters that people cannot see, or see in another place than they are.
//!
//! [`is_printable`] and [`is_combining`] use the Unicode tables of the standard library;
//! [`is_invisible`] is the property `Default_Ignorable_Code_Point` of Unicode 16
//! (DerivedCoreProperties.txt) with the annotation characters.

/// Scripts that need joiners, and emoji, are from here on; Latin, Greek and Cyrillic are before.
const FIRST_JOINING: char = '\u{590}';

/// The most combining characters in a row: more than any script stacks on one letter.
pub(crate) const COMBINING_MAX: usize = 8;

/// True for characters without a glyph that Unicode asks to ignore in display: zero-width
/// characters, bidirectional controls, tags, variation selectors, fillers, the soft hyphen.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// True for the line and paragraph separators, which some terminals treat as a line end.
pub(crate) fn is_line_separator(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// True for the zero-width joiner and non-joiner.
pub(crate) fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// True for the selectors of the text and the emoji form of the character before.
pub(crate) fn is_emoji_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// True if a joiner beside `c` can change how `c` is written.
pub(crate) fn takes_joiner(c: char) -> bool {
    c >= FIRST_JOINING && (!is_invisible(c) || is_emoji_selector(c)) && !c.is_whitespace()
}

/// True for a character that is drawn on the one before it.
pub(crate) fn is_combining(c: char) -> bool {
    !c.is_ascii() && is_printable(c) && c.escape_debug().next() != Some(c)
}

/// False for controls, format characters, private and unassigned characters, separators, and every
/// space but U+0020.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // After a letter, `escape_debug` escapes exactly the characters that are not printable.
    let mut text = [b'a', 0, 0, 0, 0];
    let length = c.encode_utf8(&mut text[1..]).len();
    let text = str::from_utf8(&text[..=length]).unwrap_or_default();
    text.escape_debug().nth(1) == Some(c)
}

/// True for symbols whose glyph is blank.
fn is_blank(c: char) -> bool {
    matches!(c, '\u{2800}' | '\u{fffc}' | '\u{1d159}')
}

/// `text` with every character that a person cannot see as it is written as `\u{…}`: invisible and
/// blank characters, controls, separators, characters without an assigned glyph, combining
/// characters without a letter, and all after [`COMBINING_MAX`] of them.
pub(crate) fn escape_deceptive(text: &str) -> String {
    use std::fmt::Write as _;

    let mut out = String::with_capacity(text.len());
    let mut has_letter = false;
    let mut combining = 0;
    for c in text.chars() {
        let is_on_letter = is_combining(c);
        let is_shown = is_printable(c)
            && !is_invisible(c)
            && !is_blank(c)
            && (!is_on_letter || (has_letter && combining < COMBINING_MAX));
        if is_on_letter {
            combining += 1;
        } else {
            (has_letter, combining) = (c.is_alphabetic(), 0);
        }
        match is_shown {
            true => out.push(c),
            false => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_characters_stay() {
        for plain in ["rm -rf ~ \"x\" \\", "é 漢字 हिन्दी עברית 🚀", "e\u{301}"]
        {
            assert_eq!(escape_deceptive(plain), plain);
        }
        for hidden in [
            '\0',
            '\u{7}',
            '\t',
            '\n',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{a0}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{2003}',
            '\u{200b}',
            '\u{200d}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{206f}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{e000}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{378}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{10fffd}',
        ] {
            let escaped = format!("a\\u{{{:x}}}b", u32::from(hidden));
            assert_eq!(escape_deceptive(&format!("a{hidden}b")), escaped);
        }
    }

    #[test]
    fn combining_characters_need_a_letter_and_are_few() {
        assert_eq!(escape_deceptive("\"\u{301}"), "\"\\u{301}");
        let flood = escape_deceptive(&format!("a{}", "\u{301}".repeat(COMBINING_MAX + 1)));
        assert!(flood.ends_with("\u{301}\\u{301}"), "{flood:?}");
    }
}
