//! A tool that always fails.

use serde_json::{Value, json};
use turnwire_event::port::BoxFuture;

use crate::input::InputFields;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// Fails with `message`; with `fatal`, the calling sub-agent fails too.
pub(crate) struct FailTool;

impl Tool for FailTool {
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

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let input = InputFields::new(&call.input, &["message", "fatal"])?;
            let message = input.optional_text("message")?;
            let failure = ToolFailure::internal(message.unwrap_or("This tool always fails."));
            Err(match input.optional_flag("fatal")? {
                Some(true) => failure.fatal(),
                Some(false) | None => failure,
            })
        })
    }
}
