//! Checks what the definitions say of each other and of the registry: names that are unique,
//! sub-agents that exist, statuses that may be emitted (S1-068), tools that somebody uses.

use super::folder::{Doc, Folder};
use super::page::{Page, is_id};
use super::status::Statuses;
use super::tool::{Hands, Tools};
use crate::definition::Definition;
use crate::finding::{Findings, Known};
use crate::registry::Lifecycle;
use crate::source::agent::{AgentSource, OrchestratorSource, WorkerSource};
use crate::source::form::Either;
use crate::tool::ToolKind;
use crate::wording::closest_name;
use crate::wording::one_line;
use crate::yaml::{Located, TextPosition};

const ORCHESTRATOR: &str = "orchestrator.yaml";
/// Sub-agents above which their descriptions crowd the prompt (S2-007).
const AGENTS_SOFT_MAX: usize = 10;

/// A sub-agent's file with what it defines.
pub(crate) struct Member<'a> {
    pub(crate) file: &'a str,
    pub(crate) source: &'a AgentSource,
    pub(crate) definition: Definition,
}

/// A worker's file with what it defines.
pub(crate) struct Hand<'a> {
    pub(crate) file: &'a str,
    pub(crate) source: &'a WorkerSource,
    pub(crate) definition: Definition,
}

/// The ids of the sub-agents. Hidden if one of them is not known for sure: its file is broken, or
/// its id is no id or another's, which is told elsewhere.
pub(crate) fn known(agents: &[Doc<AgentSource>]) -> Known {
    let ids = agents
        .iter()
        .map(|agent| agent.source.as_ref()?.id.as_ref());
    named(ids)
}

/// The same of the workers.
pub(crate) fn workers(workers: &[Doc<WorkerSource>]) -> Known {
    let ids = workers.iter().map(|worker| {
        let id = worker.source.as_ref()?.id.as_ref()?;
        (id.value == worker.name).then_some(id)
    });
    named(ids)
}

fn named<'a>(ids: impl Iterator<Item = Option<&'a Located<String>>>) -> Known {
    let mut known = Known::default();
    for id in ids {
        match id {
            Some(id) if is_id(&id.value) && !known.names.contains(&id.value) => {
                known.names.push(id.value.clone());
            }
            Some(_) | None => known.hidden = true,
        }
    }
    known
}

/// Who work can be given to.
pub(crate) fn hands(folder: &Folder, agents: &Known, workers: &Known) -> Hands {
    let speaker = folder.orchestrator.as_ref();
    let asked = speaker.map_or(&[][..], |source| &source.sub_agents);
    let asked: Vec<String> = asked
        .iter()
        .filter_map(asked_id)
        .map(|id| id.value)
        .collect();
    let (asked, unasked) = agents
        .names
        .iter()
        .cloned()
        .partition(|id| asked.contains(id));
    let asked = Known {
        names: asked,
        hidden: agents.hidden || speaker.is_none(),
    };
    Hands {
        known: workers.and(&asked),
        unasked,
        speaker: speaker.and_then(|source| Some(source.id.as_ref()?.value.clone())),
    }
}

/// No two members answer to one name.
pub(crate) fn names(
    orchestrator: Option<&Definition>,
    members: &[Member<'_>],
    hands: &[Hand<'_>],
    found: &mut Findings,
) {
    let mut taken: Vec<(&str, &str)> = Vec::new();
    if let Some(orchestrator) = orchestrator {
        taken.push((&orchestrator.id, ORCHESTRATOR));
    }
    // All ids first, so that it is the alias that is told to give way.
    let of_members = members.iter().map(|one| (one.file, &one.source.id));
    let of_hands = hands.iter().map(|one| (one.file, &one.source.id));
    for (own, id) in of_members.chain(of_hands) {
        let Some(id) = id else {
            continue;
        };
        match taken.iter().find(|(name, _)| *name == id.value) {
            Some((_, file)) => found
                .error(
                    own,
                    id.position,
                    format!(
                        "the agent id `{}` is already in {file}",
                        one_line(&id.value)
                    ),
                )
                .write("another id"),
            None => taken.push((&id.value, own)),
        }
    }
    for member in members {
        for alias in &member.source.aliases {
            match taken.iter().find(|(name, _)| *name == alias.value) {
                Some((_, file)) => found
                    .error(
                        member.file,
                        alias.position,
                        format!(
                            "the alias `{}` is already a name in {file}",
                            one_line(&alias.value)
                        ),
                    )
                    .write("another alias, or none"),
                None => taken.push((&alias.value, member.file)),
            }
        }
    }
}

/// Whom the orchestrator asks, and who is left out.
pub(crate) fn asked(
    source: &OrchestratorSource,
    members: &[Member<'_>],
    (known, workers): (&Known, &Known),
    found: &mut Findings,
) {
    let ids: Vec<Located<String>> = source.sub_agents.iter().filter_map(asked_id).collect();
    let mut page = Page {
        file: ORCHESTRATOR,
        found,
    };
    page.once(&ids, "sub_agents");
    for id in &ids {
        let alias = members
            .iter()
            .find(|member| member.definition.aliases.contains(&id.value));
        match alias {
            Some(member) if known.lacks(&id.value) => page
                .error(id.position, format!("`{}` is an alias", id.value))
                .write(format!("`{}`", member.definition.id)),
            None if known.lacks(&id.value) && workers.names.contains(&id.value) => page
                .error(
                    id.position,
                    format!("`{}` is a worker, and nobody asks one", id.value),
                )
                .write(format!(
                    "no entry here, and a tool with `connector: delegate` and `agent: {}`",
                    id.value
                )),
            Some(_) | None => page.unknown(id, "sub-agent", known),
        }
    }
    if let Some(over) = source.sub_agents.get(AGENTS_SOFT_MAX) {
        let what = format!(
            "{} sub-agents; above {AGENTS_SOFT_MAX} the model chooses among them less well",
            ids.len()
        );
        page.warning(over.position, what)
            .write("fewer sub-agents, each with more to do");
    }
    // Who is misspelt above is meant to be asked.
    if known.hidden || ids.iter().any(|id| known.lacks(&id.value)) {
        return;
    }
    for member in members {
        let id = &member.definition.id;
        if !ids.iter().any(|asked| asked.value == *id) {
            let what = format!("nobody asks `{id}`: {ORCHESTRATOR} does not list it");
            found
                .warning(member.file, TextPosition::TOP, what)
                .write(format!("`{id}` in `sub_agents` of {ORCHESTRATOR}"));
        }
    }
}

pub(crate) fn asked_id(
    asked: &Located<Either<String, crate::source::agent::SubAgentSource>>,
) -> Option<Located<String>> {
    match &asked.value {
        Either::Short(id) => Some(Located {
            value: id.clone(),
            position: asked.position,
        }),
        Either::Long(long) => long.id.clone(),
    }
}

/// Every id that a sub-agent can emit is registered, active, and lists it as an emitter.
pub(crate) fn emits(
    members: &[Member<'_>],
    statuses: &Statuses,
    tools: &Tools,
    found: &mut Findings,
) {
    for member in members {
        let mut page = Page {
            file: member.file,
            found,
        };
        for id in &member.source.emits {
            registered(&mut page, id, &member.definition, statuses);
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
                    let what = format!(
                        "the tool `{}` emits `{status}`, which is not in `emits`",
                        tool.name
                    );
                    page.error(name.position, what)
                        .write(format!("`{status}` in `emits`, or another tool"));
                }
            }
            if strange {
                continue;
            }
            if matches!(tool.kind, ToolKind::Ccs { .. }) && emits.is_empty() {
                let what = format!(
                    "`{}` may take long, and `{}` emits no status while it does",
                    tool.name, member.definition.id
                );
                page.warning(name.position, what)
                    .write("a status id in `emits`, and as `status` of the tool");
            }
        }
    }
}

/// Whether `emits` has this id with a mistake in it, which is told there.
fn is_misspelt(status: &str, emits: &[String], statuses: &Statuses) -> bool {
    let unknown = emits.iter().filter(|id| statuses.known.lacks(id));
    let mut meant = unknown.filter_map(|id| {
        let names = statuses.known.names.iter().map(String::as_str);
        closest_name(id, names)
    });
    meant.any(|meant| meant == status)
}

fn registered(page: &mut Page<'_>, id: &Located<String>, agent: &Definition, statuses: &Statuses) {
    let (name, written) = (&agent.id, one_line(&id.value));
    let what = format!("agent `{name}` emits `{written}`");
    let Some(entry) = statuses.registry.get(&id.value) else {
        if statuses.known.hidden {
            return;
        }
        let vertical = agent.vertical.as_deref().unwrap_or_default();
        let fragment = format!("verticals/{vertical}/status_events.yaml");
        let names = statuses.known.names.iter().map(String::as_str);
        let what = format!("{what}, which no status_events.yaml registers");
        match closest_name(&id.value, names) {
            Some(meant) => {
                page.error(id.position, format!("{what}, did you mean `{meant}`?"))
                    .emitted();
            }
            None => page.error(id.position, what).emitted().write(format!(
                "an entry `id: {written}` with `emitter_subagents: [{name}]` in {fragment}"
            )),
        }
        return;
    };
    if entry.lifecycle == Lifecycle::Deprecated {
        let note = entry.note.as_deref().unwrap_or_default();
        let instead = match one_line(note.trim()) {
            // That the note is missing is told where it should be.
            none if none.is_empty() => "an id that is active".to_owned(),
            note => format!("an id that is active; its note says: {note}"),
        };
        page.error(
            id.position,
            format!("{what}, which is deprecated in {}", entry.fragment),
        )
        .emitted()
        .write(instead);
    }
    let told = entry.emitters.is_empty() || !is_id(name);
    if !told && !entry.emitters.contains(name) {
        let what = format!(
            "{what}, but {} does not list `{name}` as an emitter of it",
            entry.fragment
        );
        let mut emitters = entry.emitters.clone();
        emitters.push(name.clone());
        page.error(id.position, what).emitted().write(format!(
            "`emitter_subagents: [{}]` there, or no `{written}` here",
            emitters.join(", ")
        ));
    }
}
