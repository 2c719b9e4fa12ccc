//! Checks an input before a person is asked to approve the call.

use serde_json::Value;

use crate::input::schema::InputSchema;
use crate::tool::{Tool, ToolFailure};

/// Checks `input` against the schema of `tool`. The failure is a sentence that the model can act
/// on.
pub fn check_input(tool: &dyn Tool, input: &Value) -> Result<(), ToolFailure> {
    if let Some(checked) = tool.check_input(input) {
        return checked;
    }
    match InputSchema::new(&tool.input_schema()) {
        Ok(schema) => schema.check(input),
        // A pack with such a tool is not loaded.
        Err(_) => Err(ToolFailure::internal("The tool cannot be used.")),
    }
}
