//! The two vocabularies in one table: what an upstream sends, and what clients of the chat wire are
//! shown of it (S1 5.10). A test compares the table with the frames of the chat wire, so that neither
//! side grows alone.

use serde::{Deserialize, Serialize};

/// What becomes of an event of the upstream on the chat wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outward {
    /// A frame of this type.
    Frame(&'static str),
    /// Frames of these types if the event has what they show, else none.
    Extracted(&'static [&'static str]),
    /// Never a frame: the event is for the server alone.
    Internal,
}

impl Outward {
    /// The types of the frames.
    pub fn frames(self) -> Vec<&'static str> {
        match self {
            Self::Frame(name) => vec![name],
            Self::Extracted(names) => names.to_vec(),
            Self::Internal => Vec::new(),
        }
    }
}

macro_rules! inner_types {
    ($($(#[$doc:meta])* $variant:ident = $name:literal => $outward:expr;)+) => {
        /// A type of event that an upstream may send.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum InnerType { $($(#[$doc])* #[serde(rename = $name)] $variant),+ }

        impl InnerType {
            /// All types, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The value of `type`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What clients are shown.
            pub const fn outward(self) -> Outward {
                match self { $(Self::$variant => $outward),+ }
            }

            /// The type of this name; `None` if no upstream may send it.
            pub fn of_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

inner_types! {
    /// A piece of the answer.
    Text = "text" => Outward::Frame("text");
    /// A piece of the model's reasoning.
    Reasoning = "reasoning" => Outward::Frame("reasoning");
    /// Reasoning before the answer; without content a mere sign of life.
    Thinking = "thinking" => Outward::Frame("thinking");
    /// The upstream calls a tool.
    ToolCallStart = "tool_call_start" => Outward::Frame("tool_call");
    /// A tool has ended.
    ToolCallEnd = "tool_call_end" => Outward::Frame("tool_completed");
    /// What a tool returned; that of a `render_*` tool is shown.
    ToolResult = "tool_result" => Outward::Extracted(&["data_loading", "data_loaded", "component"]);
    /// The tokens that the upstream has used.
    Usage = "usage" => Outward::Frame("usage");
    /// The upstream's own name of the answer.
    ResponseId = "response_id" => Outward::Frame("response_id");
    /// The episode; that of the session is shown.
    Episode = "episode" => Outward::Frame("episode");
    /// The end of an answer.
    Completed = "completed" => Outward::Frame("completed");
    /// A failure, which ends the answer unless `is_final` is false.
    Error = "error" => Outward::Frame("error");
    /// A note for sub-agents of later turns.
    SupportContent = "support_content" => Outward::Internal;
    /// The upstream lists the tools of an MCP server.
    McpListToolsStart = "mcp_list_tools_start" => Outward::Frame("mcp_list_tools_start");
    /// The upstream has listed the tools of an MCP server.
    McpListToolsCompleted = "mcp_list_tools_completed" => Outward::Frame("mcp_list_tools_completed");
    /// The upstream has connected to an MCP server.
    McpSessionStart = "mcp_session_start" => Outward::Frame("mcp_session_start");
    /// An MCP server reports progress.
    McpSessionProgress = "mcp_session_progress" => Outward::Frame("mcp_session_progress");
    /// The upstream has stopped.
    Cancelled = "cancelled" => Outward::Frame("cancelled");
}

/// The frame of a status, which an upstream sends without `type`: `{event_type, sub_agent_id, tool_id}`.
pub const STATUS_FRAME: &str = "status";

impl InnerType {
    /// True if nothing may follow an event of this type; an `error` decides by itself.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S1-032, S1-033, S1-035
    #[test]
    fn table_has_the_twelve_types_and_the_names_of_the_map() {
        let twelve = [
            "text",
            "reasoning",
            "thinking",
            "tool_call_start",
            "tool_call_end",
            "tool_result",
            "usage",
            "response_id",
            "episode",
            "completed",
            "error",
            "support_content",
        ];
        for name in twelve {
            let inner = InnerType::of_name(name).expect(name);
            assert_eq!(inner.name(), name);
            match name {
                "tool_call_start" => assert_eq!(inner.outward(), Outward::Frame("tool_call")),
                "tool_call_end" => assert_eq!(inner.outward(), Outward::Frame("tool_completed")),
                "tool_result" => assert!(!inner.outward().frames().contains(&"tool_result")),
                "support_content" => assert_eq!(inner.outward(), Outward::Internal),
                _ => assert_eq!(inner.outward(), Outward::Frame(inner.name())),
            }
        }
        assert_eq!(InnerType::ALL.len(), twelve.len() + 5);
        assert_eq!(InnerType::of_name("status"), None);
    }
}
