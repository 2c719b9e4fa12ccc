//! Reads an input that a model wrote: every field by name and type, and no others. An error is a
//! sentence that the model can act on.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::tool::ToolFailure;

/// The fields of an input, which must be an object.
pub(crate) fn object(input: &Value) -> Result<&Map<String, Value>, ToolFailure> {
    let fields = input.as_object();
    fields.ok_or_else(|| ToolFailure::invalid_input("The input must be an object."))
}

/// The JSON Schema of an input with these `properties` and no others.
pub(crate) fn object_schema(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

/// An input whose fields all have expected names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputFields<'a>(&'a Map<String, Value>);

impl<'a> InputFields<'a> {
    /// Reads `input`, which must be an object with no other fields than `allowed`.
    pub(crate) fn new(input: &'a Value, allowed: &[&str]) -> Result<Self, ToolFailure> {
        let fields = object(input)?;
        if fields.keys().all(|key| allowed.contains(&key.as_str())) {
            return Ok(Self(fields));
        }
        Err(ToolFailure::invalid_input(match allowed {
            [] => "This tool takes no input.".to_owned(),
            _ => format!("The input may only have: {}.", allowed.join(", ")),
        }))
    }

    /// The field `key`, if there is one; `read` returns `None` if the value is not `expected`.
    fn optional<T>(
        self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ToolFailure> {
        let error = || ToolFailure::invalid_input(format!("`{key}` must be {expected}."));
        let value = self.0.get(key);
        value.map(|value| read(value).ok_or_else(error)).transpose()
    }

    fn required<T>(
        self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, ToolFailure> {
        let error = || ToolFailure::invalid_input(format!("`{key}` is missing: {expected}."));
        self.optional(key, expected, read)?.ok_or_else(error)
    }

    pub(crate) fn optional_text(self, key: &str) -> Result<Option<&'a str>, ToolFailure> {
        self.optional(key, "a string", Value::as_str)
    }

    pub(crate) fn text(self, key: &str) -> Result<&'a str, ToolFailure> {
        self.required(key, "a string", Value::as_str)
    }

    pub(crate) fn optional_flag(self, key: &str) -> Result<Option<bool>, ToolFailure> {
        self.optional(key, "true or false", Value::as_bool)
    }

    pub(crate) fn optional_list(self, key: &str) -> Result<Option<&'a Vec<Value>>, ToolFailure> {
        self.optional(key, "a list", Value::as_array)
    }

    pub(crate) fn optional_object(self, key: &str) -> Result<Option<&'a Value>, ToolFailure> {
        self.optional(key, "an object", |value| value.is_object().then_some(value))
    }

    /// A required integer in `range`.
    pub(crate) fn integer(self, key: &str, range: RangeInclusive<u64>) -> Result<u64, ToolFailure> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let in_range = |number: &u64| range.contains(number);
        self.required(key, &expected, |value| value.as_u64().filter(in_range))
    }
}

#[cfg(test)]
mod tests {
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
