//! A stream decodes to the same deltas however its bytes are split. Line endings, comments and byte
//! order marks make no difference either.

use proptest::prelude::*;
use turnwire_model::VendorDialect;

use crate::anthropic_and_chat::support::{DecodedStream, all, decode, decode_pieces};

/// The stream with other line endings.
fn with_ends(bytes: &[u8], end: &str) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).expect("fixtures are UTF-8");
    text.replace('\n', end).into_bytes()
}

/// The stream after a byte order mark, with comments and other fields between its frames.
fn with_noise(bytes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).expect("fixtures are UTF-8");
    let with_comments = text.replace("\n\n", "\n\n: still here\nid: 7\nretry: 10\n\n");
    format!("\u{feff}: hello\n\n{with_comments}").into_bytes()
}

fn split<'a>(bytes: &'a [u8], at: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = at.iter().map(|at| at % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

fn assert_equal_when_split(
    dialect: &dyn VendorDialect,
    bytes: &[u8],
    unsplit: &DecodedStream,
    name: &str,
) {
    for at in 0..=bytes.len() {
        let decoded = decode_pieces(dialect, [&bytes[..at], &bytes[at..]]);
        assert_eq!(&decoded, unsplit, "{name} cut at {at}");
    }
    let decoded = decode_pieces(dialect, bytes.chunks(1));
    assert_eq!(&decoded, unsplit, "{name} byte by byte");
}

#[test]
fn stream_split_once_anywhere_decodes_equally() {
    for (dialect, name, bytes) in all() {
        let unsplit = decode(dialect, bytes);
        assert!(!unsplit.0.is_empty());
        assert_equal_when_split(dialect, bytes, &unsplit, name);
    }
}

#[test]
fn line_endings_bom_and_comments_do_not_change_the_deltas() {
    for (dialect, name, bytes) in all() {
        let unsplit = decode(dialect, bytes);
        for variant in [
            with_ends(bytes, "\r\n"),
            with_ends(bytes, "\r"),
            with_noise(bytes),
        ] {
            assert_eq!(decode(dialect, &variant), unsplit, "{name}");
            for size in 1..=17 {
                let decoded = decode_pieces(dialect, variant.chunks(size));
                assert_eq!(decoded, unsplit, "{name} in pieces of {size}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stream_split_in_many_places_decodes_equally(
        at in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        for (dialect, name, bytes) in all() {
            let unsplit = decode(dialect, bytes);
            prop_assert_eq!(decode_pieces(dialect, split(bytes, &at)), unsplit, "{}", name);
        }
    }

    #[test]
    fn truncated_stream_decodes_to_a_prefix_and_an_error(
        at in any::<prop::sample::Index>(),
    ) {
        for (dialect, name, bytes) in all() {
            let unsplit = decode(dialect, bytes).0;
            let (deltas, error) = decode(dialect, &bytes[..at.index(bytes.len())]);
            let has_stop = deltas.last().is_some_and(|d| matches!(d, turnwire_model::Delta::Stop { .. }));
            prop_assert_eq!(has_stop, error.is_none(), "{}: an end, or a failure", name);
            if !has_stop {
                prop_assert_eq!(&deltas[..], &unsplit[..deltas.len()], "{}", name);
            }
        }
    }
}
