//! Splits text into the pieces of deltas. The concatenated pieces are the text, whatever their
//! size; no piece is empty and none splits a character.

/// Longest piece in characters, so that text without spaces streams too.
const PIECE_CHARS_MAX: usize = 24;

/// Splits `text` into pieces of `chunk` characters, or at its words.
pub(crate) fn pieces(text: &str, chunk: Option<usize>) -> Vec<&str> {
    match chunk {
        Some(chars) => by_chars(text, chars.max(1)),
        None => by_words(text),
    }
}

/// Splits `text` into at most `count` pieces of nearly equal length.
pub(crate) fn fragments(text: &str, count: usize) -> Vec<&str> {
    let chars = text.chars().count();
    let count = count.clamp(1, chars.max(1));
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let boundary = |n: usize| starts.get(n * chars / count).copied().unwrap_or(text.len());
    let pieces = (0..count).map(|n| &text[boundary(n)..boundary(n + 1)]);
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// End offset of each piece in the concatenated text.
pub(crate) fn ends<'t>(pieces: impl IntoIterator<Item = &'t str>) -> Vec<u32> {
    let ends = pieces.into_iter().scan(0u32, |end, piece| {
        *end += piece.len() as u32;
        Some(*end)
    });
    ends.collect()
}

fn by_chars(text: &str, chars: usize) -> Vec<&str> {
    let mut out = Vec::new();
    let mut remaining = text;
    while !remaining.is_empty() {
        let end = remaining.char_indices().nth(chars);
        let end = end.map_or(remaining.len(), |(offset, _)| offset);
        let (piece, tail) = remaining.split_at(end);
        out.push(piece);
        remaining = tail;
    }
    out
}

/// Splits before the spaces of each word, as models stream; trailing spaces join the last piece.
fn by_words(text: &str) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    let mut start = 0;
    let mut chars = 0;
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        if (in_word && c.is_whitespace()) || chars == PIECE_CHARS_MAX {
            out.push(&text[start..at]);
            start = at;
            chars = 0;
        }
        in_word = !c.is_whitespace();
        chars += 1;
    }
    let tail = &text[start..];
    match out.last_mut() {
        Some(last) if !in_word && last.chars().count() + chars <= PIECE_CHARS_MAX => {
            *last = &text[start - last.len()..];
        }
        Some(_) | None if tail.is_empty() => {}
        Some(_) | None => out.push(tail),
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_at_words_keep_their_leading_spaces() {
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
    fn fragments_are_nearly_equal_and_never_empty() {
        assert_eq!(
            fragments(r#"{"a":"bc"}"#, 3),
            [r#"{"a"#, r#"":""#, r#"bc"}"#]
        );
        assert_eq!(fragments("{}", 9), ["{", "}"]);
        assert_eq!(fragments("", 3), [""; 0]);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_concatenate_to_the_text(text in any::<String>(), chunk in proptest::option::of(1usize..40)) {
            let split = pieces(&text, chunk);
            prop_assert!(split.iter().all(|piece| !piece.is_empty()));
            prop_assert!(split.iter().all(|piece| piece.chars().count() <= chunk.unwrap_or(PIECE_CHARS_MAX)));
            prop_assert_eq!(split.concat(), text);
        }

        #[test]
        fn any_number_of_fragments_concatenates_to_the_text(text in any::<String>(), count in 0usize..40) {
            let split = fragments(&text, count);
            prop_assert!(split.len() <= count.max(1));
            prop_assert_eq!(split.concat(), text);
        }
    }
}
