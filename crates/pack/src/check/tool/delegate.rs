//! Checks the tools of tool servers, and those that delegate work to an agent.

use super::ToolCheck;
use crate::check::report::text_of;
use crate::finding::KnownNames;
use crate::pack::agent::ORCHESTRATOR_ID;
use crate::pack::tool::ToolKind;
use crate::text::wording::{did_you_mean, one_line, quoted_list};

/// The default timeout of a delegate tool.
pub(super) const TIMEOUT_MS: u64 = 120_000;

/// The agents that a delegate tool may name.
pub(crate) struct DelegateTargets {
    /// Workers, and sub-agents that the orchestrator lists.
    pub(crate) known_names: KnownNames,
    /// Sub-agents that the orchestrator does not list, which are not part of the pack.
    pub(crate) unlisted: Vec<String>,
    /// The orchestrator's id; `None` if its file is broken.
    pub(crate) orchestrator: Option<String>,
}

impl ToolCheck<'_> {
    /// Checks a tool of a tool server.
    pub(super) fn mcp(&mut self) -> ToolKind {
        let source = self.source;
        let server = self.require_text(&source.server, "server", "server: files");
        if let Some(written) = source.server.as_ref().filter(|name| !name.value.is_empty()) {
            self.report
                .unknown(written, "tool server", self.context.servers);
        }
        let tool = match &source.tool {
            Some(tool) => tool.value.clone(),
            None => text_of(&source.name),
        };
        ToolKind::Mcp { server, tool }
    }

    /// Checks a tool that delegates work to a worker session.
    pub(super) fn delegate(&mut self) -> ToolKind {
        let (source, targets) = (self.source, self.context.delegates);
        let agent = self.require_text(&source.agent, "agent", "agent: researcher");
        if agent == ORCHESTRATOR_ID || targets.orchestrator.as_ref() == Some(&agent) {
            return ToolKind::Delegate {
                agent: ORCHESTRATOR_ID.to_owned(),
            };
        }
        if let Some(written) = source.agent.as_ref().filter(|name| !name.value.is_empty())
            && targets.known_names.lacks(&agent)
        {
            let name = one_line(&agent);
            let names = || targets.known_names.iter().chain([ORCHESTRATOR_ID]);
            let (message, instead) = if targets.unlisted.contains(&agent) {
                (
                    format!("`{name}` is a sub-agent that orchestrator.yaml does not list"),
                    format!(
                        "it as a worker in workers/{name}/agent.yaml, or in `sub_agents` there"
                    ),
                )
            } else {
                let listed = quoted_list(names());
                let instead =
                    format!("one of {listed}, or its definition in workers/{name}/agent.yaml");
                did_you_mean(format!("unknown agent `{name}`"), &agent, names(), instead)
            };
            self.report.error(written.position, message, instead);
        }
        ToolKind::Delegate { agent }
    }
}
