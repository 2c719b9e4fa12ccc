//! A parser of server-sent events by the WHATWG rules: a line ends with CR, LF or both, a block with
//! an empty line. It keeps the parts that a browser ignores, so that tests can reject them.

/// One block with all of its lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SseBlock {
    pub(crate) id: Vec<String>,
    pub(crate) event: Vec<String>,
    pub(crate) data: Vec<String>,
    /// Comments, unknown fields, and lines without a colon.
    pub(crate) other: Vec<String>,
}

/// The blocks of a stream, and the text after the last empty line.
pub(crate) fn read(bytes: &[u8]) -> (Vec<SseBlock>, String) {
    let text = std::str::from_utf8(bytes).expect("a stream is UTF-8");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut blocks = Vec::new();
    let mut block = SseBlock::default();
    let mut remaining = text.as_str();
    let mut done = 0;
    while let Some((line, after)) = remaining.split_once('\n') {
        remaining = after;
        if line.is_empty() {
            done = text.len() - remaining.len();
            if block != SseBlock::default() {
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
fn parser_ends_lines_and_blocks_like_a_browser() {
    let (blocks, left) =
        read("\u{feff}: ka\n\ndata: a\rdata:b\r\nid: 1\r\n\r\nx\n\nevent: e".as_bytes());
    let comment = SseBlock {
        other: vec![": ka".into()],
        ..SseBlock::default()
    };
    let data = SseBlock {
        id: vec!["1".into()],
        data: vec!["a".into(), "b".into()],
        ..SseBlock::default()
    };
    let odd = SseBlock {
        other: vec!["x".into()],
        ..SseBlock::default()
    };
    assert_eq!(blocks, [comment, data, odd]);
    assert_eq!(left, "event: e");
}
