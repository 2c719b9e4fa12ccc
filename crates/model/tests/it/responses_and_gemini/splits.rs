//! A stream decodes to the same deltas wherever its bytes are split and however its lines end. A
//! truncated stream never completes.

use turnwire_model::VendorDialect;

use crate::responses_and_gemini::support::{all, decode};

/// Calls `check` for each stream with each kind of line ending.
fn for_each_line_ending(mut check: impl FnMut(&dyn VendorDialect, &str, &[u8])) {
    for (dialect, name, stream) in all() {
        for ending in ["\n", "\r\n", "\r"] {
            check(dialect, name, stream.replace('\n', ending).as_bytes());
        }
    }
}

#[test]
fn stream_split_once_at_any_byte_decodes_equally() {
    for (dialect, name, stream) in all() {
        // Gemini uses CRLF line endings.
        let ending = if dialect.name() == "gemini" {
            "\r\n"
        } else {
            "\n"
        };
        let stream = stream.replace('\n', ending);
        let bytes = stream.as_bytes();
        let unsplit = decode(dialect, [bytes]);
        for position in 0..=bytes.len() {
            let (before, after) = bytes.split_at(position);
            let decoded = decode(dialect, [before, after]);
            assert_eq!(
                decoded,
                unsplit,
                "{} {name} cut at {position}",
                dialect.name()
            );
        }
    }
}

#[test]
fn stream_in_single_bytes_decodes_equally() {
    for_each_line_ending(|dialect, name, bytes| {
        let unsplit = decode(dialect, [bytes]);
        let decoded = decode(dialect, bytes.chunks(1));
        assert_eq!(decoded, unsplit, "{} {name}", dialect.name());
    });
}

#[test]
fn truncated_stream_never_completes() {
    for_each_line_ending(|dialect, name, bytes| {
        let (deltas, error) = decode(dialect, [bytes]);
        if error.is_some() {
            return;
        }
        // The last frame with content is the end, except where only usage follows.
        let stop = deltas.len() - 1;
        let text = String::from_utf8_lossy(bytes);
        let events = text.matches("data: ").count();
        for frames in 0..events - 1 {
            let (position, _) = text
                .match_indices("data: ")
                .nth(frames + 1)
                .expect("a frame");
            let (decoded, error) = decode(dialect, [&bytes[..position]]);
            let has_usage_later = name == "usage_after_end" && frames + 2 == events;
            assert_eq!(error.is_none(), has_usage_later, "{name} after {frames}");
            assert_eq!(
                decoded[..decoded.len().min(stop)],
                deltas[..decoded.len().min(stop)]
            );
        }
    });
}
