//! The deny list: what it veils, and that no way to cut a text gets around it.

use proptest::prelude::*;

use super::*;

fn veiled(words: &[&str], pieces: &[&str]) -> String {
    let mut list = DenyList::new(words.iter().copied());
    let mut out = String::new();
    for piece in pieces {
        list.push(piece, &mut out);
        assert!(list.held.chars().count() <= HELD_CHARS_MAX);
    }
    list.finish(&mut out);
    out
}

#[test]
fn whole_words_are_veiled_whatever_their_case() {
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
        assert_eq!(veiled(&words, &[text]), expected, "{text}");
    }
}

#[test]
fn a_block_does_not_go_on_in_the_next() {
    let mut list = DenyList::new(["acme"]);
    let mut out = String::new();
    list.push("ac", &mut out);
    list.finish(&mut out);
    list.push("me acme", &mut out);
    list.finish(&mut out);
    assert_eq!(out, "acme •••");
}

#[test]
fn a_word_that_is_too_long_is_known_by_its_beginning() {
    let long = "x".repeat(HELD_CHARS_MAX + 10);
    assert_eq!(
        veiled(&[&long], &[&long, " y"]),
        format!("•••{} y", "x".repeat(10))
    );
}

#[test]
fn nothing_and_blanks_are_no_words() {
    assert_eq!(veiled(&["", "  "], &["a b"]), "a b");
}

proptest! {
    #[test]
    fn how_a_text_is_cut_does_not_matter_and_little_is_kept_back(
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
        prop_assert_eq!(veiled(&words, &pieces), veiled(&words, &[&text]));
    }
}
