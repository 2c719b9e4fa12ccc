//! Reading an input that a model wrote: every field by name and type, and nothing besides. What
//! does not fit is told in a sentence the model can act on.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::tool::ToolFailure;

/// An input whose fields all have known names.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    fields: &'a Map<String, Value>,
}

impl<'a> Input<'a> {
    /// Takes `value`, which must be an object with no fields but `known`.
    pub fn new(value: &'a Value, known: &[&str]) -> Result<Self, ToolFailure> {
        let Value::Object(fields) = value else {
            return Err(ToolFailure::invalid_input("The input must be an object."));
        };
        match fields.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(Self { fields }),
            Some(_) if known.is_empty() => {
                Err(ToolFailure::invalid_input("This tool takes no input."))
            }
            Some(_) => Err(ToolFailure::invalid_input(format!(
                "The input may only have: {}.",
                known.join(", ")
            ))),
        }
    }

    /// A string, if it is there.
    pub fn optional_text(self, key: &str) -> Result<Option<&'a str>, ToolFailure> {
        match self.fields.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ToolFailure::invalid_input(format!(
                "`{key}` must be a string."
            ))),
        }
    }

    /// A string.
    pub fn text(self, key: &str) -> Result<&'a str, ToolFailure> {
        self.optional_text(key)?
            .ok_or_else(|| ToolFailure::invalid_input(format!("`{key}` is missing: a string.")))
    }

    /// Yes or no, if it is there.
    pub fn optional_flag(self, key: &str) -> Result<Option<bool>, ToolFailure> {
        match self.fields.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(ToolFailure::invalid_input(format!(
                "`{key}` must be true or false."
            ))),
        }
    }

    /// A list, if it is there.
    pub fn optional_list(self, key: &str) -> Result<Option<&'a [Value]>, ToolFailure> {
        match self.fields.get(key) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(ToolFailure::invalid_input(format!(
                "`{key}` must be a list."
            ))),
        }
    }

    /// Whatever it is, if it is there.
    pub fn optional_value(self, key: &str) -> Option<&'a Value> {
        self.fields.get(key)
    }

    /// A whole number in `range`.
    pub fn integer(self, key: &str, range: RangeInclusive<u64>) -> Result<u64, ToolFailure> {
        let wanted = format!("a whole number from {} to {}", range.start(), range.end());
        match self.fields.get(key) {
            None => Err(ToolFailure::invalid_input(format!(
                "`{key}` is missing: {wanted}."
            ))),
            Some(value) => value
                .as_u64()
                .filter(|number| range.contains(number))
                .ok_or_else(|| ToolFailure::invalid_input(format!("`{key}` must be {wanted}."))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told<T>(result: Result<T, ToolFailure>) -> String {
        result.err().expect("does not fit").told
    }

    #[test]
    fn what_does_not_fit_is_told_in_a_sentence() {
        assert_eq!(
            told(Input::new(&json!([]), &["a"])),
            "The input must be an object."
        );
        assert_eq!(
            told(Input::new(&json!({"b": 1}), &["a", "c"])),
            "The input may only have: a, c."
        );
        assert_eq!(
            told(Input::new(&json!({"b": 1}), &[])),
            "This tool takes no input."
        );
        let value = json!({"a": 5, "t": "x", "n": -1, "f": 1.5, "big": 9});
        let input = Input::new(&value, &["a", "t", "n", "f", "big"]).expect("known fields");
        assert_eq!(input.text("t"), Ok("x"));
        assert_eq!(input.optional_text("missing"), Ok(None));
        assert_eq!(input.optional_flag("missing"), Ok(None));
        assert_eq!(told(input.optional_flag("a")), "`a` must be true or false.");
        assert_eq!(input.integer("a", 1..=5), Ok(5));
        assert_eq!(told(input.text("a")), "`a` must be a string.");
        assert_eq!(told(input.text("u")), "`u` is missing: a string.");
        assert_eq!(
            told(input.integer("u", 0..=5)),
            "`u` is missing: a whole number from 0 to 5."
        );
        for key in ["t", "n", "f", "big"] {
            assert_eq!(
                told(input.integer(key, 0..=5)),
                format!("`{key}` must be a whole number from 0 to 5.")
            );
        }
    }
}
