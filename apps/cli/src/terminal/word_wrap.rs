//! Wraps streamed text between words at the right edge of a terminal.
//!
//! Text is written as it arrives. When a word reaches the edge, the part that stands there is erased
//! and the word continues on the next line:
//!
//! ```text
//!   …the answer con          the answer
//!                   ─▶       continues
//! ```
//! The terminal keeps the place where a word near the edge begins, so that what a person types into
//! the word does not matter.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The narrowest terminal whose text is wrapped: below it, words hardly fit.
const COLUMNS_MIN: usize = 20;

/// Keeps the place of the cursor; goes back to it and erases what is behind.
const KEEP_PLACE: &str = "\u{1b}7";
const ERASE_FROM_PLACE: &str = "\u{1b}8\u{1b}[J";

/// How near the edge a word begins whose place is kept: few words are longer.
const PLACE_COLUMNS: usize = 24;

/// `text` of several lines with line ends between words, for a terminal of `columns`. A line that
/// continues is indented like its start. A word that is wider than a line stays whole.
pub(crate) fn wrapped_lines(text: &str, columns: usize) -> String {
    let lines = text.lines().map(|line| {
        let words = line.trim_start_matches(' ');
        wrapped_line(line, line.len() - words.len(), columns)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `line` with line ends between words; what continues is behind `indent` columns.
pub(crate) fn wrapped_line(line: &str, indent: usize, columns: usize) -> String {
    if columns < COLUMNS_MIN + indent {
        return line.to_owned();
    }
    let mut output = String::with_capacity(line.len() + 16);
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().width();
        if column > indent && width > 0 && column + width >= columns {
            output.truncate(output.trim_end_matches(' ').len());
            output.push('\n');
            output.push_str(&" ".repeat(indent));
            column = indent;
        }
        output.push_str(word);
        column += word.width();
    }
    output
}

/// Wraps the text of one line after the other. The last column stays free, because terminals differ
/// in where the cursor is after it.
#[derive(Debug, Default)]
pub(crate) struct WordWrap {
    /// The columns of the current line that are taken.
    column: usize,
    /// The word at the end of the current line, and its columns.
    word: String,
    word_columns: usize,
    /// True if the terminal keeps the place where the word begins.
    has_place: bool,
    /// The columns of the terminal when the line was last written to; 0 before.
    columns: usize,
}

impl WordWrap {
    /// `text` with line ends, for a terminal of `columns`; continues the line of the last call.
    pub(crate) fn wrap(&mut self, text: &str, columns: usize) -> String {
        if columns < COLUMNS_MIN {
            return text.to_owned();
        }
        if std::mem::replace(&mut self.columns, columns) != columns {
            self.resized(columns);
        }
        let limit = columns - 1;
        let mut output = String::with_capacity(text.len() + 16);
        for c in text.chars() {
            let width = match c {
                '\n' => {
                    self.line_ended();
                    output.push(c);
                    continue;
                }
                '\t' => 8 - self.column % 8,
                _ => c.width().unwrap_or(0),
            };
            if c == ' ' || c == '\t' {
                self.word.clear();
                self.word_columns = 0;
                // A space at the edge is the line end.
                if self.column + width <= limit {
                    output.push(c);
                    self.column += width;
                } else if self.column > 0 {
                    output.push('\n');
                    self.column = 0;
                }
                continue;
            }
            if self.column + width > limit {
                self.next_line(width, limit, &mut output);
            }
            if self.word.is_empty() {
                self.has_place = self.column + PLACE_COLUMNS > limit;
                output.push_str(if self.has_place { KEEP_PLACE } else { "" });
            }
            output.push(c);
            self.word.push(c);
            self.word_columns += width;
            self.column += width;
        }
        output
    }

    /// Notes that the terminal is at the start of a line.
    pub(crate) fn line_ended(&mut self) {
        self.column = 0;
        self.word.clear();
        self.word_columns = 0;
    }

    /// A terminal of another width has laid out the line anew: nothing that stands there is moved.
    fn resized(&mut self, columns: usize) {
        self.column %= columns;
        self.word.clear();
        self.word_columns = 0;
    }

    /// Starts a line with the current word, or breaks a word that is wider than a line.
    fn next_line(&mut self, width: usize, limit: usize, output: &mut String) {
        let is_whole_line = self.word_columns == self.column || self.word_columns + width > limit;
        if is_whole_line {
            self.word.clear();
            self.word_columns = 0;
        } else if self.has_place && self.word_columns > 0 {
            output.push_str(ERASE_FROM_PLACE);
        } else if self.word_columns > 0 {
            output.push_str(&format!("\u{1b}[{}D\u{1b}[K", self.word_columns));
        }
        output.push('\n');
        self.has_place = false;
        output.push_str(&self.word);
        self.column = self.word_columns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a terminal after `output`, which keeps a place and erases what is behind it.
    fn screen(output: &str) -> Vec<String> {
        let mut lines = vec![Vec::new()];
        let mut place = (0, 0);
        let mut rest = output;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            let row = lines.len() - 1;
            let line: &mut Vec<char> = lines.last_mut().expect("a line");
            match c {
                '\n' => lines.push(Vec::new()),
                '\u{1b}' if rest.starts_with('7') => {
                    place = (row, line.len());
                    rest = &rest[1..];
                }
                '\u{1b}' => {
                    rest = rest.strip_prefix("8\u{1b}[J").expect("a sequence");
                    lines.truncate(place.0 + 1);
                    lines[place.0].truncate(place.1);
                }
                _ => line.push(c),
            }
        }
        lines.iter().map(|line| line.iter().collect()).collect()
    }

    fn wrapped(pieces: &[&str]) -> Vec<String> {
        let mut wrap = WordWrap::default();
        let output: String = pieces.iter().map(|piece| wrap.wrap(piece, 21)).collect();
        screen(&output)
    }

    #[test]
    fn words_are_wrapped_whole_however_they_arrive() {
        let text = "one two three four five six seven\neight";
        let expected = ["one two three four", "five six seven", "eight"];
        let trimmed = |lines: Vec<String>| -> Vec<String> {
            lines
                .iter()
                .map(|line| line.trim_end().to_owned())
                .collect()
        };
        assert_eq!(trimmed(wrapped(&[text])), expected);
        let pieces: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(trimmed(wrapped(&pieces)), expected);
    }

    #[test]
    fn long_words_are_broken_and_wide_characters_count_twice() {
        let lines = wrapped(&["x", &"a".repeat(30)]);
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [20, 11]);
        let lines = wrapped(&[&"漢".repeat(12)]);
        assert_eq!(
            lines
                .iter()
                .map(|line| line.chars().count())
                .collect::<Vec<_>>(),
            [10, 2]
        );
        assert_eq!(
            wrapped(&["twenty columns wide. ok"]),
            ["twenty columns wide.", "ok"]
        );
    }

    #[test]
    fn typed_keys_inside_a_word_leave_nothing_behind() {
        let mut wrap = WordWrap::default();
        let output = wrap.wrap("some words of an ans", 21) + "XY" + &wrap.wrap("wer here", 21);
        assert_eq!(screen(&output), ["some words of an ", "answer here"]);
        // A line that was typed ends the line of the answer.
        let mut wrap = WordWrap::default();
        let output = wrap.wrap("some words of", 21) + "/stop\n";
        wrap.line_ended();
        let output = output + &wrap.wrap(" an answer and more", 21);
        let expected = ["some words of/stop", " an answer and more"];
        assert_eq!(screen(&output), expected);
    }

    #[test]
    fn resized_terminal_moves_no_word_of_the_current_line() {
        let mut wrap = WordWrap::default();
        let output = wrap.wrap("a line of forty columns that is wri", 41)
            + &wrap.wrap("tten in two pieces of text", 21);
        let expected = [
            "a line of forty columns that is written ",
            "in two pieces of ",
            "text",
        ];
        assert_eq!(screen(&output), expected);
    }

    #[test]
    fn whole_lines_are_wrapped_between_words_and_keep_their_indent() {
        let text = "one two three four five\n  six seven eight nine ten eleven";
        let expected = "one two three four\nfive\n  six seven eight\n  nine ten eleven";
        assert_eq!(wrapped_lines(text, 22), expected);
        let long = format!("to {} and on", "a".repeat(30));
        let expected = format!("to\n{}\nand on", "a".repeat(30));
        assert_eq!(wrapped_lines(&long, 22), expected);
        assert_eq!(wrapped_lines(text, 10), text);
        assert_eq!(
            wrapped_line("/stop     stop the running turn", 10, 30),
            "/stop     stop the running\n          turn"
        );
    }

    #[test]
    fn narrow_terminal_wraps_by_itself() {
        let text = "a text of several words";
        assert_eq!(WordWrap::default().wrap(text, 10), text);
    }
}
