//! Streams of every form, cut at every position, compared with a second parser of the format.

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use proptest::prelude::*;

use super::*;

const EVENT_BYTES_MAX: usize = 4 << 20;

/// The type and the data of an event.
type OwnedEvent = (Option<String>, String);

/// The events of a stream that arrives in `chunks`, up to the first error.
fn read(limits: SseLimits, chunks: &[&[u8]]) -> (Vec<OwnedEvent>, Option<SseError>) {
    let mut reader = SseReader::new(limits);
    let mut events = Vec::new();
    for &chunk in chunks {
        let mut input = chunk;
        loop {
            match reader.next_event(&mut input) {
                Ok(Some(event)) => {
                    events.push((event.event.map(str::to_owned), event.data.to_owned()));
                }
                Ok(None) => break,
                Err(error) => return (events, Some(error)),
            }
        }
        assert!(input.is_empty(), "the reader consumes all of a chunk");
    }
    (events, None)
}

fn read_capped(event_bytes_max: usize, chunks: &[&[u8]]) -> (Vec<OwnedEvent>, Option<SseError>) {
    read(SseLimits::per_event(event_bytes_max), chunks)
}

fn events(text: &str) -> Vec<OwnedEvent> {
    let (events, error) = read_capped(EVENT_BYTES_MAX, &[text.as_bytes()]);
    assert_eq!(error, None);
    events
}

fn data(text: &str) -> OwnedEvent {
    (None, text.to_owned())
}

fn named(event: &str, text: &str) -> OwnedEvent {
    (Some(event.to_owned()), text.to_owned())
}

#[test]
fn fields_are_parsed_by_the_whatwg_rules() {
    let cases: [(&str, &[OwnedEvent]); 22] = [
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
        assert_eq!(events(text), expected, "{text:?}");
        for end in ["\r\n", "\r"] {
            let other = text.replace('\n', end);
            assert_eq!(events(&other), expected, "{other:?}");
        }
    }
}

#[test]
fn line_ends_may_be_mixed() {
    let text = "data: a\r\ndata: b\rdata: c\n\r\n\rdata: d\n\ndata: e\r\r\ndata: f\r\n\r";
    assert_eq!(
        events(text),
        [data("a\nb\nc"), data("d"), data("e"), data("f")]
    );
}

#[test]
fn event_is_returned_when_its_last_line_ends() {
    for text in ["data: a\n\n", "data: a\r\n\r", "data: a\r\r"] {
        assert_eq!(events(text), [data("a")], "{text:?}");
    }
}

#[test]
fn byte_order_mark_is_skipped_at_the_start_only() {
    assert_eq!(events("\u{feff}data: a\n\n"), [data("a")]);
    assert_eq!(events("\u{feff}\u{feff}data: a\n\n"), []);
    assert_eq!(events("\n\u{feff}data: a\n\n"), []);
    assert_eq!(events("data: \u{feff}a\n\n"), [data("\u{feff}a")]);
    // An incomplete mark is part of the name of an unknown field.
    let broken: &[u8] = b"\xef\xbbdata: a\n\ndata: b\n\n";
    let (events, error) = read_capped(EVENT_BYTES_MAX, &[broken]);
    assert_eq!((events, error), (vec![data("b")], None));
}

#[test]
fn fields_that_are_not_utf8_are_an_error() {
    for bad in [
        &b"data: \xff\n\n"[..],
        b"data: \xc3\n\n",
        b"data: \xe2\x82\ndata: \xac\n\n",
        b"event: \xff\ndata: a\n\n",
    ] {
        let (events, error) = read_capped(EVENT_BYTES_MAX, &[b"data: a\n\n", bad]);
        assert_eq!((events, error), (vec![data("a")], Some(SseError::Utf8)));
    }
    let (events, error) = read_capped(EVENT_BYTES_MAX, &[b": \xff\nx\xff: y\ndata: a\n\n"]);
    assert_eq!((events, error), (vec![data("a")], None));
}

// G9
#[test]
fn event_larger_than_its_limit_is_an_error() {
    let error = Some(SseError::EventTooLarge { max_bytes: 16 });
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
        let (_, found) = read_capped(16, &[text.as_bytes()]);
        assert_eq!(found, error.filter(|_| !fits), "{text:?}");
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read_capped(16, &bytes).1, found, "{text:?} byte by byte");
    }
}

/// A reader that scans a byte again for every chunk would not finish.
#[test]
fn ten_million_single_byte_chunks_take_linear_time() {
    let large = format!("data: {}\n\n", "x".repeat(4_000_000));
    let small = "data: {\"text\":\"hi\"}\r\n\r\n".repeat(90_000);
    let text = [large.as_str(), small.as_str(), large.as_str()].concat();
    assert!(text.len() > 10_000_000);
    let mut reader = SseReader::new(SseLimits::per_event(EVENT_BYTES_MAX));
    let (mut count, mut bytes) = (0, 0);
    for byte in text.as_bytes().chunks(1) {
        let mut input = byte;
        while let Some(event) = reader.next_event(&mut input).expect("a stream") {
            count += 1;
            bytes += event.data.len();
        }
    }
    assert_eq!((count, bytes), (90_002, 8_000_000 + 90_000 * 13));
}

#[test]
fn buffers_are_reused_between_events() {
    let mut reader = SseReader::new(SseLimits::per_event(EVENT_BYTES_MAX));
    let mut addresses = Vec::new();
    for _ in 0..3 {
        for chunk in [
            "id: 1\nevent: some_name\nda",
            "ta: some words\ndata: and more\n\n",
        ] {
            let mut input = chunk.as_bytes();
            while reader.next_event(&mut input).expect("a stream").is_some() {}
        }
        let fields = &reader.fields;
        let buffers = [&reader.line, &fields.event, &fields.data, &fields.id];
        addresses.push(buffers.map(|buffer| (buffer.as_ptr(), buffer.capacity())));
    }
    assert!(
        addresses.windows(2).all(|two| two[0] == two[1]),
        "{addresses:?}"
    );
}

#[test]
fn block_without_data_has_its_id_and_retry() {
    let text = "retry: 1500\nid: 7\n\n: ka\n\nid: \ndata\n\n\
                id: a\0b\nretry: 1s\nretry: 99999999999999999999\ndata: x\n\n";
    let mut reader = SseReader::new(SseLimits::per_event(EVENT_BYTES_MAX));
    let mut input = text.as_bytes();
    let mut next = || {
        let block = reader.next_block(&mut input).expect("a stream");
        block.map(|block| {
            let id = block.id.map(str::to_owned);
            (id, block.retry_ms, block.data.map(str::to_owned))
        })
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(next(), Some((text("7"), Some(1_500), None)));
    assert_eq!(next(), Some((None, None, None)));
    assert_eq!(next(), Some((text(""), None, text(""))));
    assert_eq!(next(), Some((None, None, text("x"))));
    assert_eq!(next(), None);
}

#[test]
fn line_and_stream_limits_hold_byte_by_byte() {
    let limits = SseLimits {
        line_bytes_max: 8,
        event_bytes_max: 100,
        stream_bytes_max: 40,
    };
    let line = Some(SseError::LineTooLarge { max_bytes: 8 });
    let stream = Some(SseError::StreamTooLarge { max_bytes: 40 });
    let long = "data: ab\n\n".repeat(5);
    for (text, expected) in [
        ("data: ab\ndata: cd\n\n", None),
        ("data: abc", line),
        (": 7654321", line),
        (&long[..40], None),
        (&long, stream),
    ] {
        assert_eq!(read(limits, &[text.as_bytes()]).1, expected, "{text:?}");
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(limits, &bytes).1, expected, "{text:?} byte by byte");
    }
}

/// Valid fields, comments, and names that are almost those of fields.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "data: ?[ -~äö🙂]{0,12}",
        2 => Just(String::new()),
        1 => "event: ?[a-z_]{0,8}",
        1 => ":[ -~é]{0,8}",
        1 => "(id|retry|data|event|dat|datax)(: ?[0-9]{0,3})?",
    ]
}

/// A stream with line ends of every kind.
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

/// `bytes`, cut at `places`.
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

/// The events that `sse-stream` finds; blocks without data are dropped.
fn reference(bytes: &[u8]) -> Vec<OwnedEvent> {
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
    fn any_cut_gives_the_events_of_the_reference_parser(
        text in stream(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let expected = (reference(text.as_bytes()), None);
        prop_assert_eq!(&read_capped(EVENT_BYTES_MAX, &[text.as_bytes()]), &expected);
        let pieces = cut(text.as_bytes(), &places);
        prop_assert_eq!(&read_capped(EVENT_BYTES_MAX, &pieces), &expected);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        prop_assert_eq!(&read_capped(EVENT_BYTES_MAX, &bytes), &expected);
    }

    #[test]
    fn arbitrary_bytes_read_the_same_for_any_cut(
        bytes in prop::collection::vec(
            prop_oneof![
                prop::sample::select(b"data:event \n\r\xef\xbb\xbf".to_vec()),
                any::<u8>(),
            ],
            0..200,
        ),
        event_bytes_max in 0_usize..64,
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let expected = read_capped(event_bytes_max, &[&bytes]);
        prop_assert_eq!(&read_capped(event_bytes_max, &cut(&bytes, &places)), &expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read_capped(event_bytes_max, &single), &expected);
    }
}
