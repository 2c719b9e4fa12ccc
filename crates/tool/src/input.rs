//! Inputs that models write: [`InputFields`] reads one by hand, [`InputSchema`] checks one against
//! the JSON Schema of its tool.

mod fields;
mod schema;

use serde_json::Value;

use crate::tool::{Tool, ToolFailure};

pub(crate) use fields::{InputFields, object, object_schema};
pub(crate) use schema::InputSchema;
#[cfg(test)]
pub(crate) use schema::MESSAGE_CHARS_MAX;

/// Checks `input` against the schema of `tool`, before a person is asked to approve the call. The
/// failure is a sentence that the model can act on.
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
