//! The JSON Schema of an input, compiled, and the check against it: its size first, then the work
//! that the check takes, then the check.

use jsonschema::Validator;
use serde_json::{Value, json};
use turnwire_pack::complexity::{self, SchemaCost};

use crate::tool::ToolFailure;
use crate::tool::json_bytes;

/// Of an input; far more than a question needs.
const INPUT_BYTES_MAX: usize = 64 * 1_024;
/// Of a message about an invalid input.
pub(crate) const MESSAGE_CHARS_MAX: usize = 300;

/// The input schema of a tool cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InputSchemaError(pub(crate) String);

/// A compiled input schema.
#[derive(Debug)]
pub(crate) struct InputSchema {
    text: Value,
    validator: Validator,
    cost: SchemaCost,
}

impl InputSchema {
    /// Compiles `text`; null stands for any object. References are not fetched. A schema whose
    /// check could take too long is an error, because a check cannot be stopped.
    pub(crate) fn new(text: &Value) -> Result<Self, InputSchemaError> {
        let text = match text {
            Value::Null => json!({"type": "object"}),
            Value::Object(_) => text.clone(),
            _ => return Err(InputSchemaError("it must be an object".to_owned())),
        };
        Self::compile(text.clone(), &text)
    }

    /// Compiles the schema of a tool that checks its input itself: patterns that cannot be checked
    /// here are left to the tool, and still shown to the model.
    pub(crate) fn without_hard_patterns(text: &Value) -> Result<Self, InputSchemaError> {
        Self::compile(
            text.clone(),
            &complexity::without_unsupported_patterns(text),
        )
    }

    fn compile(text: Value, checked: &Value) -> Result<Self, InputSchemaError> {
        let error = |reason: String| InputSchemaError(cut(reason));
        let cost = SchemaCost::new(checked).map_err(|reason| error(reason.to_string()))?;
        let validator =
            complexity::validator(checked).map_err(|reason| error(reason.to_string()))?;
        Ok(Self {
            text,
            validator,
            cost,
        })
    }

    /// The schema as the model sees it.
    pub(crate) fn text(&self) -> &Value {
        &self.text
    }

    /// Checks `input`. The size and the number of steps are checked first, because the thread that
    /// validates does nothing else and cannot be cancelled.
    pub(crate) fn check(&self, input: &Value) -> Result<(), ToolFailure> {
        if !input.is_object() {
            return Err(ToolFailure::invalid_input("The input must be an object."));
        }
        if json_bytes(input) > INPUT_BYTES_MAX {
            let message = format!("The input is larger than {INPUT_BYTES_MAX} bytes.");
            return Err(ToolFailure::invalid_input(message));
        }
        if !self.cost.allows(input) {
            let message = "The input is too large and too deep to be checked; write a simpler one.";
            return Err(ToolFailure::invalid_input(message));
        }
        self.validator.validate(input).map_err(|error| {
            let path = error.instance_path();
            let message = format!("The input does not fit at `{path}`: {error}");
            ToolFailure::invalid_input(cut(message))
        })
    }
}

fn cut(message: String) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => message[..end].to_owned(),
        None => message,
    }
}
