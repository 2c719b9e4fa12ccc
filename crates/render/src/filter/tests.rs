//! The deny list: which words are masked, and that splitting the text cannot bypass it.

use proptest::prelude::*;

use super::*;

fn masked(words: &[&str], pieces: &[&str]) -> String {
    let mut list = DenyList::new(words.iter().copied());
    let mut out = String::new();
    for piece in pieces {
        list.push(piece, &mut out);
        assert!(list.buffered.chars().count() <= BUFFERED_CHARS_MAX);
    }
    list.finish(&mut out);
    out
}

#[test]
fn complete_words_are_masked_ignoring_case() {
    for (text, expected) in [
        ("Acme and ACME.", "••• and •••."),
        ("acmeology, preacme", "acmeology, preacme"),
        ("acme", "•••"),
        ("(acme)", "(•••)"),
        ("ÄRGER im Café", "••• im Café"),
        ("acme gold acme golden", "••• ••• golden"),
        ("acme_x", "acme_x"),
        ("the @handle is", "the ••• is"),
        ("a@handle", "a•••"),
        ("@handles", "@handles"),
    ] {
        let words = ["acme", "ärger", "acme gold", " @Handle "];
        assert_eq!(masked(&words, &[text]), expected, "{text}");
    }
}

#[test]
fn longest_word_is_masked_in_any_order_of_the_list() {
    for words in [["acme", "acme gold"], ["acme gold", "acme"]] {
        assert_eq!(masked(&words, &["my acme gold card"]), "my ••• card");
    }
}

#[test]
fn word_split_over_two_blocks_is_not_masked() {
    let mut list = DenyList::new(["acme"]);
    let mut out = String::new();
    list.push("ac", &mut out);
    list.finish(&mut out);
    list.push("me acme", &mut out);
    list.finish(&mut out);
    assert_eq!(out, "acme •••");
}

#[test]
fn overlong_word_matches_by_its_beginning() {
    let long = "x".repeat(BUFFERED_CHARS_MAX + 10);
    assert_eq!(
        masked(&[&long], &[&long, " y"]),
        format!("•••{} y", "x".repeat(10))
    );
}

#[test]
fn empty_and_blank_words_are_ignored() {
    assert_eq!(masked(&["", "  "], &["a b"]), "a b");
}

proptest! {
    #[test]
    fn output_is_independent_of_piece_boundaries(
        words in proptest::collection::vec("[abÄä ]{1,5}|[ab]{60,70}", 0..4),
        text in "[abAÄä .]{0,160}",
        cuts in proptest::collection::vec(0..160_usize, 0..12),
    ) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|&cut| text.is_char_boundary(cut)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&text[from..cut]);
            from = cut;
        }
        pieces.push(&text[from..]);
        prop_assert_eq!(masked(&words, &pieces), masked(&words, &[&text]));
    }
}
