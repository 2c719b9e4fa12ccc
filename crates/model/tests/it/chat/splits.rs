//! However a stream is cut into pieces, it says the same.

use proptest::prelude::*;
use turnwire_model::Dialect;

use crate::chat::support::{Told, all, decode, decode_pieces};

/// The stream with other line ends.
fn with_ends(bytes: &[u8], end: &str) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).expect("fixtures are UTF-8");
    text.replace('\n', end).into_bytes()
}

/// The stream behind a byte order mark, with comments and other fields between its frames.
fn with_noise(bytes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).expect("fixtures are UTF-8");
    let noisy = text.replace("\n\n", "\n\n: still here\nid: 7\nretry: 10\n\n");
    format!("\u{feff}: hello\n\n{noisy}").into_bytes()
}

fn cut<'a>(bytes: &'a [u8], at: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = at.iter().map(|at| at % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

fn every_cut_says(dialect: &dyn Dialect, bytes: &[u8], whole: &Told, name: &str) {
    for at in 0..=bytes.len() {
        let told = decode_pieces(dialect, [&bytes[..at], &bytes[at..]]);
        assert_eq!(&told, whole, "{name} cut at {at}");
    }
    let told = decode_pieces(dialect, bytes.chunks(1));
    assert_eq!(&told, whole, "{name} byte by byte");
}

#[test]
fn a_stream_cut_anywhere_says_the_same() {
    for (dialect, name, bytes) in all() {
        let whole = decode(dialect, bytes);
        assert!(!whole.0.is_empty());
        every_cut_says(dialect, bytes, &whole, name);
    }
}

#[test]
fn line_ends_marks_and_comments_change_nothing_in_pieces_of_any_size() {
    for (dialect, name, bytes) in all() {
        let whole = decode(dialect, bytes);
        for variant in [
            with_ends(bytes, "\r\n"),
            with_ends(bytes, "\r"),
            with_noise(bytes),
        ] {
            assert_eq!(decode(dialect, &variant), whole, "{name}");
            for size in 1..=17 {
                let told = decode_pieces(dialect, variant.chunks(size));
                assert_eq!(told, whole, "{name} in pieces of {size}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_cut_in_many_places_says_the_same(
        at in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        for (dialect, name, bytes) in all() {
            let whole = decode(dialect, bytes);
            prop_assert_eq!(decode_pieces(dialect, cut(bytes, &at)), whole, "{}", name);
        }
    }

    #[test]
    fn a_stream_that_is_cut_off_says_a_beginning_of_what_it_says_and_broke(
        at in any::<prop::sample::Index>(),
    ) {
        for (dialect, name, bytes) in all() {
            let whole = decode(dialect, bytes).0;
            let (said, error) = decode(dialect, &bytes[..at.index(bytes.len())]);
            let ended = said.last().is_some_and(|d| matches!(d, turnwire_model::Delta::Stop { .. }));
            prop_assert_eq!(ended, error.is_none(), "{}: an end, or a failure", name);
            if !ended {
                prop_assert_eq!(&said[..], &whole[..said.len()], "{}", name);
            }
        }
    }
}
