//! `component.*`: one component for the person.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::ToolType;
use crate::id::ToolUseId;

/// The tool use that rendered a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Which use.
    pub id: ToolUseId,
    /// Which tool.
    pub name: String,
    /// What kind of tool.
    #[serde(rename = "type")]
    pub tool_type: ToolType,
}

/// A component is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rendered {
    /// The component: payload only.
    pub component: Value,
    /// Which use of which tool made it.
    pub tool_call: ToolCall,
}
