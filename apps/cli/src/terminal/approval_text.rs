//! The whole input of a tool that waits for approval, so that a person sees everything that would
//! run and nothing can pass for something else.
//!
//! ```text
//! take_note would run with this input:
//!   | {
//!   |   "note": "milk                a line that is too long …
//!   …                ; rm -rf ~"     … continues behind another mark
//!   | }
//! the input of take_note ends here: 51 bytes, 3 lines, sha256 5f0c…
//! ```
//! Every line of the input has a mark in front: what a model writes cannot look like a line of this
//! program. Strings stay quoted, their line ends are `\n`, and characters that cannot be seen are
//! written as `\u{…}`, which JSON itself never contains.

use turnwire_event::code::Decision;
use turnwire_event::content::sha256_hex;

use crate::terminal::character::escape_deceptive;
use crate::terminal::word_wrap::wrapped_line;
use crate::terminal::wording::counted;

/// The mark of a line, and of the continuation of a line.
const LINE: &str = "  | ";
const CONTINUED: &str = "  … ";

/// The lines after which fields are no longer put on lines of their own, and the deepest indentation:
/// together they bound what is added to an input.
const LINES_MAX: usize = 10_000;
const INDENT_MAX: usize = 32;

/// The longest name of a tool that is shown.
const NAME_CHARS_MAX: usize = 200;

/// The whole input of the tool `name`, which is the JSON text `input`, for a terminal with a number
/// of `columns`. Ends with a line end.
pub(crate) fn approval_text(name: &str, input: &str, columns: usize) -> String {
    let name = tool_name(name);
    let lines = layout(input);
    let width = columns.saturating_sub(LINE.len()).max(16);
    let mut text = wrapped_line(&format!("{name} would run with this input:"), 0, columns) + "\n";
    for line in &lines {
        wrap(&mut text, &escape_deceptive(line), width);
    }
    let bytes = counted(input.len() as u64, "byte");
    let count = counted(lines.len() as u64, "line");
    let digest = sha256_hex(input.as_bytes());
    let end = format!("the input of {name} ends here: {bytes}, {count}, sha256 {digest}");
    text + &wrapped_line(&end, 0, columns) + "\n"
}

/// The name of a tool on one line, with every character visible.
pub(crate) fn tool_name(name: &str) -> String {
    let name = escape_deceptive(name);
    match name.char_indices().nth(NAME_CHARS_MAX) {
        None => name,
        Some((cut, _)) => format!("{}…", &name[..cut]),
    }
}

/// JSON text with each field and element on a line of its own. Nothing else is changed: the text
/// between line ends, without indentation and the space after a colon, is the input.
fn layout(json: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut depth: usize = 0;
    let mut in_string = false;
    let mut is_escaped = false;
    let mut characters = json.chars().peekable();
    while let Some(c) = characters.next() {
        let line = lines.last_mut().expect("there is a first line");
        if in_string {
            line.push(c);
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                line.push(c);
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    line.push(close);
                } else {
                    depth += 1;
                    begin_line(&mut lines, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                begin_line(&mut lines, depth);
                lines.last_mut().expect("there is a first line").push(c);
            }
            ',' => {
                line.push(c);
                begin_line(&mut lines, depth);
            }
            ':' => line.push_str(": "),
            _ => {
                in_string = c == '"';
                line.push(c);
            }
        }
    }
    lines
}

fn begin_line(lines: &mut Vec<String>, depth: usize) {
    if lines.len() < LINES_MAX {
        lines.push("  ".repeat(depth.min(INDENT_MAX)));
    }
}

/// Appends `line` in pieces of at most `width` columns, each with its mark.
fn wrap(text: &mut String, line: &str, width: usize) {
    text.push_str(LINE);
    let mut used = 0;
    for c in line.chars() {
        // No character is wider than two columns.
        let columns = if c.is_ascii() { 1 } else { 2 };
        if used + columns > width {
            text.push('\n');
            text.push_str(CONTINUED);
            used = 0;
        }
        used += columns;
        text.push(c);
    }
    text.push('\n');
}

/// Shown after a line that is neither yes nor no.
pub(crate) const NOT_A_DECISION: &str = "please type y to allow it or n to reject it";

/// The decision in a typed line; `None` if it is not clearly yes or no.
pub(crate) fn parse_decision(line: &str) -> Option<Decision> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Decision::Approve),
        "n" | "no" => Some(Decision::Reject),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_has_a_line_and_a_mark() {
        let input = json!({"a": "x", "b": [1, {}, [], {"c": "\\\"{,:[\n"}], "d": 1.0}).to_string();
        let text = approval_text("pay", &input, 80);
        let digest = sha256_hex(input.as_bytes());
        assert_eq!(
            text,
            format!(
                r#"pay would run with this input:
  | {{
  |   "a": "x",
  |   "b": [
  |     1,
  |     {{}},
  |     [],
  |     {{
  |       "c": "\\\"{{,:[\n"
  |     }}
  |   ],
  |   "d": 1.0
  | }}
the input of pay ends here: {} bytes, 12 lines, sha256
{digest}
"#,
                input.len()
            )
        );
    }

    #[test]
    fn text_of_a_model_never_begins_a_line() {
        let spoof = format!(
            "{}allow ls to run with this input? [y/N] \nallow? \u{2028}\u{202e}\u{85}\u{1b}[2J\r",
            " ".repeat(61)
        );
        let input =
            json!({"command": spoof, "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字": 1}).to_string();
        let text = approval_text("sh\n\u{202e}", &input, 40);
        let (first, rest) = text.split_once("input:\n").expect("lines");
        assert_eq!(first, "sh\\u{a}\\u{202e} would run with this\n");
        let (rest, _) = rest.split_once("the input of").expect("an end");
        let lines: Vec<&str> = rest.lines().collect();
        for line in &lines {
            assert!(
                line.starts_with(LINE) || line.starts_with(CONTINUED),
                "{line:?}"
            );
            let columns: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
            assert!(columns <= 41, "{line:?}");
            assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        }
        let content = |line: &&str| line.strip_prefix(CONTINUED).unwrap_or(line).to_owned();
        let joined: String = lines.iter().map(content).collect();
        let escaped = r"allow? \u{2028}\u{202e}\u{85}\u001b[2J\r";
        assert!(joined.contains(escaped), "{joined}");
    }

    #[test]
    fn indentation_does_not_multiply_a_deep_input() {
        let input = format!("{}1{}", "[1,".repeat(50_000), "]".repeat(50_000));
        let text = approval_text("pay", &input, 80);
        assert!(text.len() < 2_000_000, "{}", text.len());
        let kept: String = text.chars().filter(|c| "[]1,".contains(*c)).collect();
        assert!(kept.contains(&"]".repeat(40_000)));
    }

    #[test]
    fn only_a_plain_yes_or_no_is_a_decision() {
        for yes in ["y", "Y", "yes", " YES\n"] {
            assert_eq!(parse_decision(yes), Some(Decision::Approve), "{yes}");
        }
        for no in ["n", "No", "NO"] {
            assert_eq!(parse_decision(no), Some(Decision::Reject), "{no}");
        }
        for unclear in [
            "",
            "sure, go ahead",
            "yes, but only tomorrow",
            "not now",
            "ja",
        ] {
            assert_eq!(parse_decision(unclear), None, "{unclear}");
        }
    }
}
