//! Cutting text into deltas. Joined again, the pieces are the text, whatever the size; no piece
//! is empty and none splits a character.

/// The most characters of one word, so that text without spaces streams too.
const WORD_MAX: usize = 24;

/// `text` in pieces of `chunk` characters, or at its words.
pub(crate) fn pieces(text: &str, chunk: Option<usize>) -> Vec<&str> {
    match chunk {
        Some(chars) => by_chars(text, chars.max(1)),
        None => by_words(text),
    }
}

/// `text` in at most `count` pieces of nearly the same number of characters.
pub(crate) fn fragments(text: &str, count: usize) -> Vec<&str> {
    let chars = text.chars().count();
    let count = count.clamp(1, chars.max(1));
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let edge = |n: usize| starts.get(n * chars / count).copied().unwrap_or(text.len());
    let cuts = (0..count).map(|n| &text[edge(n)..edge(n + 1)]);
    cuts.filter(|piece| !piece.is_empty()).collect()
}

/// Where each of `pieces` ends in all of them.
pub(crate) fn ends<'t>(pieces: impl IntoIterator<Item = &'t str>) -> Vec<u32> {
    let ends = pieces.into_iter().scan(0u32, |end, piece| {
        *end += piece.len() as u32;
        Some(*end)
    });
    ends.collect()
}

fn by_chars(text: &str, chars: usize) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(chars).map_or(rest.len(), |c| c.0);
        let (piece, after) = rest.split_at(end);
        out.push(piece);
        rest = after;
    }
    out
}

/// A word with the spaces before it, as models speak; the last one also with those after it.
fn by_words(text: &str) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    let mut start = 0;
    let mut chars = 0;
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        if (in_word && c.is_whitespace()) || chars == WORD_MAX {
            out.push(&text[start..at]);
            start = at;
            chars = 0;
        }
        in_word = !c.is_whitespace();
        chars += 1;
    }
    let rest = &text[start..];
    match out.last_mut() {
        Some(last) if !in_word && last.chars().count() + chars <= WORD_MAX => {
            *last = &text[start - last.len()..];
        }
        Some(_) | None if rest.is_empty() => {}
        Some(_) | None => out.push(rest),
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_keep_the_spaces_before_them() {
        assert_eq!(
            pieces("Hello, you  two.\n", None),
            ["Hello,", " you", "  two.\n"]
        );
        assert_eq!(pieces("word ", None), ["word "]);
        assert_eq!(pieces(" ", None), [" "]);
        assert_eq!(pieces("", None), [""; 0]);
        let long = "字".repeat(30);
        assert_eq!(pieces(&long, None), [&long[..72], &long[72..]]);
    }

    #[test]
    fn fragments_are_nearly_equal_and_never_more_than_characters() {
        assert_eq!(
            fragments(r#"{"a":"bc"}"#, 3),
            [r#"{"a"#, r#"":""#, r#"bc"}"#]
        );
        assert_eq!(fragments("{}", 9), ["{", "}"]);
        assert_eq!(fragments("", 3), [""; 0]);
    }

    proptest! {
        #[test]
        fn any_chunk_size_gives_the_same_text(text in any::<String>(), chunk in proptest::option::of(1usize..40)) {
            let cut = pieces(&text, chunk);
            prop_assert!(cut.iter().all(|piece| !piece.is_empty()));
            prop_assert!(cut.iter().all(|piece| piece.chars().count() <= chunk.unwrap_or(WORD_MAX)));
            prop_assert_eq!(cut.concat(), text);
        }

        #[test]
        fn any_number_of_fragments_gives_the_same_text(text in any::<String>(), count in 0usize..40) {
            let cut = fragments(&text, count);
            prop_assert!(cut.len() <= count.max(1));
            prop_assert_eq!(cut.concat(), text);
        }
    }
}
