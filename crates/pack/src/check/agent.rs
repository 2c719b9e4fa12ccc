//! Checks one definition: the orchestrator's, a sub-agent's or a worker's, and the names in it.

use super::manifest::Manifest;
use super::model::{self, DEFAULT};
use super::page::{Page, text_of, value_or, values, word};
use crate::definition::{Definition, History, Kind, SubAgentRef};
use crate::finding::Known;
use crate::source::agent::{AgentSource, HistorySource, OrchestratorSource, WorkerSource};
use crate::source::form::Either;
use crate::tool::{ALL_OF, ASK};
use crate::wording::one_line;
use crate::wording::{closest_name, quoted_list};
use crate::yaml::{Located, TextPosition};

/// How long a turn of the orchestrator or of a worker may take where its file does not say.
const TIMEOUT_MS: u64 = 600_000;

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
    tools(page, &source.tools, Kind::Orchestrator, around);
    deny(page, &source.deny_words);
    let flags = around.manifest.known_flags();
    let mut sub_agents = Vec::new();
    for asked in &source.sub_agents {
        let (id, flag) = match &asked.value {
            Either::Short(id) => (id.clone(), None),
            Either::Long(long) => {
                let id = text_of(&long.id);
                if let Some(flag) = &long.flag {
                    page.unknown(flag, "flag", &flags);
                }
                (id, long.flag.as_ref().map(|flag| flag.value.clone()))
            }
        };
        sub_agents.push(SubAgentRef { id, flag });
    }
    Definition {
        id: text_of(&source.id),
        version: version(page, &source.version),
        kind: Kind::Orchestrator,
        description: described(page, &source.description),
        model: model(page, source.model.as_ref(), around),
        prompt_blocks: blocks(page, source.prompt_blocks.as_ref(), around.blocks),
        tools: values(&source.tools),
        sub_agents,
        timeout_ms: TIMEOUT_MS,
        history: history(source.history.as_ref(), (60, 24_000)),
        deny_words: values(&source.deny_words),
        ..Definition::default()
    }
}

/// Checks a sub-agent; `folder` is its vertical.
pub(crate) fn sub_agent(
    page: &mut Page<'_>,
    source: &AgentSource,
    folder: &str,
    around: &Around<'_>,
) -> Definition {
    tools(page, &source.tools, Kind::SubAgent, around);
    lists(page, source, folder);
    if let Some(status) = &source.default_status
        && !source.emits.iter().any(|emits| emits.value == status.value)
    {
        let what = format!(
            "`default_status` is `{}`, which is not in `emits`",
            one_line(&status.value)
        );
        page.error(status.position, what)
            .write("one of `emits`, or add it there");
    }
    Definition {
        id: text_of(&source.id),
        version: version(page, &source.version),
        kind: Kind::SubAgent,
        vertical: Some(folder.to_owned()),
        aliases: values(&source.aliases),
        description: described(page, &source.description),
        model: model(page, source.model.as_ref(), around),
        prompt_blocks: blocks(page, source.prompt_blocks.as_ref(), around.blocks),
        tools: values(&source.tools),
        emits: values(&source.emits),
        on_cancel: word(&source.on_cancel).unwrap_or_default(),
        timeout_ms: value_or(
            &source.timeout_ms,
            around.manifest.limits.sub_agent_timeout_ms,
        ),
        default_status: source
            .default_status
            .as_ref()
            .map(|status| status.value.clone()),
        history: history(source.history.as_ref(), (20, 8_000)),
        ..Definition::default()
    }
}

/// Checks a worker; `folder` is the name of its folder.
pub(crate) fn worker(
    page: &mut Page<'_>,
    source: &WorkerSource,
    folder: &str,
    around: &Around<'_>,
) -> Definition {
    tools(page, &source.tools, Kind::Worker, around);
    let id = text_of(&source.id);
    if let Some(written) = &source.id
        && id != folder
    {
        let what = format!(
            "`id` is `{}`, but the folder is workers/{folder}",
            one_line(&id)
        );
        page.error(written.position, what).write(format!(
            "`id: {folder}`, or the folder workers/{}",
            one_line(&id)
        ));
    }
    Definition {
        id,
        version: version(page, &source.version),
        kind: Kind::Worker,
        description: described(page, &source.description),
        model: model(page, source.model.as_ref(), around),
        prompt_blocks: blocks(page, source.prompt_blocks.as_ref(), around.blocks),
        tools: values(&source.tools),
        on_cancel: word(&source.on_cancel).unwrap_or_default(),
        timeout_ms: value_or(&source.timeout_ms, TIMEOUT_MS),
        history: history(source.history.as_ref(), (20, 8_000)),
        ..Definition::default()
    }
}

/// What only a sub-agent has: its vertical, its other names, what it emits, and nobody to ask.
fn lists(page: &mut Page<'_>, source: &AgentSource, folder: &str) {
    if let Some(vertical) = &source.vertical
        && vertical.value != folder
    {
        let what = format!(
            "`vertical` is `{}`, but the folder is verticals/{folder}",
            one_line(&vertical.value)
        );
        page.error(vertical.position, what)
            .write(format!("`vertical: {folder}`, or leave it out"));
    }
    page.once(&source.aliases, "aliases");
    page.once(&source.emits, "emits");
}

fn described(page: &mut Page<'_>, field: &Option<Located<String>>) -> String {
    let example = "description: what it is for and when to ask it";
    page.text(field, "description", example)
}

fn version(page: &mut Page<'_>, field: &Option<Located<String>>) -> String {
    page.text(field, "version", "version: \"1\"")
}

fn model(page: &mut Page<'_>, field: Option<&Located<String>>, around: &Around<'_>) -> String {
    let manifest = around.manifest;
    if let Some(field) = field {
        let model = model::resolved(page, field, manifest, around.providers);
        return model.unwrap_or_else(|| field.value.clone());
    }
    if manifest.known_models().lacks(DEFAULT) {
        page.error(
            TextPosition::TOP,
            "no `model` is written, and pack.yaml names no `default`",
        )
        .write("`model: provider:model`, or `models: {default: …}` in pack.yaml");
    }
    let model = manifest.models.get(DEFAULT).map(String::as_str);
    model.unwrap_or(DEFAULT).to_owned()
}

fn blocks(
    page: &mut Page<'_>,
    field: Option<&Located<Vec<Located<String>>>>,
    known: &Known,
) -> Vec<String> {
    let Some(blocks) = field else {
        return Vec::new();
    };
    if blocks.value.is_empty() {
        page.error(blocks.position, "`prompt_blocks` is empty")
            .write("at least one name of a file in prompts/, without `.md`");
    }
    page.once(&blocks.value, "prompt_blocks");
    let names = || known.names.iter().map(String::as_str);
    for block in blocks
        .value
        .iter()
        .filter(|block| known.lacks(&block.value))
    {
        let name = one_line(&block.value);
        match closest_name(&block.value, names()) {
            Some(_) => page.unknown(block, "prompt block", known),
            None => page
                .error(block.position, format!("unknown prompt block `{name}`"))
                .write(match names().next() {
                    Some(_) => format!(
                        "one of {}, or its text in prompts/{name}.md",
                        quoted_list(names())
                    ),
                    None => format!("its text in prompts/{name}.md"),
                }),
        }
    }
    values(&blocks.value)
}

fn tools(page: &mut Page<'_>, names: &[Located<String>], kind: Kind, around: &Around<'_>) {
    page.once(names, "tools");
    for name in names {
        if let Some(server) = name.value.strip_prefix(ALL_OF) {
            let server = Located {
                value: server.to_owned(),
                position: name.position,
            };
            page.unknown(&server, "tool server", around.servers);
            continue;
        }
        let Some(id) = name.value.strip_prefix(ASK) else {
            page.unknown(name, "tool", around.tools);
            continue;
        };
        let id = one_line(id);
        match kind {
            Kind::Orchestrator => page
                .error(
                    name.position,
                    format!("`{ASK}{id}` is not a tool of the pack"),
                )
                .write(format!("`sub_agents: [{id}]`: its tool is made from that")),
            Kind::SubAgent => page
                .error(name.position, "a sub-agent cannot ask other agents")
                .write(format!("no `{ASK}{id}` here")),
            Kind::Worker => page
                .error(name.position, "a worker cannot ask sub-agents")
                .write(format!("no `{ASK}{id}` here")),
        }
    }
}

fn deny(page: &mut Page<'_>, words: &[Located<String>]) {
    for word in words.iter().filter(|word| word.value.trim().is_empty()) {
        page.error(word.position, "an empty word in `deny_words`")
            .write("a word, or leave it out");
    }
    for word in words
        .iter()
        .filter(|word| word.value.chars().count() > DENIED_CHARS_MAX)
    {
        page.error(
            word.position,
            format!("a word of `deny_words` has more than {DENIED_CHARS_MAX} characters"),
        )
        .write("its beginning: no more text than that is held back to look for it");
    }
}

/// What the text filter holds back at most; a longer word could pass it in pieces.
const DENIED_CHARS_MAX: usize = 64;

fn history(source: Option<&HistorySource>, default: (u64, u64)) -> History {
    let number = |field: fn(&HistorySource) -> &Option<Located<u64>>, default| {
        source.map_or(default, |source| value_or(field(source), default)) as u32
    };
    History {
        max_messages: number(|history| &history.max_messages, default.0),
        max_tokens: number(|history| &history.max_tokens, default.1),
    }
}
