//! A stream says the same wherever its bytes are cut, and however its lines end.

use turnwire_model::Dialect;

use crate::more::support::{all, decode};

/// Each stream with each of the line ends that vendors use.
fn each(mut check: impl FnMut(&dyn Dialect, &str, &[u8])) {
    for (dialect, name, stream) in all() {
        for ending in ["\n", "\r\n", "\r"] {
            check(dialect, name, stream.replace('\n', ending).as_bytes());
        }
    }
}

#[test]
fn cut_once_at_every_byte() {
    for (dialect, name, stream) in all() {
        // Google ends its lines with CRLF.
        let ending = if dialect.name() == "gemini" {
            "\r\n"
        } else {
            "\n"
        };
        let stream = stream.replace('\n', ending);
        let bytes = stream.as_bytes();
        let whole = decode(dialect, [bytes]);
        for at in 0..=bytes.len() {
            let (before, behind) = bytes.split_at(at);
            let told = decode(dialect, [before, behind]);
            assert_eq!(told, whole, "{} {name} cut at {at}", dialect.name());
        }
    }
}

#[test]
fn one_byte_at_a_time() {
    each(|dialect, name, bytes| {
        let whole = decode(dialect, [bytes]);
        let told = decode(dialect, bytes.chunks(1));
        assert_eq!(told, whole, "{} {name}", dialect.name());
    });
}

#[test]
fn cut_short_anywhere_it_never_ends_well() {
    each(|dialect, name, bytes| {
        let (deltas, error) = decode(dialect, [bytes]);
        if error.is_some() {
            return;
        }
        // The last frame that says something is the end, except where only tokens follow it.
        let stop = deltas.len() - 1;
        let text = String::from_utf8_lossy(bytes);
        let events = text.matches("data: ").count();
        for frames in 0..events - 1 {
            let (at, _) = text
                .match_indices("data: ")
                .nth(frames + 1)
                .expect("a frame");
            let (told, error) = decode(dialect, [&bytes[..at]]);
            let is_counted_later = name == "usage_behind" && frames + 2 == events;
            assert_eq!(error.is_none(), is_counted_later, "{name} after {frames}");
            assert_eq!(told[..told.len().min(stop)], deltas[..told.len().min(stop)]);
        }
    });
}
