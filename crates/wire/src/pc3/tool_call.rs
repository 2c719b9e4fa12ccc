//! The `tool_call` of frames.

use serde::Serialize;
use turnwire_event::code::ToolType;
use turnwire_event::{ToolUseId, UpstreamId};

/// The id of a tool call: the one that an agent elsewhere gave, or the own one.
#[derive(Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum ToolCallId<'a> {
    Own(ToolUseId),
    Upstream(&'a UpstreamId),
}

impl<'a> ToolCallId<'a> {
    pub(super) fn of(own: ToolUseId, given: &'a Option<UpstreamId>) -> Self {
        given.as_ref().map_or(Self::Own(own), Self::Upstream)
    }
}

/// A tool call, as frames have it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ToolCall"))]
pub(super) struct ToolCallFields<'a> {
    /// The same for the beginning, the end and the component of a tool call.
    id: ToolCallId<'a>,
    /// The name of the tool.
    name: &'a str,
    #[serde(rename = "type")]
    tool_type: ToolType,
}

impl<'a> ToolCallFields<'a> {
    pub(super) fn new(id: ToolCallId<'a>, name: &'a str, tool_type: ToolType) -> Self {
        Self {
            id,
            name,
            tool_type,
        }
    }
}
