//! `component.*`: one component to show to the user.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::ToolType;
use crate::id::{ToolUseId, UpstreamId};

/// The tool use that rendered a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenderingToolCall {
    /// The tool use of the model's message that asked for the component.
    pub id: ToolUseId,
    /// The id that an agent elsewhere gave to the tool call; clients of the chat wire get this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_id: Option<UpstreamId>,
    /// The name of the render tool.
    pub name: String,
    #[serde(rename = "type")]
    pub tool_type: ToolType,
}

/// A render tool produced a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComponentRendered {
    /// The component's payload, without its envelope.
    pub component: Value,
    /// The tool use that produced the component.
    pub tool_call: RenderingToolCall,
}
