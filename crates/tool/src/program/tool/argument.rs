//! One argument of a program: text of the pack with fields of the input. There is no shell, so a value
//! is always a part of this one argument; and it cannot become an option.

use serde_json::{Map, Value};
use turnwire_pack::{TemplatePart, template_parts};

use crate::tool::ToolFailure;

/// The limit of one argument; the system allows 128 KiB, with a worse error.
const ARGUMENT_BYTES_MAX: usize = 64 * 1_024;

/// Whether `argument` has a field: `{name}` is one, any other brace stands for itself.
pub(super) fn has_field(argument: &str) -> bool {
    let parts = template_parts(argument);
    let is_field = |part: &TemplatePart<'_>| matches!(part, TemplatePart::Field(_));
    parts.iter().any(is_field)
}

/// Fills the fields of `argument` from `input`; `None` if a field is missing.
pub(super) fn fill_argument(
    argument: &str,
    input: &Map<String, Value>,
) -> Result<Option<String>, ToolFailure> {
    let parts = template_parts(argument);
    let mut filled = String::new();
    for part in &parts {
        match part {
            TemplatePart::Text(text) => filled.push_str(text),
            TemplatePart::Field(name) => match input.get(*name) {
                None | Some(Value::Null) => return Ok(None),
                Some(Value::String(text)) => filled.push_str(text),
                Some(value) => filled.push_str(&value.to_string()),
            },
        }
    }
    if let (Some(TemplatePart::Field(name)), true) = (parts.first(), filled.starts_with('-')) {
        let message = format!("`{name}` may not begin with `-`.");
        return Err(ToolFailure::invalid_input(message));
    }
    let has_no_nul = !filled.contains('\0');
    ToolFailure::require(has_no_nul, || "The input may not contain a NUL character.")?;
    ToolFailure::require(filled.len() <= ARGUMENT_BYTES_MAX, || {
        format!("A field may not have more than {ARGUMENT_BYTES_MAX} bytes.")
    })?;
    Ok(Some(filled))
}

/// Fills the fields of `template`, a text for the standard input; a missing field is empty.
pub(super) fn fill_text(template: &str, input: &Map<String, Value>) -> String {
    let mut filled = String::new();
    for part in template_parts(template) {
        match part {
            TemplatePart::Text(text) => filled.push_str(text),
            TemplatePart::Field(name) => match input.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => filled.push_str(text),
                Some(value) => filled.push_str(&value.to_string()),
            },
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(argument: &str, input: &Value) -> Result<Option<String>, ToolFailure> {
        fill_argument(argument, input.as_object().expect("an object"))
    }

    #[test]
    fn fields_are_filled_and_other_text_is_unchanged() {
        let input = json!({"q": "a b; rm -rf /", "n": 5, "f": 1.5, "yes": true, "l": [1, "x"],
                           "in-city": "Rome"});
        let cases = [
            ("plain", "plain"),
            ("", ""),
            ("{q}", "a b; rm -rf /"),
            ("--query={q}", "--query=a b; rm -rf /"),
            ("{n}-{f}-{yes}", "5-1.5-true"),
            ("{l}", "[1,\"x\"]"),
            ("{in-city}{-n}", "Rome{-n}"),
            ("{{n}}", "{5}"),
            ("{}{ n}{1n}{n", "{}{ n}{1n}{n"),
            ("}{", "}{"),
            ("-v", "-v"),
            ("ü{n}ü", "ü5ü"),
        ];
        for (argument, expected) in cases {
            let filled = fill(argument, &input);
            assert_eq!(filled, Ok(Some(expected.to_owned())), "{argument}");
        }
    }

    #[test]
    fn argument_without_its_field_is_left_out() {
        let input = json!({"null": null});
        for argument in ["{q}", "--query={q}", "{null}", "a{q}b"] {
            assert_eq!(fill(argument, &input), Ok(None), "{argument}");
        }
    }

    #[test]
    fn value_cannot_become_an_option() {
        let input = json!({"v": "-rf", "empty": "", "n": -5, "zero": "a\0b"});
        for (argument, message) in [
            ("{v}", "`v` may not begin with `-`."),
            ("{v}.txt", "`v` may not begin with `-`."),
            ("{n}", "`n` may not begin with `-`."),
            ("{empty}{v}", "`empty` may not begin with `-`."),
            ("{empty}-x", "`empty` may not begin with `-`."),
            ("a{zero}", "The input may not contain a NUL character."),
        ] {
            let failure = fill(argument, &input).expect_err("it is refused");
            assert_eq!(failure, ToolFailure::invalid_input(message), "{argument}");
        }
        assert_eq!(fill("-n{n}", &input), Ok(Some("-n-5".to_owned())));
        let long = json!({"v": "x".repeat(ARGUMENT_BYTES_MAX + 1)});
        assert!(fill("{v}", &long).is_err());
    }
}
