//! `component.*`: one component to show to the user.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::ToolType;
use crate::id::ToolUseId;

/// The tool use that rendered a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ToolCall"))]
pub struct RenderingToolCall {
    pub id: ToolUseId,
    pub name: String,
    #[serde(rename = "type")]
    pub tool_type: ToolType,
}

/// A render tool produced a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Rendered"))]
pub struct ComponentRendered {
    /// The component's payload, without its envelope.
    pub component: Value,
    /// The tool use that produced the component.
    pub tool_call: RenderingToolCall,
}
