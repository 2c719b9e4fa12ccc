//! Checks the tools that others work for: a tool server, or an agent in a session of its own.

use super::super::page::Page;
use crate::definition::SPEAKER;
use crate::finding::Known;
use crate::source::tool::ToolSource;
use crate::tool::ToolKind;
use crate::wording::one_line;
use crate::wording::{closest_name, quoted_list};
use crate::yaml::TextPosition;

/// How long a worker may work where the tool does not say.
pub(super) const TIMEOUT_MS: u64 = 120_000;
/// Characters of what a server calls its tool.
const TOOL_CHARS_MAX: usize = 128;

/// Who work can be given to.
pub(crate) struct Hands {
    /// Workers, and sub-agents that the orchestrator asks.
    pub(crate) known: Known,
    /// Sub-agents that nobody asks, and which are no part of the pack.
    pub(crate) unasked: Vec<String>,
    /// The orchestrator's id; none if its file is broken.
    pub(crate) speaker: Option<String>,
}

/// Checks a tool of a tool server.
pub(super) fn mcp(
    page: &mut Page<'_>,
    home: TextPosition,
    source: &ToolSource,
    servers: &Known,
) -> ToolKind {
    let server = page.needed_text(&source.server, "server", home, "server: files");
    if let Some(written) = source.server.as_ref().filter(|name| !name.value.is_empty()) {
        page.unknown(written, "tool server", servers);
    }
    let tool = match &source.tool {
        Some(tool) => {
            let length = tool.value.chars().count();
            if !(1..=TOOL_CHARS_MAX).contains(&length) || tool.value.contains(char::is_control) {
                page.error(tool.position, "this cannot be the name of a server's tool")
                    .write(format!("its name there, 1 to {TOOL_CHARS_MAX} characters"));
            }
            tool.value.clone()
        }
        None => source
            .name
            .as_ref()
            .map_or_else(String::new, |name| name.value.clone()),
    };
    ToolKind::Mcp { server, tool }
}

/// Checks a tool that gives work to a worker session.
pub(super) fn delegate(
    page: &mut Page<'_>,
    home: TextPosition,
    source: &ToolSource,
    hands: &Hands,
) -> ToolKind {
    let agent = page.needed_text(&source.agent, "agent", home, "agent: researcher");
    let is_speaker = agent == SPEAKER || hands.speaker.as_ref() == Some(&agent);
    if is_speaker {
        let agent = SPEAKER.to_owned();
        return ToolKind::Delegate { agent };
    }
    if let Some(written) = source.agent.as_ref().filter(|name| !name.value.is_empty())
        && hands.known.lacks(&agent)
    {
        let name = one_line(&agent);
        let names = || {
            hands
                .known
                .names
                .iter()
                .map(String::as_str)
                .chain([SPEAKER])
        };
        if hands.unasked.contains(&agent) {
            let what = format!("`{name}` is a sub-agent that orchestrator.yaml does not list");
            page.error(written.position, what).write(format!(
                "it as a worker in workers/{name}/agent.yaml, or in `sub_agents` there"
            ));
        } else if let Some(meant) = closest_name(&agent, names()) {
            let what = format!("unknown agent `{name}`, did you mean `{meant}`?");
            page.error(written.position, what);
        } else {
            page.error(written.position, format!("unknown agent `{name}`"))
                .write(format!(
                    "one of {}, or its definition in workers/{name}/agent.yaml",
                    quoted_list(names())
                ));
        }
    }
    ToolKind::Delegate { agent }
}
