//! A reader of server-sent events, after the WHATWG's rules for parsing an event stream: a line
//! ends with CR, LF or both, a block with an empty line. It keeps what a browser would pass over,
//! so that nothing odd can hide in it.

/// One block, with all that stood in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Block {
    pub(crate) id: Vec<String>,
    pub(crate) event: Vec<String>,
    pub(crate) data: Vec<String>,
    /// Comments, unknown fields, and lines without a colon.
    pub(crate) other: Vec<String>,
}

/// The blocks of a stream, and what is left behind the last empty line.
pub(crate) fn read(bytes: &[u8]) -> (Vec<Block>, String) {
    let text = std::str::from_utf8(bytes).expect("a stream is UTF-8");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut blocks = Vec::new();
    let mut block = Block::default();
    let mut rest = text.as_str();
    let mut done = 0;
    while let Some((line, after)) = rest.split_once('\n') {
        rest = after;
        if line.is_empty() {
            done = text.len() - rest.len();
            if block != Block::default() {
                blocks.push(std::mem::take(&mut block));
            }
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "id" => block.id.push(value),
            "event" => block.event.push(value),
            "data" => block.data.push(value),
            _ => block.other.push(line.to_owned()),
        }
    }
    (blocks, text[done..].to_owned())
}

#[test]
fn the_reader_ends_lines_and_blocks_where_a_browser_does() {
    let (blocks, left) =
        read("\u{feff}: ka\n\ndata: a\rdata:b\r\nid: 1\r\n\r\nx\n\nevent: e".as_bytes());
    let comment = Block {
        other: vec![": ka".into()],
        ..Block::default()
    };
    let data = Block {
        id: vec!["1".into()],
        data: vec!["a".into(), "b".into()],
        ..Block::default()
    };
    let odd = Block {
        other: vec!["x".into()],
        ..Block::default()
    };
    assert_eq!(blocks, [comment, data, odd]);
    assert_eq!(left, "event: e");
}
