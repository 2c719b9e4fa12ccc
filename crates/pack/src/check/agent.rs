//! Checks one definition: the orchestrator's, a sub-agent's or a worker's, and the names in it.

use super::manifest::Manifest;
use super::model::{self, DEFAULT};
use super::page::{Page, TIMEOUT_MS_MAX, values};
use crate::definition::{Definition, History, Kind, OnCancel, SubAgentRef};
use crate::finding::{Known, shown};
use crate::nearest::{listed, nearest};
use crate::place::{At, Place};
use crate::source::agent::{AgentSource, HistorySource, OrchestratorSource, WorkerSource};
use crate::source::form::Either;
use crate::tool::{ALL_OF, ASK};

const KINDS: [(&str, Kind); 3] = [
    ("orchestrator", Kind::Orchestrator),
    ("sub_agent", Kind::SubAgent),
    ("worker", Kind::Worker),
];

const CANCELS: [(&str, OnCancel); 1] = [("discard", OnCancel::Discard)];

/// What other versions do when the person cancels.
const CANCEL_NOT_YET: &str = "custom";

/// What a definition may point at.
pub(crate) struct Around<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) providers: &'a Known,
    pub(crate) blocks: &'a Known,
    pub(crate) tools: &'a Known,
    pub(crate) servers: &'a Known,
}

/// Checks the orchestrator.
pub(crate) fn orchestrator(
    page: &mut Page<'_>,
    source: &OrchestratorSource,
    around: &Around<'_>,
) -> Definition {
    kind(page, &source.kind, Kind::Orchestrator);
    tools(page, &source.tools, Kind::Orchestrator, around);
    deny(page, &source.deny_words);
    let flags = around.manifest.known_flags();
    let mut sub_agents = Vec::new();
    for asked in &source.sub_agents {
        let (id, flag) = match &asked.value {
            Either::Short(id) => (id.clone(), None),
            Either::Long(long) => {
                let id = page.id(&long.id, "id", asked.place, "id: shop");
                if let Some(flag) = &long.flag {
                    page.unknown(flag, "flag", &flags);
                }
                (id, long.flag.as_ref().map(|flag| flag.value.clone()))
            }
        };
        sub_agents.push(SubAgentRef { id, flag });
    }
    Definition {
        id: page.id(&source.id, "id", Place::TOP, "id: orchestrator"),
        version: page.text(&source.version, "version", Place::TOP, "version: \"1\""),
        kind: Kind::Orchestrator,
        vertical: None,
        aliases: Vec::new(),
        description: described(page, &source.description),
        model: model(page, source.model.as_ref(), around),
        prompt_blocks: blocks(page, source.prompt_blocks.as_ref(), around.blocks),
        tools: values(&source.tools),
        sub_agents,
        emits: Vec::new(),
        on_cancel: OnCancel::Discard,
        timeout_ms: TIMEOUT_MS_MAX,
        default_status: None,
        history: history(page, source.history.as_ref(), (60, 24_000)),
        deny_words: values(&source.deny_words),
    }
}

/// Checks a sub-agent; `folder` is its vertical.
pub(crate) fn sub_agent(
    page: &mut Page<'_>,
    source: &AgentSource,
    folder: &str,
    around: &Around<'_>,
) -> Definition {
    kind(page, &source.kind, Kind::SubAgent);
    tools(page, &source.tools, Kind::SubAgent, around);
    lists(page, source, folder);
    let on_cancel = page
        .needed(
            &source.on_cancel,
            "on_cancel",
            Place::TOP,
            "on_cancel: discard",
        )
        .and_then(|word| on_cancel(page, word));
    if let Some(status) = &source.default_status
        && !source.emits.iter().any(|emits| emits.value == status.value)
    {
        let what = format!(
            "`default_status` is `{}`, which is not in `emits`",
            shown(&status.value)
        );
        page.error(status.place, what)
            .write("one of `emits`, or add it there");
    }
    let timeout = around.manifest.limits.sub_agent_timeout_ms;
    Definition {
        id: page.id(&source.id, "id", Place::TOP, &format!("id: {folder}")),
        version: page.text(&source.version, "version", Place::TOP, "version: \"1\""),
        kind: Kind::SubAgent,
        vertical: Some(folder.to_owned()),
        aliases: values(&source.aliases),
        description: described(page, &source.description),
        model: model(page, source.model.as_ref(), around),
        prompt_blocks: blocks(page, source.prompt_blocks.as_ref(), around.blocks),
        tools: values(&source.tools),
        sub_agents: Vec::new(),
        emits: values(&source.emits),
        on_cancel: on_cancel.unwrap_or(OnCancel::Discard),
        timeout_ms: page.number(
            &source.timeout_ms,
            "timeout_ms",
            (1, TIMEOUT_MS_MAX),
            timeout,
        ),
        default_status: source
            .default_status
            .as_ref()
            .map(|status| status.value.clone()),
        history: history(page, source.history.as_ref(), (20, 8_000)),
        deny_words: Vec::new(),
    }
}

/// Checks a worker; `folder` is the name of its folder.
pub(crate) fn worker(
    page: &mut Page<'_>,
    source: &WorkerSource,
    folder: &str,
    around: &Around<'_>,
) -> Definition {
    kind(page, &source.kind, Kind::Worker);
    tools(page, &source.tools, Kind::Worker, around);
    alone(page, source);
    if let Some(word) = &source.on_cancel {
        on_cancel(page, word);
    }
    let id = page.id(&source.id, "id", Place::TOP, &format!("id: {folder}"));
    if let Some(written) = &source.id
        && id != folder
    {
        let what = format!(
            "`id` is `{}`, but the folder is workers/{folder}",
            shown(&id)
        );
        page.error(written.place, what).write(format!(
            "`id: {folder}`, or the folder workers/{}",
            shown(&id)
        ));
    }
    Definition {
        id,
        version: page.text(&source.version, "version", Place::TOP, "version: \"1\""),
        kind: Kind::Worker,
        vertical: None,
        aliases: Vec::new(),
        description: described(page, &source.description),
        model: model(page, source.model.as_ref(), around),
        prompt_blocks: blocks(page, source.prompt_blocks.as_ref(), around.blocks),
        tools: values(&source.tools),
        sub_agents: Vec::new(),
        emits: Vec::new(),
        on_cancel: OnCancel::Discard,
        timeout_ms: page.number(
            &source.timeout_ms,
            "timeout_ms",
            (1, TIMEOUT_MS_MAX),
            TIMEOUT_MS_MAX,
        ),
        default_status: None,
        history: history(page, source.history.as_ref(), (20, 8_000)),
        deny_words: Vec::new(),
    }
}

/// What a sub-agent has and a worker has not.
fn alone(page: &mut Page<'_>, source: &WorkerSource) {
    let fields = [
        ("vertical", &source.vertical, "is of no vertical"),
        (
            "aliases",
            &source.aliases,
            "is asked by nobody, so it needs no other names",
        ),
        ("sub_agents", &source.sub_agents, "cannot ask sub-agents"),
        ("emits", &source.emits, "emits no status"),
        ("default_status", &source.default_status, "emits no status"),
    ];
    for (name, field, why) in fields {
        if let Some(field) = field {
            page.error(field.place, format!("a worker {why}"))
                .write(format!("no `{name}` here"));
        }
    }
}

/// What only a sub-agent has: its vertical, its other names, what it emits, and nobody to ask.
fn lists(page: &mut Page<'_>, source: &AgentSource, folder: &str) {
    if let Some(vertical) = &source.vertical
        && vertical.value != folder
    {
        let what = format!(
            "`vertical` is `{}`, but the folder is verticals/{folder}",
            shown(&vertical.value)
        );
        page.error(vertical.place, what)
            .write(format!("`vertical: {folder}`, or leave it out"));
    }
    if let Some(sub_agents) = &source.sub_agents {
        page.error(sub_agents.place, "a sub-agent cannot ask other agents")
            .write("no `sub_agents` here; only orchestrator.yaml lists them");
    }
    for alias in &source.aliases {
        page.id_form(alias, "alias");
    }
    page.once(&source.aliases, "aliases");
    page.once(&source.emits, "emits");
}

fn on_cancel(page: &mut Page<'_>, word: &At<String>) -> Option<OnCancel> {
    if word.value == CANCEL_NOT_YET {
        let what = format!("`{CANCEL_NOT_YET}` is not supported by this version");
        page.error(word.place, what).write("`discard`");
        return None;
    }
    page.choice(word, "on_cancel", &CANCELS)
}

fn kind(page: &mut Page<'_>, field: &Option<At<String>>, wanted: Kind) {
    let (name, whose) = match wanted {
        Kind::Orchestrator => ("orchestrator", "the orchestrator"),
        Kind::SubAgent => ("sub_agent", "a sub-agent"),
        Kind::Worker => ("worker", "a worker"),
    };
    let example = format!("kind: {name}");
    let Some(word) = page.needed(field, "kind", Place::TOP, &example) else {
        return;
    };
    let kind = page.choice(word, "kind", &KINDS);
    if kind.is_some_and(|kind| kind != wanted) {
        let what = format!(
            "`kind` is `{}`, but this is the file of {whose}",
            word.value
        );
        page.error(word.place, what).write(format!("`{example}`"));
    }
}

fn described(page: &mut Page<'_>, field: &Option<At<String>>) -> String {
    page.text(
        field,
        "description",
        Place::TOP,
        "description: what it is for and when to ask it",
    )
}

fn model(page: &mut Page<'_>, field: Option<&At<String>>, around: &Around<'_>) -> String {
    let manifest = around.manifest;
    if let Some(field) = field {
        let model = model::resolved(page, field, manifest, around.providers);
        return model.unwrap_or_else(|| field.value.clone());
    }
    if manifest.known_models().lacks(DEFAULT) {
        page.error(
            Place::TOP,
            "no `model` is written, and pack.yaml names no `default`",
        )
        .write("`model: provider:model`, or `models: {default: …}` in pack.yaml");
    }
    let model = manifest.models.get(DEFAULT).map(String::as_str);
    model.unwrap_or(DEFAULT).to_owned()
}

fn blocks(page: &mut Page<'_>, field: Option<&At<Vec<At<String>>>>, known: &Known) -> Vec<String> {
    let Some(blocks) = field else {
        page.error(Place::TOP, "`prompt_blocks` is missing")
            .write("`prompt_blocks: [persona]`, with the text in prompts/persona.md");
        return Vec::new();
    };
    if blocks.value.is_empty() {
        page.error(blocks.place, "`prompt_blocks` is empty")
            .write("at least one name of a file in prompts/, without `.md`");
    }
    page.once(&blocks.value, "prompt_blocks");
    let names = || known.names.iter().map(String::as_str);
    for block in blocks
        .value
        .iter()
        .filter(|block| known.lacks(&block.value))
    {
        let name = shown(&block.value);
        match nearest(&block.value, names()) {
            Some(_) => page.unknown(block, "prompt block", known),
            None => page
                .error(block.place, format!("unknown prompt block `{name}`"))
                .write(match names().next() {
                    Some(_) => format!(
                        "one of {}, or its text in prompts/{name}.md",
                        listed(names())
                    ),
                    None => format!("its text in prompts/{name}.md"),
                }),
        }
    }
    values(&blocks.value)
}

fn tools(page: &mut Page<'_>, names: &[At<String>], kind: Kind, around: &Around<'_>) {
    page.once(names, "tools");
    for name in names {
        if let Some(server) = name.value.strip_prefix(ALL_OF) {
            let server = At {
                value: server.to_owned(),
                place: name.place,
            };
            page.unknown(&server, "tool server", around.servers);
            continue;
        }
        let Some(id) = name.value.strip_prefix(ASK) else {
            page.unknown(name, "tool", around.tools);
            continue;
        };
        let id = shown(id);
        match kind {
            Kind::Orchestrator => page
                .error(name.place, format!("`{ASK}{id}` is not a tool of the pack"))
                .write(format!("`sub_agents: [{id}]`: its tool is made from that")),
            Kind::SubAgent => page
                .error(name.place, "a sub-agent cannot ask other agents")
                .write(format!("no `{ASK}{id}` here")),
            Kind::Worker => page
                .error(name.place, "a worker cannot ask sub-agents")
                .write(format!("no `{ASK}{id}` here")),
        }
    }
}

fn deny(page: &mut Page<'_>, words: &[At<String>]) {
    for word in words.iter().filter(|word| word.value.trim().is_empty()) {
        page.error(word.place, "an empty word in `deny_words`")
            .write("a word, or leave it out");
    }
    for word in words
        .iter()
        .filter(|word| word.value.chars().count() > DENIED_CHARS_MAX)
    {
        page.error(
            word.place,
            format!("a word of `deny_words` has more than {DENIED_CHARS_MAX} characters"),
        )
        .write("its beginning: no more text than that is held back to look for it");
    }
}

/// What the text filter holds back at most; a longer word could pass it in pieces.
const DENIED_CHARS_MAX: usize = 64;

fn history(page: &mut Page<'_>, source: Option<&HistorySource>, default: (u64, u64)) -> History {
    let (messages, tokens) = source.map_or((None, None), |source| {
        (source.max_messages.clone(), source.max_tokens.clone())
    });
    History {
        max_messages: page.number(&messages, "max_messages", (1, 1_000), default.0) as u32,
        max_tokens: page.number(&tokens, "max_tokens", (1, 1_000_000), default.1) as u32,
    }
}
