//! Checks the definitions against each other and against the status registry: unique names, existing
//! sub-agents, statuses that may be emitted (S1-068).

use crate::check::folder::{ParsedFile, ParsedPack};
use crate::check::report::{FileReport, is_id};
use crate::check::text::status::CheckedStatuses;
use crate::check::tool::{CheckedTools, DelegateTargets};
use crate::finding::{Findings, KnownNames};
use crate::pack::agent::AgentDefinition;
use crate::pack::status::StatusLifecycle;
use crate::pack::tool::ToolKind;
use crate::source::agent::{AgentSource, CommonFields, OrchestratorSource, WorkerSource};
use crate::text::wording::{closest_name, did_you_mean, one_line};
use crate::yaml::{Located, TextPosition};

const ORCHESTRATOR: &str = "orchestrator.yaml";
/// The number of sub-agents above which a model chooses less well among them (S2-007).
const AGENTS_SOFT_MAX: usize = 10;

/// The file of a sub-agent or a worker with its definition.
pub(crate) struct AgentFile<'a> {
    pub(crate) file: &'a str,
    pub(crate) fields: CommonFields<'a>,
    /// Empty for a worker.
    pub(crate) aliases: &'a [Located<String>],
    /// Empty for a worker.
    pub(crate) emits: &'a [Located<String>],
    /// True if the file says how long the agent may take.
    pub(crate) has_timeout: bool,
    pub(crate) definition: AgentDefinition,
}

/// The ids of the sub-agents. Incomplete if a file is broken, or if an id is invalid or not unique,
/// which is reported elsewhere.
pub(crate) fn sub_agent_ids(agents: &[ParsedFile<AgentSource>]) -> KnownNames {
    let ids = agents
        .iter()
        .map(|agent| agent.source.as_ref()?.id.as_ref());
    unique_ids(ids)
}

/// The agents that an entry of the status registry may name: the sub-agents, and an orchestrator that
/// runs elsewhere, which has its own sub-agents there.
pub(crate) fn status_emitters(folder: &ParsedPack, agents: &KnownNames) -> KnownNames {
    let orchestrator = folder.orchestrator.as_ref();
    let relayed = orchestrator.filter(|source| source.relay.is_some());
    let id = relayed.and_then(|source| source.id.as_ref());
    agents.and(&KnownNames::complete(id.map(|id| &id.value)))
}

/// As [`sub_agent_ids`], for the workers.
pub(crate) fn worker_ids(workers: &[ParsedFile<WorkerSource>]) -> KnownNames {
    let ids = workers.iter().map(|worker| {
        let id = worker.source.as_ref()?.id.as_ref()?;
        (id.value == worker.name).then_some(id)
    });
    unique_ids(ids)
}

fn unique_ids<'a>(ids: impl Iterator<Item = Option<&'a Located<String>>>) -> KnownNames {
    let mut known_names = KnownNames::default();
    for id in ids {
        match id {
            Some(id) if is_id(&id.value) && !known_names.names.contains(&id.value) => {
                known_names.names.push(id.value.clone());
            }
            Some(_) | None => known_names.incomplete = true,
        }
    }
    known_names
}

/// The agents that a delegate tool may name.
pub(crate) fn delegate_targets(
    folder: &ParsedPack,
    agents: &KnownNames,
    workers: &KnownNames,
) -> DelegateTargets {
    let orchestrator = folder.orchestrator.as_ref();
    let listed = orchestrator.map(OrchestratorSource::sub_agent_ids);
    let is_listed = |id: &String| listed.iter().flatten().any(|listed| listed.value == *id);
    let (listed_ids, unlisted) = agents.names.iter().cloned().partition(is_listed);
    let listed_ids = KnownNames {
        names: listed_ids,
        incomplete: agents.incomplete || orchestrator.is_none(),
    };
    DelegateTargets {
        known_names: workers.and(&listed_ids),
        unlisted,
        orchestrator: orchestrator.and_then(|source| Some(source.id.as_ref()?.value.clone())),
    }
}

/// Reports ids and aliases that are not unique.
pub(crate) fn check_names(
    orchestrator: Option<&AgentDefinition>,
    agents: &[&AgentFile<'_>],
    findings: &mut Findings,
) {
    let orchestrator = orchestrator.map(|orchestrator| (orchestrator.id.as_str(), ORCHESTRATOR));
    let mut owners: Vec<(&str, &str)> = orchestrator.into_iter().collect();
    // Ids first, so that of an id and an equal alias the alias is reported.
    let ids = agents
        .iter()
        .flat_map(|agent| Some((agent.file, agent.fields.id.as_ref()?)));
    let ids = ids.map(|(file, id)| (file, id, ("the agent id", "in", "another id")));
    let words = ("the alias", "a name in", "another alias, or none");
    let aliases = agents.iter().flat_map(|agent| {
        let aliases = agent.aliases.iter();
        aliases.map(|alias| (agent.file, alias, words))
    });
    for (own, name, (noun, already, instead)) in ids.chain(aliases) {
        match owners.iter().find(|(owned, _)| *owned == name.value) {
            Some((_, file)) => {
                let name_text = one_line(&name.value);
                let message = format!("{noun} `{name_text}` is already {already} {file}");
                findings.error(own, name.position, message, instead);
            }
            None => owners.push((&name.value, own)),
        }
    }
}

/// Checks the sub-agents that the orchestrator lists, and reports those it does not list.
pub(crate) fn check_sub_agents(
    source: &OrchestratorSource,
    sub_agents: &[AgentFile<'_>],
    (known_names, workers): (&KnownNames, &KnownNames),
    findings: &mut Findings,
) {
    let ids = source.sub_agent_ids();
    let mut report = FileReport::new(ORCHESTRATOR, findings);
    report.check_unique(&ids, "sub_agents");
    for id in &ids {
        let alias = sub_agents
            .iter()
            .find(|member| member.definition.aliases.contains(&id.value));
        match alias {
            Some(member) if known_names.lacks(&id.value) => report.error(
                id.position,
                format!("`{}` is an alias", id.value),
                format!("`{}`", member.definition.id),
            ),
            None if known_names.lacks(&id.value) && workers.names.contains(&id.value) => report
                .error(
                    id.position,
                    format!("`{}` is a worker, and nobody asks one", id.value),
                    format!(
                        "no entry here, and a tool with `connector: delegate` and `agent: {}`",
                        id.value
                    ),
                ),
            Some(_) | None => report.unknown(id, "sub-agent", known_names),
        }
    }
    if let Some(first_extra) = source.sub_agents.get(AGENTS_SOFT_MAX) {
        let message = format!(
            "{} sub-agents; above {AGENTS_SOFT_MAX} the model chooses among them less well",
            ids.len()
        );
        let instead = "fewer sub-agents, each with more to do";
        report.warning(first_extra.position, message, instead);
    }
    // A misspelt id above may mean a sub-agent that seems unlisted.
    if known_names.incomplete || ids.iter().any(|id| known_names.lacks(&id.value)) {
        return;
    }
    for member in sub_agents {
        let id = &member.definition.id;
        if !ids.iter().any(|listed| listed.value == *id) {
            let message = format!("nobody asks `{id}`: {ORCHESTRATOR} does not list it");
            let instead = format!("`{id}` in `sub_agents` of {ORCHESTRATOR}");
            findings.warning(member.file, TextPosition::TOP, message, instead);
        }
    }
}

/// Every id that a sub-agent can emit is registered, active, and lists it as an emitter.
pub(crate) fn check_emits(
    sub_agents: &[AgentFile<'_>],
    statuses: &CheckedStatuses,
    tools: &CheckedTools,
    findings: &mut Findings,
) {
    for member in sub_agents {
        let mut report = FileReport::new(member.file, findings);
        for id in member.emits {
            check_registered(&mut report, id, &member.definition, statuses);
        }
        for name in member.fields.tools {
            let Some(tool) = tools.get(&name.value) else {
                continue;
            };
            let emits = &member.definition.emits;
            let mut strange = false;
            for status in [&tool.status, &tool.progress_status].into_iter().flatten() {
                if !emits.contains(status)
                    && !is_misspelt(status, emits, statuses)
                    && statuses.registry.get(status).is_some()
                {
                    strange = true;
                    let message = format!(
                        "the tool `{}` emits `{status}`, which is not in `emits`",
                        tool.name
                    );
                    let instead = format!("`{status}` in `emits`, or another tool");
                    report.error(name.position, message, instead);
                }
            }
            if strange {
                continue;
            }
            if matches!(tool.kind, ToolKind::Ccs { .. }) && emits.is_empty() {
                let message = format!(
                    "`{}` may take long, and `{}` emits no status while it does",
                    tool.name, member.definition.id
                );
                let instead = "a status id in `emits`, and as `status` of the tool";
                report.warning(name.position, message, instead);
            }
        }
    }
}

/// True if `emits` has a misspelling of this id, which is reported there.
fn is_misspelt(status: &str, emits: &[String], statuses: &CheckedStatuses) -> bool {
    let unknown = emits.iter().filter(|id| statuses.known_names.lacks(id));
    let mut suggestion = unknown.filter_map(|id| closest_name(id, statuses.known_names.iter()));
    suggestion.any(|suggestion| suggestion == status)
}

fn check_registered(
    report: &mut FileReport<'_>,
    id: &Located<String>,
    agent: &AgentDefinition,
    statuses: &CheckedStatuses,
) {
    let (name, written) = (&agent.id, one_line(&id.value));
    let mut unregistered = |message: String, instead: String| {
        let message = format!("agent `{name}` emits `{written}`, {message}");
        report.error(id.position, message, instead);
        report.findings.mark_unregistered();
    };
    let Some(entry) = statuses.registry.get(&id.value) else {
        if !statuses.known_names.incomplete {
            let vertical = agent.vertical.as_deref().unwrap_or_default();
            let message = "which no status_events.yaml registers".to_owned();
            let instead = format!(
                "an entry `id: {written}` with `emitter_subagents: [{name}]` in verticals/{vertical}/status_events.yaml"
            );
            let names = statuses.known_names.iter();
            let (message, instead) = did_you_mean(message, &id.value, names, instead);
            unregistered(message, instead);
        }
        return;
    };
    let fragment = &entry.fragment;
    if entry.lifecycle == StatusLifecycle::Deprecated {
        let note = entry.note.as_deref().unwrap_or_default();
        let instead = match one_line(note.trim()) {
            // A missing note is reported where it should be.
            none if none.is_empty() => "an id that is active".to_owned(),
            note => format!("an id that is active; its note says: {note}"),
        };
        unregistered(format!("which is deprecated in {fragment}"), instead);
    }
    let is_reported = entry.emitters.is_empty() || !is_id(name);
    if !is_reported && !entry.emitters.contains(name) {
        let message = format!("but {fragment} does not list `{name}` as an emitter of it");
        let emitters = entry.emitters.join(", ");
        let instead =
            format!("`emitter_subagents: [{emitters}, {name}]` there, or no `{written}` here");
        unregistered(message, instead);
    }
}
