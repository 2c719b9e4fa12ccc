//! The JSON Schema of an input, compiled, and the check against it: its size first, then the work
//! that the check takes, then the check.

use jsonschema::Validator;
use serde_json::{Value, json};
use turnwire_pack::complexity::{self, SchemaCost};

use crate::input::fields::object;
use crate::tool::{ToolFailure, json_bytes};

/// The limit of an input; far more than a question needs.
const INPUT_BYTES_MAX: usize = 64 * 1_024;
/// The limit of a message about an invalid input.
pub(crate) const MESSAGE_CHARS_MAX: usize = 300;

/// A compiled input schema.
#[derive(Debug)]
pub(crate) struct InputSchema {
    /// The schema as the model sees it.
    pub(crate) text: Value,
    validator: Validator,
    cost: SchemaCost,
}

impl InputSchema {
    /// Compiles `text`; null stands for any object. References are not fetched. A schema whose
    /// check could take too long is an error, because a check cannot be stopped. The error says what
    /// is wrong.
    pub(crate) fn new(text: &Value) -> Result<Self, String> {
        let text = match text {
            Value::Null => json!({"type": "object"}),
            Value::Object(_) => text.clone(),
            _ => return Err("it must be an object".to_owned()),
        };
        Self::compile(text.clone(), &text)
    }

    /// Compiles the schema of a tool that checks its input itself: patterns that cannot be checked
    /// here are left to the tool, and still shown to the model.
    pub(crate) fn without_hard_patterns(text: &Value) -> Result<Self, String> {
        let checked = complexity::without_unsupported_patterns(text);
        Self::compile(text.clone(), &checked)
    }

    fn compile(text: Value, checked: &Value) -> Result<Self, String> {
        Ok(Self {
            text,
            cost: SchemaCost::new(checked).map_err(cut)?,
            validator: complexity::validator(checked).map_err(cut)?,
        })
    }

    /// Checks `input`. The size and the number of steps are checked first, because the thread that
    /// validates does nothing else and cannot be cancelled.
    pub(crate) fn check(&self, input: &Value) -> Result<(), ToolFailure> {
        object(input)?;
        ToolFailure::require(json_bytes(input) <= INPUT_BYTES_MAX, || {
            format!("The input is larger than {INPUT_BYTES_MAX} bytes.")
        })?;
        ToolFailure::require(
            self.cost.allows(input),
            || "The input is too large and too deep to be checked; write a simpler one.",
        )?;
        self.validator.validate(input).map_err(|error| {
            let path = error.instance_path();
            ToolFailure::invalid_input(cut(format!("The input does not fit at `{path}`: {error}")))
        })
    }
}

fn cut(message: impl ToString) -> String {
    let message = message.to_string();
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}
