//! The strict reader on good and bad bytes.

use super::*;
use crate::rng::SeededRng;

const GOOD: &str = "retry: 1500\nid: evt_00010000000001-0\nevent: response_id\n\
    data: {\"event_type\":\"response_id\"}\n\n\
    : ka\n\n\
    id: evt_00010000000002.000001-0\nevent: text\n\
    data: {\"event_type\":\"text\",\"chunk\":\"急がない 🌊 \\n\"}\n\n\
    id: evt_00010000000003-1\nevent: completed\ndata: {\"event_type\":\"completed\"}\n\n\
    data: [DONE]\n\n";

fn all(parser: &mut Parser) -> Result<Vec<Block>, Garbled> {
    let mut blocks = Vec::new();
    while let Some(block) = parser.take()? {
        blocks.push(block);
    }
    Ok(blocks)
}

#[test]
fn parsed_blocks_do_not_depend_on_chunking() {
    let mut whole = Parser::default();
    whole.push(GOOD.as_bytes());
    let whole = all(&mut whole).expect("a good stream");
    let types: Vec<&str> = whole.iter().map(Block::event).collect();
    assert_eq!(types, ["response_id", "", "text", "completed", ""]);
    assert_eq!(whole[2].field("chunk"), "急がない 🌊 \n");
    assert!(whole[3].is_terminal());
    assert!(!whole[2].is_terminal());
    assert!(whole[0].frame_text().starts_with("id: "));
    assert_eq!(
        whole.iter().map(|b| b.text.as_str()).collect::<String>(),
        GOOD
    );
    let mut rng = SeededRng::new(5);
    for _ in 0..200 {
        let (mut parser, mut blocks) = (Parser::default(), Vec::new());
        let mut rest = GOOD.as_bytes();
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rng.index(rest.len()) + 1);
            parser.push(piece);
            blocks.extend(all(&mut parser).expect("a good stream"));
            rest = more;
        }
        assert_eq!(blocks, whole);
        assert!(parser.is_done() && parser.tail().is_empty());
    }
}

#[test]
fn truncated_tail_may_still_become_a_block() {
    for cut in 0..GOOD.len() {
        let mut parser = Parser::default();
        parser.push(&GOOD.as_bytes()[..cut]);
        let blocks = all(&mut parser).expect("the beginning of a good stream");
        assert!(
            parser.tail().is_empty() || begins(parser.tail(), blocks.is_empty()),
            "{cut}: {:?}",
            String::from_utf8_lossy(parser.tail())
        );
    }
    for bad in [
        "x",
        "event: ",
        ": kb",
        "data: {",
        "id: x",
        "data: [DONE]\n\nx",
    ] {
        assert!(!begins(bad.as_bytes(), false), "{bad}");
    }
    assert!(!begins(b"id: evt_", true));
}

#[test]
fn malformed_stream_is_rejected() {
    let good = "id: evt_00010000000001-0\nevent: text\ndata: {\"event_type\":\"text\"}\n\n";
    assert!(Block::read(good, false).is_ok());
    for (from, to) in [
        ("id: ", "id:"),
        ("evt_00010000000001-0", "evt_00010000000001"),
        ("evt_00010000000001-0", "7"),
        ("event: text\n", ""),
        ("event: text", "event: Text"),
        ("event: text", "event: usage"),
        ("data: {", "data: ["),
        ("\n\n", "\r\n\r\n"),
        ("\n\n", "\nretry: 3\n\n"),
        ("id: ", "retry: 1000\nid: "),
        ("id: ", "\u{feff}id: "),
        ("data: ", "data: {}\ndata: "),
        ("text\"", "te\0xt\""),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        assert!(Block::read(&bad, false).is_err(), "{bad:?}");
    }
    for first in ["", "retry: \n", "retry: 1s\n", "retry:100\n"] {
        assert!(
            Block::read(&format!("{first}{good}"), true).is_err(),
            "{first:?}"
        );
    }
    let mut parser = Parser::default();
    parser.push(GOOD.as_bytes());
    parser.push(b": ka\n\n");
    let end = all(&mut parser).expect_err("bytes after the end");
    assert_eq!(end.why, "bytes after the sentinel");
    let mut parser = Parser::default();
    parser.push(b"retry: 1\nid: evt_\xff\n\n");
    assert_eq!(parser.take().expect_err("no text").why, "no UTF-8");
}
