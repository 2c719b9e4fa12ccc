//! Checks the tools of tool servers, and those that delegate work to an agent.

use crate::check::report::FileReport;
use crate::finding::KnownNames;
use crate::pack::agent::ORCHESTRATOR_ID;
use crate::pack::tool::ToolKind;
use crate::source::tool::ToolSource;
use crate::text::wording::one_line;
use crate::text::wording::{closest_name, quoted_list};
use crate::yaml::TextPosition;

/// The default timeout of a delegate tool.
pub(super) const TIMEOUT_MS: u64 = 120_000;
/// The maximum length of a server's name for its tool.
const TOOL_CHARS_MAX: usize = 128;

/// The agents that a delegate tool may name.
pub(crate) struct DelegateTargets {
    /// Workers, and sub-agents that the orchestrator lists.
    pub(crate) known_names: KnownNames,
    /// Sub-agents that the orchestrator does not list, which are not part of the pack.
    pub(crate) unlisted: Vec<String>,
    /// The orchestrator's id; `None` if its file is broken.
    pub(crate) orchestrator: Option<String>,
}

/// Checks a tool of a tool server.
pub(super) fn mcp(
    report: &mut FileReport<'_>,
    home: TextPosition,
    source: &ToolSource,
    servers: &KnownNames,
) -> ToolKind {
    let server = report.require_text(&source.server, "server", home, "server: files");
    if let Some(written) = source.server.as_ref().filter(|name| !name.value.is_empty()) {
        report.unknown(written, "tool server", servers);
    }
    let tool = match &source.tool {
        Some(tool) => {
            let length = tool.value.chars().count();
            if !(1..=TOOL_CHARS_MAX).contains(&length) || tool.value.contains(char::is_control) {
                report
                    .error(tool.position, "this cannot be the name of a server's tool")
                    .suggest(format!("its name there, 1 to {TOOL_CHARS_MAX} characters"));
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

/// Checks a tool that delegates work to a worker session.
pub(super) fn delegate(
    report: &mut FileReport<'_>,
    home: TextPosition,
    source: &ToolSource,
    workers: &DelegateTargets,
) -> ToolKind {
    let agent = report.require_text(&source.agent, "agent", home, "agent: researcher");
    let is_speaker = agent == ORCHESTRATOR_ID || workers.orchestrator.as_ref() == Some(&agent);
    if is_speaker {
        let agent = ORCHESTRATOR_ID.to_owned();
        return ToolKind::Delegate { agent };
    }
    if let Some(written) = source.agent.as_ref().filter(|name| !name.value.is_empty())
        && workers.known_names.lacks(&agent)
    {
        let name = one_line(&agent);
        let names = || {
            workers
                .known_names
                .names
                .iter()
                .map(String::as_str)
                .chain([ORCHESTRATOR_ID])
        };
        if workers.unlisted.contains(&agent) {
            let message = format!("`{name}` is a sub-agent that orchestrator.yaml does not list");
            report.error(written.position, message).suggest(format!(
                "it as a worker in workers/{name}/agent.yaml, or in `sub_agents` there"
            ));
        } else if let Some(suggestion) = closest_name(&agent, names()) {
            let message = format!("unknown agent `{name}`, did you mean `{suggestion}`?");
            report.error(written.position, message);
        } else {
            report
                .error(written.position, format!("unknown agent `{name}`"))
                .suggest(format!(
                    "one of {}, or its definition in workers/{name}/agent.yaml",
                    quoted_list(names())
                ));
        }
    }
    ToolKind::Delegate { agent }
}
