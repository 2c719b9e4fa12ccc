//! A tool that returns its input.

use serde_json::{Value, json};
use turnwire_event::port::BoxFuture;

use crate::input::InputFields;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

pub(crate) struct EchoTool;

impl Tool for EchoTool {
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

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let text = InputFields::new(&call.input, &["text"])?.text("text")?;
            Ok(Value::String(text.to_owned()))
        })
    }
}
