//! The failing one: never gives a result.

use serde_json::{Value, json};
use turnwire_event::port::BoxFuture;

use crate::input::Input;
use crate::tool::{Call, Tool, ToolFailure};

/// Fails, with `message` as what the model is told; with `fatal`, beyond repair.
pub struct Fail;

impl Tool for Fail {
    fn name(&self) -> &str {
        "fail"
    }

    fn description(&self) -> &str {
        "Always fails. Good for trying what happens then."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"message": {"type": "string"}, "fatal": {"type": "boolean"}},
            "additionalProperties": false,
        })
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let input = Input::new(&call.input, &["message", "fatal"])?;
            let message = input.optional_text("message")?;
            let failure = ToolFailure::internal(message.unwrap_or("This tool always fails."));
            Err(match input.optional_flag("fatal")? {
                Some(true) => failure.fatal(),
                Some(false) | None => failure,
            })
        })
    }
}
