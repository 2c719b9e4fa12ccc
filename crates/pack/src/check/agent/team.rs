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
use crate::source::agent::{AgentSource, OrchestratorSource, WorkerSource};
use crate::text::wording::closest_name;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

const ORCHESTRATOR: &str = "orchestrator.yaml";
/// The number of sub-agents above which a model chooses less well among them (S2-007).
const AGENTS_SOFT_MAX: usize = 10;

/// A sub-agent's file with its definition.
pub(crate) struct SubAgentFile<'a> {
    pub(crate) file: &'a str,
    pub(crate) source: &'a AgentSource,
    pub(crate) definition: AgentDefinition,
}

/// A worker's file with its definition.
pub(crate) struct WorkerFile<'a> {
    pub(crate) file: &'a str,
    pub(crate) source: &'a WorkerSource,
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
    sub_agents: &[SubAgentFile<'_>],
    workers: &[WorkerFile<'_>],
    findings: &mut Findings,
) {
    let mut owners: Vec<(&str, &str)> = Vec::new();
    if let Some(orchestrator) = orchestrator {
        owners.push((&orchestrator.id, ORCHESTRATOR));
    }
    // Ids first, so that of an id and an equal alias the alias is reported.
    let of_members = sub_agents.iter().map(|one| (one.file, &one.source.id));
    let of_hands = workers.iter().map(|one| (one.file, &one.source.id));
    for (own, id) in of_members.chain(of_hands) {
        let Some(id) = id else {
            continue;
        };
        match owners.iter().find(|(name, _)| *name == id.value) {
            Some((_, file)) => findings
                .error(
                    own,
                    id.position,
                    format!(
                        "the agent id `{}` is already in {file}",
                        one_line(&id.value)
                    ),
                )
                .suggest("another id"),
            None => owners.push((&id.value, own)),
        }
    }
    for member in sub_agents {
        for alias in &member.source.aliases {
            match owners.iter().find(|(name, _)| *name == alias.value) {
                Some((_, file)) => findings
                    .error(
                        member.file,
                        alias.position,
                        format!(
                            "the alias `{}` is already a name in {file}",
                            one_line(&alias.value)
                        ),
                    )
                    .suggest("another alias, or none"),
                None => owners.push((&alias.value, member.file)),
            }
        }
    }
}

/// Checks the sub-agents that the orchestrator lists, and reports those it does not list.
pub(crate) fn check_sub_agents(
    source: &OrchestratorSource,
    sub_agents: &[SubAgentFile<'_>],
    (known_names, workers): (&KnownNames, &KnownNames),
    findings: &mut Findings,
) {
    let ids = source.sub_agent_ids();
    let mut report = FileReport {
        file: ORCHESTRATOR,
        findings,
    };
    report.check_unique(&ids, "sub_agents");
    for id in &ids {
        let alias = sub_agents
            .iter()
            .find(|member| member.definition.aliases.contains(&id.value));
        match alias {
            Some(member) if known_names.lacks(&id.value) => report
                .error(id.position, format!("`{}` is an alias", id.value))
                .suggest(format!("`{}`", member.definition.id)),
            None if known_names.lacks(&id.value) && workers.names.contains(&id.value) => report
                .error(
                    id.position,
                    format!("`{}` is a worker, and nobody asks one", id.value),
                )
                .suggest(format!(
                    "no entry here, and a tool with `connector: delegate` and `agent: {}`",
                    id.value
                )),
            Some(_) | None => report.unknown(id, "sub-agent", known_names),
        }
    }
    if let Some(first_extra) = source.sub_agents.get(AGENTS_SOFT_MAX) {
        let message = format!(
            "{} sub-agents; above {AGENTS_SOFT_MAX} the model chooses among them less well",
            ids.len()
        );
        report
            .warning(first_extra.position, message)
            .suggest("fewer sub-agents, each with more to do");
    }
    // A misspelt id above may mean a sub-agent that seems unlisted.
    if known_names.incomplete || ids.iter().any(|id| known_names.lacks(&id.value)) {
        return;
    }
    for member in sub_agents {
        let id = &member.definition.id;
        if !ids.iter().any(|listed| listed.value == *id) {
            let message = format!("nobody asks `{id}`: {ORCHESTRATOR} does not list it");
            findings
                .warning(member.file, TextPosition::TOP, message)
                .suggest(format!("`{id}` in `sub_agents` of {ORCHESTRATOR}"));
        }
    }
}

/// Every id that a sub-agent can emit is registered, active, and lists it as an emitter.
pub(crate) fn check_emits(
    sub_agents: &[SubAgentFile<'_>],
    statuses: &CheckedStatuses,
    tools: &CheckedTools,
    findings: &mut Findings,
) {
    for member in sub_agents {
        let mut report = FileReport {
            file: member.file,
            findings,
        };
        for id in &member.source.emits {
            check_registered(&mut report, id, &member.definition, statuses);
        }
        let uses = member.source.tools.iter();
        for name in uses {
            let Some(tool) = tools.tools.iter().find(|tool| tool.name == name.value) else {
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
                    report
                        .error(name.position, message)
                        .suggest(format!("`{status}` in `emits`, or another tool"));
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
                report
                    .warning(name.position, message)
                    .suggest("a status id in `emits`, and as `status` of the tool");
            }
        }
    }
}

/// True if `emits` has a misspelling of this id, which is reported there.
fn is_misspelt(status: &str, emits: &[String], statuses: &CheckedStatuses) -> bool {
    let unknown = emits.iter().filter(|id| statuses.known_names.lacks(id));
    let mut suggestion = unknown.filter_map(|id| {
        let names = statuses.known_names.names.iter().map(String::as_str);
        closest_name(id, names)
    });
    suggestion.any(|suggestion| suggestion == status)
}

fn check_registered(
    report: &mut FileReport<'_>,
    id: &Located<String>,
    agent: &AgentDefinition,
    statuses: &CheckedStatuses,
) {
    let (name, written) = (&agent.id, one_line(&id.value));
    let message = format!("agent `{name}` emits `{written}`");
    let Some(entry) = statuses.registry.get(&id.value) else {
        if statuses.known_names.incomplete {
            return;
        }
        let vertical = agent.vertical.as_deref().unwrap_or_default();
        let fragment = format!("verticals/{vertical}/status_events.yaml");
        let names = statuses.known_names.names.iter().map(String::as_str);
        let message = format!("{message}, which no status_events.yaml registers");
        match closest_name(&id.value, names) {
            Some(suggestion) => {
                report
                    .error(
                        id.position,
                        format!("{message}, did you mean `{suggestion}`?"),
                    )
                    .mark_unregistered();
            }
            None => report
                .error(id.position, message)
                .mark_unregistered()
                .suggest(format!(
                    "an entry `id: {written}` with `emitter_subagents: [{name}]` in {fragment}"
                )),
        }
        return;
    };
    if entry.lifecycle == StatusLifecycle::Deprecated {
        let note = entry.note.as_deref().unwrap_or_default();
        let instead = match one_line(note.trim()) {
            // A missing note is reported where it should be.
            none if none.is_empty() => "an id that is active".to_owned(),
            note => format!("an id that is active; its note says: {note}"),
        };
        report
            .error(
                id.position,
                format!("{message}, which is deprecated in {}", entry.fragment),
            )
            .mark_unregistered()
            .suggest(instead);
    }
    let is_reported = entry.emitters.is_empty() || !is_id(name);
    if !is_reported && !entry.emitters.contains(name) {
        let message = format!(
            "{message}, but {} does not list `{name}` as an emitter of it",
            entry.fragment
        );
        let mut emitters = entry.emitters.clone();
        emitters.push(name.clone());
        report
            .error(id.position, message)
            .mark_unregistered()
            .suggest(format!(
                "`emitter_subagents: [{}]` there, or no `{written}` here",
                emitters.join(", ")
            ));
    }
}
