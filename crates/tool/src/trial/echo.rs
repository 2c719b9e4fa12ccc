//! The echo: gives back what it was given.

use serde_json::{Value, json};
use turnwire_event::port::BoxFuture;

use crate::input::Input;
use crate::tool::{Call, Tool, ToolFailure};

/// Gives back its `text`.
pub struct Echo;

impl Tool for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn description(&self) -> &str {
        "Gives back the text it is given."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": false,
        })
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let text = Input::new(&call.input, &["text"])?.text("text")?;
            Ok(Value::String(text.to_owned()))
        })
    }
}
