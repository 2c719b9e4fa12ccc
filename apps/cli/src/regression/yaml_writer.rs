//! Values as YAML that a person can read and change: a line for each thing, small things on one
//! line, and every text that could be taken for something else in quotation marks.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// How long a line may be before a list goes on in the next.
const WIDTH: usize = 100;

/// `value` as a YAML document.
pub(crate) fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Array(items) if !items.is_empty() => list(items, 0, &mut out),
        Value::Object(fields) if !fields.is_empty() => map(fields, 0, &mut out),
        other => {
            flow(other, 0, &mut out);
            out.push('\n');
        }
    }
    out
}

fn list(items: &[Value], depth: usize, out: &mut String) {
    for item in items {
        indent(depth, out);
        out.push_str("- ");
        match item {
            // Its first key stands behind the dash, the others below it.
            Value::Object(fields) if !fits(item, depth) => {
                let mut inner = String::new();
                map(fields, depth + 1, &mut inner);
                out.push_str(inner.trim_start());
            }
            other => entry(other, depth, out),
        }
    }
}

fn map(fields: &Map<String, Value>, depth: usize, out: &mut String) {
    for (key, value) in fields {
        indent(depth, out);
        out.push_str(&text(key));
        out.push(':');
        match value {
            Value::Object(inner) if !fits(value, depth) => {
                out.push('\n');
                map(inner, depth + 1, out);
            }
            Value::Array(items)
                if items.iter().any(|item| !is_scalar(item)) && !fits(value, depth) =>
            {
                out.push('\n');
                list(items, depth + 1, out);
            }
            other => {
                out.push(' ');
                entry(other, depth, out);
            }
        }
    }
}

/// The rest of a line.
fn entry(value: &Value, depth: usize, out: &mut String) {
    flow(value, depth + 1, out);
    out.push('\n');
}

/// A value between brackets, or one that needs none; long lists go on below.
fn flow(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            let _ = write!(out, "{value}");
        }
        Value::String(words) => out.push_str(&text(words)),
        Value::Array(items) => {
            out.push('[');
            let mut from = line_start(out);
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                    if out.len() - from > WIDTH {
                        out.push('\n');
                        from = out.len();
                        indent(depth, out);
                    } else {
                        out.push(' ');
                    }
                }
                flow(item, depth + 1, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (key, item)) in fields.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                out.push_str(&text(key));
                out.push_str(": ");
                flow(item, depth + 1, out);
            }
            out.push('}');
        }
    }
}

fn line_start(out: &str) -> usize {
    out.rfind('\n').map_or(0, |at| at + 1)
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// Whether a value is small enough for one line, with a key before it.
fn fits(value: &Value, depth: usize) -> bool {
    let mut line = String::new();
    flow(value, 0, &mut line);
    line.chars().count() + 2 * depth + 8 <= WIDTH && !line.contains('\n')
}

/// Text as it is where it can be nothing else, else in quotation marks.
fn text(words: &str) -> String {
    if is_plain(words) {
        return words.to_owned();
    }
    let mut out = String::with_capacity(words.len() + 2);
    out.push('"');
    for c in words.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_odd(c) => {
                let _ = match c as u32 {
                    code @ 0..=0xff => write!(out, "\\x{code:02X}"),
                    code @ 0x100..=0xffff => write!(out, "\\u{code:04X}"),
                    code => write!(out, "\\U{code:08X}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A word of letters that no reader takes for anything but text.
fn is_plain(words: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let taken = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    words.starts_with(|c: char| c.is_ascii_alphabetic())
        && words.chars().all(word)
        && !taken.contains(&words.to_ascii_lowercase().as_str())
}

/// Characters that a reader may not take, or a person may not see.
fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fffd}'..='\u{ffff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(yaml: &str) -> Value {
        serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"))
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let long: Vec<String> = (0..60).map(|n| format!(" word {n}")).collect();
        let odd =
            "a: b # c\n\t\"q\" \\ {{x}} \u{0} \u{7f} \u{85} \u{2028} \u{feff} \u{fffd} 😀 é '";
        for value in [
            json!({}),
            json!([]),
            json!("true"),
            json!({"a": odd, "no": "no", "": "", "1": "1.0", "-": "- x", "~": "~"}),
            json!([{"when": {"agent": "shop", "call": 1, "says": odd}, "steps": [
                {"said": long}, {"tool": {"name": "x", "input": {"deep": [[{"a": [1, 2.5, null, true]}]]}}},
                {"stop": "end_turn", "usage": {"input_tokens": 18446744073709551615u64}},
            ]}]),
            json!({"list": [[], {}, [[]], long, "x"], "map": {"inner": {"long": long, "text": odd.repeat(9)}}}),
            json!([[["a"], {"b": long}]]),
        ] {
            let yaml = write(&value);
            assert_eq!(read(&yaml), value, "{yaml}");
        }
    }

    #[test]
    fn small_values_are_inline_and_large_ones_are_blocks() {
        let value =
            json!([{"when": {"agent": "shop", "call": 1}, "steps": [{"said": ["It ", "is."]}]}]);
        let small = "- {when: {agent: shop, call: 1}, steps: [{said: [\"It \", \"is.\"]}]}\n";
        assert_eq!(write(&value), small);
        let words = "a b ".repeat(25);
        let value = json!([{"when": {"agent": "shop"}, "steps": [{"said": [words]}, {"stop": "end_turn"}]}]);
        let large = format!(
            "- when: {{agent: shop}}\n  steps:\n    - said: [\"{words}\"]\n    - {{stop: end_turn}}\n"
        );
        assert_eq!(write(&value), large);
    }
}
