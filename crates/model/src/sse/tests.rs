//! Every form a stream can have, cut at every place, and held against another reader of the same
//! format.

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use proptest::prelude::*;

use super::*;

type Seen = (Option<String>, String);

/// The frames of a stream that comes in these pieces, up to the first error.
fn read(max_bytes: usize, pieces: &[&[u8]]) -> (Vec<Seen>, Option<SseError>) {
    let mut sse = Sse::new(max_bytes);
    let mut seen = Vec::new();
    for &piece in pieces {
        let mut rest = piece;
        loop {
            match sse.pull(&mut rest) {
                Ok(Some(frame)) => {
                    seen.push((frame.event.map(str::to_owned), frame.data.to_owned()));
                }
                Ok(None) => break,
                Err(error) => return (seen, Some(error)),
            }
        }
        assert!(rest.is_empty(), "all of a piece is taken");
    }
    (seen, None)
}

fn whole(text: &str) -> Vec<Seen> {
    let (seen, error) = read(FRAME_BYTES_MAX, &[text.as_bytes()]);
    assert_eq!(error, None);
    seen
}

fn data(text: &str) -> Seen {
    (None, text.to_owned())
}

fn named(event: &str, text: &str) -> Seen {
    (Some(event.to_owned()), text.to_owned())
}

#[test]
fn fields_are_read_as_the_format_says() {
    let cases: [(&str, &[Seen]); 22] = [
        ("", &[]),
        ("\n\n\n", &[]),
        ("data: a\n\n", &[data("a")]),
        ("data:a\n\n", &[data("a")]),
        ("data:  a\n\n", &[data(" a")]),
        ("data: a\ndata: b\n\n", &[data("a\nb")]),
        ("data\n\n", &[data("")]),
        ("data:\n\n", &[data("")]),
        ("data:\ndata:\n\n", &[data("\n")]),
        ("event: x\ndata: a\n\n", &[named("x", "a")]),
        ("data: a\nevent: x\n\n", &[named("x", "a")]),
        ("event: x\nevent: y\ndata: a\n\n", &[named("y", "a")]),
        ("event: x\nevent:\ndata: a\n\n", &[data("a")]),
        ("event: x\n\ndata: a\n\n", &[data("a")]),
        (
            "event: x\ndata: a\n\ndata: b\n\n",
            &[named("x", "a"), data("b")],
        ),
        (": hello\n\ndata: a\n: more\n\n", &[data("a")]),
        ("id: 7\nretry: 10\ndata: a\n\n", &[data("a")]),
        ("Data: a\ndatas: b\n data: c\nunknown\n\n", &[]),
        ("data: a:b: c\n\n", &[data("a:b: c")]),
        ("data: a\n", &[]),
        ("data: a\n\ndata: b", &[data("a")]),
        (
            "data: {\"t\":\"grüße 🙂\"}\n\n",
            &[data("{\"t\":\"grüße 🙂\"}")],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(whole(text), expected, "{text:?}");
        for end in ["\r\n", "\r"] {
            let other = text.replace('\n', end);
            assert_eq!(whole(&other), expected, "{other:?}");
        }
    }
}

#[test]
fn ends_of_lines_may_be_mixed() {
    let text = "data: a\r\ndata: b\rdata: c\n\r\n\rdata: d\n\ndata: e\r\r\ndata: f\r\n\r";
    assert_eq!(
        whole(text),
        [data("a\nb\nc"), data("d"), data("e"), data("f")]
    );
}

#[test]
fn a_frame_is_given_as_soon_as_its_last_line_ends() {
    for text in ["data: a\n\n", "data: a\r\n\r", "data: a\r\r"] {
        assert_eq!(whole(text), [data("a")], "{text:?}");
    }
}

#[test]
fn a_mark_counts_as_one_only_at_the_beginning() {
    assert_eq!(whole("\u{feff}data: a\n\n"), [data("a")]);
    assert_eq!(whole("\u{feff}\u{feff}data: a\n\n"), []);
    assert_eq!(whole("\n\u{feff}data: a\n\n"), []);
    assert_eq!(whole("data: \u{feff}a\n\n"), [data("\u{feff}a")]);
    // A mark that is begun and not ended is part of a field's name that nobody knows.
    let broken: &[u8] = b"\xef\xbbdata: a\n\ndata: b\n\n";
    let (seen, error) = read(FRAME_BYTES_MAX, &[broken]);
    assert_eq!((seen, error), (vec![data("b")], None));
}

#[test]
fn what_is_not_utf_8_is_an_error_and_comments_do_not_matter() {
    for bad in [
        &b"data: \xff\n\n"[..],
        b"data: \xc3\n\n",
        b"data: \xe2\x82\ndata: \xac\n\n",
        b"event: \xff\ndata: a\n\n",
    ] {
        let (seen, error) = read(FRAME_BYTES_MAX, &[b"data: a\n\n", bad]);
        assert_eq!((seen, error), (vec![data("a")], Some(SseError::Utf8)));
    }
    let (seen, error) = read(FRAME_BYTES_MAX, &[b": \xff\nx\xff: y\ndata: a\n\n"]);
    assert_eq!((seen, error), (vec![data("a")], None));
}

#[test]
fn g9_a_frame_has_so_many_bytes_and_no_more_in_whatever_form() {
    let error = Some(SseError::TooLarge { max_bytes: 16 });
    let many = "data:\n".repeat(17);
    for (text, fits) in [
        ("data: 0123456789\n\n", true),
        ("data: 01234567890\n\n", false),
        ("data: 0123456789\n\ndata: 0123456789\n\n", true),
        (": 12345678901234\n: 12345678901234\n\n", true),
        (": 123456789012345", false),
        ("event: 12345678\n\nevent: 12345678\n\n", true),
        ("event: 12345678\ndata: 123\n\n", false),
        (many.as_str(), false),
    ] {
        let (_, found) = read(16, &[text.as_bytes()]);
        assert_eq!(found, error.filter(|_| !fits), "{text:?}");
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(16, &bytes).1, found, "{text:?} byte by byte");
    }
}

/// A reader that looks at a byte more than once per piece would not come to the end of this.
#[test]
fn ten_million_bytes_one_by_one_are_read_in_one_pass() {
    let large = format!("data: {}\n\n", "x".repeat(4_000_000));
    let small = "data: {\"text\":\"hi\"}\r\n\r\n".repeat(90_000);
    let text = [large.as_str(), small.as_str(), large.as_str()].concat();
    assert!(text.len() > 10_000_000);
    let mut sse = Sse::default();
    let (mut frames, mut bytes) = (0, 0);
    for byte in text.as_bytes().chunks(1) {
        let mut rest = byte;
        while let Some(frame) = sse.pull(&mut rest).expect("a stream") {
            frames += 1;
            bytes += frame.data.len();
        }
    }
    assert_eq!((frames, bytes), (90_002, 8_000_000 + 90_000 * 13));
}

#[test]
fn buffers_are_used_again() {
    let mut sse = Sse::default();
    let mut taken = Vec::new();
    for _ in 0..3 {
        for piece in ["event: some_name\nda", "ta: some words\ndata: and more\n\n"] {
            let mut rest = piece.as_bytes();
            while sse.pull(&mut rest).expect("a stream").is_some() {}
        }
        let places = [&sse.line, &sse.event, &sse.data].map(|buffer| buffer.as_ptr());
        taken.push((places, sse.line.capacity() + sse.data.capacity()));
    }
    assert!(taken.windows(2).all(|two| two[0] == two[1]), "{taken:?}");
}

/// Lines that mean something, lines that mean nothing, and lines that nearly mean something.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "data: ?[ -~äö🙂]{0,12}",
        2 => Just(String::new()),
        1 => "event: ?[a-z_]{0,8}",
        1 => ":[ -~é]{0,8}",
        1 => "(id|retry|data|event|dat|datax)(: ?[0-9]{0,3})?",
    ]
}

/// A stream with ends of lines of every kind.
fn stream() -> impl Strategy<Value = String> {
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let lines = prop::collection::vec((line(), end), 0..24);
    (any::<bool>(), lines).prop_map(|(mark, lines)| {
        let mut text = String::from(if mark { "\u{feff}" } else { "" });
        for (line, end) in lines {
            text.push_str(&line);
            text.push_str(end);
        }
        text
    })
}

/// The same bytes, cut at these places.
fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|at| at.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for place in places.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces
}

/// What another reader makes of it, in our terms: blocks without data are no frames.
fn reference(bytes: &[u8]) -> Vec<Seen> {
    let bytes = Bytes::copy_from_slice(bytes);
    let pieces = futures_util::stream::iter([Ok::<_, std::io::Error>(bytes)]);
    let blocks = sse_stream::SseByteStream::new(pieces).map(|block| block.expect("a block"));
    let blocks = blocks.collect::<Vec<_>>().now_or_never().expect("no waits");
    let frames = blocks.into_iter().filter_map(|block| {
        let event = block.event.filter(|event| !event.is_empty());
        Some((event, block.data?))
    });
    frames.collect()
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_frames_as_another_reader_sees(
        text in stream(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let expected = (reference(text.as_bytes()), None);
        prop_assert_eq!(&read(FRAME_BYTES_MAX, &[text.as_bytes()]), &expected);
        let pieces = cut(text.as_bytes(), &places);
        prop_assert_eq!(&read(FRAME_BYTES_MAX, &pieces), &expected);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        prop_assert_eq!(&read(FRAME_BYTES_MAX, &bytes), &expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_any_cut_of_them_reads_the_same(
        bytes in prop::collection::vec(
            prop_oneof![
                prop::sample::select(b"data:event \n\r\xef\xbb\xbf".to_vec()),
                any::<u8>(),
            ],
            0..200,
        ),
        max_bytes in 0_usize..64,
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let expected = read(max_bytes, &[&bytes]);
        prop_assert_eq!(&read(max_bytes, &cut(&bytes, &places)), &expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(max_bytes, &single), &expected);
    }
}
