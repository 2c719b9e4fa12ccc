//! Rust text with everything that is not code blanked out, byte for byte.
//!
//! In: a file's text. Out: the same number of bytes and lines, with comments and the inside of
//! literals as spaces, and the stretches that exist only in tests. It keeps offsets, so a find in
//! the code is a line in the file. It is a lexer for tidy checks, not a parser.

use std::ops::Range;

/// A file's code, and which parts of it only tests compile.
#[derive(Debug)]
pub struct Scan {
    pub code: String,
    tests: Vec<Range<usize>>,
}

impl Scan {
    /// Reads a file's text.
    pub fn new(text: &str) -> Self {
        let code = blank(text);
        let tests = test_ranges(&code);
        Self { code, tests }
    }

    /// True if only tests compile the byte at `at`.
    pub fn in_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// The line of the byte at `at`, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.code.as_bytes()[..at]
            .iter()
            .filter(|&&b| b == b'\n')
            .count()
            + 1
    }

    /// Offsets of `needle` in the code, tests left out.
    pub fn finds<'a>(&'a self, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.code
            .match_indices(needle)
            .map(|(at, _)| at)
            .filter(|&at| !self.in_test(at))
    }
}

/// The end of the block whose `{` stands at `open`: one past its `}`.
pub fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// True if a byte may be part of an identifier.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn test_ranges(code: &str) -> Vec<Range<usize>> {
    let marks = [
        "#[cfg(test)]",
        "#[cfg(all(test,",
        "#[test]",
        "#[tokio::test",
    ];
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for mark in marks {
        for (at, _) in code.match_indices(mark) {
            let tail = &code[at + mark.len()..];
            // The item's body, or its `;` where the body is another file.
            let Some(stop) = tail.find(['{', ';']) else {
                continue;
            };
            let stop = at + mark.len() + stop;
            let end = match code.as_bytes()[stop] {
                b'{' => block_end(code, stop),
                _ => stop + 1,
            };
            ranges.push(at..end);
        }
    }
    ranges
}

/// The text with comments and the inside of literals as spaces.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(bytes, at);
        let end = match end {
            None => {
                at += 1;
                continue;
            }
            Some(end) => end.min(bytes.len()),
        };
        for slot in &mut out[at..end] {
            if *slot != b'\n' {
                *slot = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(out).expect("whole literals and comments become spaces, the rest stays")
}

/// The end of the comment or literal that begins at `at`, if one does.
fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    let tail = &bytes[at..];
    if tail.starts_with(b"//") {
        let length = tail.iter().position(|&b| b == b'\n').unwrap_or(tail.len());
        return Some(at + length);
    }
    if tail.starts_with(b"/*") {
        return Some(at + block_comment(tail));
    }
    let after_name = at > 0 && is_name(bytes[at - 1]);
    match tail[0] {
        b'"' => Some(at + string(tail)),
        b'r' | b'b' | b'c' if !after_name => prefixed(tail).map(|length| at + length),
        b'\'' => char_literal(tail).map(|length| at + length),
        _ => None,
    }
}

fn block_comment(tail: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < tail.len() {
        if tail[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if tail[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The length of a plain string that begins at the start.
fn string(tail: &[u8]) -> usize {
    let mut at = 1;
    while at < tail.len() {
        match tail[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    tail.len()
}

/// The length of a raw, byte or C string that begins at the start, if one does.
fn prefixed(tail: &[u8]) -> Option<usize> {
    let letters = tail.iter().take_while(|b| b"rbc".contains(b)).count();
    if letters > 2 {
        return None;
    }
    let raw = tail[..letters].contains(&b'r');
    let hashes = tail[letters..].iter().take_while(|&&b| b == b'#').count();
    let open = letters + hashes;
    if tail.get(open) != Some(&b'"') || (!raw && hashes > 0) {
        return None;
    }
    if !raw {
        return Some(letters + string(&tail[letters..]));
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let inside = &tail[open + 1..];
    let length = inside
        .windows(close.len())
        .position(|window| window == close)
        .map_or(inside.len(), |at| at + close.len());
    Some(open + 1 + length)
}

/// The length of a character literal at the start; `None` for a lifetime.
fn char_literal(tail: &[u8]) -> Option<usize> {
    if tail.get(1) == Some(&b'\\') {
        let close = tail.iter().skip(3).position(|&b| b == b'\'')?;
        return Some(close + 4);
    }
    let width = match tail.get(1)? {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    (tail.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_spaces_of_the_same_length() {
        let cases = [
            ("a // é {\nb", "a b"),
            ("a /* x /* y */ \n*/ b", "a b"),
            (r#"f("a\"}", 'x')"#, "f( , )"),
            ("f(r#\"a\"}\"#, b\"{\", br\"{\")", "f( , , )"),
            (r"f('\'', '\u{7f}', 'é')", "f( , , )"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("r#type(car\"s\")", "r#type(car )"),
        ];
        for (text, words) in cases {
            let code = blank(text);
            let remaining: Vec<_> = code.split_whitespace().collect();
            assert_eq!(remaining.join(" "), words, "{text}");
            assert_eq!(code.len(), text.len(), "{text}");
            assert_eq!(code.lines().count(), text.lines().count(), "{text}");
        }
    }

    #[test]
    fn test_code_is_delimited_by_braces() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { \"}\"; }\n}\nfn c() {}\n";
        let scan = Scan::new(text);
        let lines: Vec<_> = scan.finds("fn ").map(|at| scan.line(at)).collect();
        assert_eq!(lines, [1, 6]);
    }

    #[test]
    fn test_module_in_own_file_ends_at_semicolon() {
        let scan = Scan::new("#[cfg(test)]\nmod tests;\nfn a() {}\n");
        assert_eq!(scan.finds("fn ").count(), 1);
    }
}
