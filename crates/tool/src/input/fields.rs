//! Reads an input that a model wrote: every field by name and type, and no others. An error is a
//! sentence that the model can act on.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::tool::ToolFailure;

/// An input whose fields all have expected names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputFields<'a> {
    fields: &'a Map<String, Value>,
}

impl<'a> InputFields<'a> {
    /// Reads `value`, which must be an object with no other fields than `allowed`.
    pub(crate) fn new(value: &'a Value, allowed: &[&str]) -> Result<Self, ToolFailure> {
        let Value::Object(fields) = value else {
            return Err(ToolFailure::invalid_input("The input must be an object."));
        };
        match fields.keys().find(|key| !allowed.contains(&key.as_str())) {
            None => Ok(Self { fields }),
            Some(_) if allowed.is_empty() => {
                Err(ToolFailure::invalid_input("This tool takes no input."))
            }
            Some(_) => Err(ToolFailure::invalid_input(format!(
                "The input may only have: {}.",
                allowed.join(", ")
            ))),
        }
    }

    pub(crate) fn optional_text(self, key: &str) -> Result<Option<&'a str>, ToolFailure> {
        match self.fields.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ToolFailure::invalid_input(format!(
                "`{key}` must be a string."
            ))),
        }
    }

    pub(crate) fn text(self, key: &str) -> Result<&'a str, ToolFailure> {
        self.optional_text(key)?
            .ok_or_else(|| ToolFailure::invalid_input(format!("`{key}` is missing: a string.")))
    }

    pub(crate) fn optional_flag(self, key: &str) -> Result<Option<bool>, ToolFailure> {
        match self.fields.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(ToolFailure::invalid_input(format!(
                "`{key}` must be true or false."
            ))),
        }
    }

    pub(crate) fn optional_list(self, key: &str) -> Result<Option<&'a [Value]>, ToolFailure> {
        match self.fields.get(key) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(ToolFailure::invalid_input(format!(
                "`{key}` must be a list."
            ))),
        }
    }

    /// An optional field of any type.
    pub(crate) fn optional_value(self, key: &str) -> Option<&'a Value> {
        self.fields.get(key)
    }

    /// A required integer in `range`.
    pub(crate) fn integer(self, key: &str, range: RangeInclusive<u64>) -> Result<u64, ToolFailure> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        match self.fields.get(key) {
            None => Err(ToolFailure::invalid_input(format!(
                "`{key}` is missing: {expected}."
            ))),
            Some(value) => value
                .as_u64()
                .filter(|number| range.contains(number))
                .ok_or_else(|| ToolFailure::invalid_input(format!("`{key}` must be {expected}."))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message<T>(result: Result<T, ToolFailure>) -> String {
        result.err().expect("invalid input").message
    }

    #[test]
    fn invalid_fields_are_described_for_the_model() {
        assert_eq!(
            message(InputFields::new(&json!([]), &["a"])),
            "The input must be an object."
        );
        assert_eq!(
            message(InputFields::new(&json!({"b": 1}), &["a", "c"])),
            "The input may only have: a, c."
        );
        assert_eq!(
            message(InputFields::new(&json!({"b": 1}), &[])),
            "This tool takes no input."
        );
        let value = json!({"a": 5, "t": "x", "n": -1, "f": 1.5, "big": 9});
        let input = InputFields::new(&value, &["a", "t", "n", "f", "big"]).expect("known fields");
        assert_eq!(input.text("t"), Ok("x"));
        assert_eq!(input.optional_text("missing"), Ok(None));
        assert_eq!(input.optional_flag("missing"), Ok(None));
        assert_eq!(
            message(input.optional_flag("a")),
            "`a` must be true or false."
        );
        assert_eq!(input.integer("a", 1..=5), Ok(5));
        assert_eq!(message(input.text("a")), "`a` must be a string.");
        assert_eq!(message(input.text("u")), "`u` is missing: a string.");
        assert_eq!(
            message(input.integer("u", 0..=5)),
            "`u` is missing: a whole number from 0 to 5."
        );
        for key in ["t", "n", "f", "big"] {
            assert_eq!(
                message(input.integer(key, 0..=5)),
                format!("`{key}` must be a whole number from 0 to 5.")
            );
        }
    }
}
