//! Checks one definition: the orchestrator, a sub-agent or a worker, and the names it refers to.

use crate::check::manifest::CheckedManifest;
use crate::check::model::name::{self, DEFAULT};
use crate::check::report::{FileReport, text_of, value_or, values, word};
use crate::finding::KnownNames;
use crate::pack::agent::{AgentDefinition, AgentKind, HistoryLimits, SubAgentRef};
use crate::pack::tool::{ASK_PREFIX, SERVER_PREFIX};
use crate::source::agent::{AgentSource, HistorySource, OrchestratorSource, WorkerSource};
use crate::source::form::ShortOrLong;
use crate::text::wording::one_line;
use crate::text::wording::{closest_name, quoted_list};
use crate::yaml::{Located, TextPosition};

/// The default timeout of the orchestrator and of a worker.
const TIMEOUT_MS: u64 = 600_000;

/// The names that a definition may refer to.
pub(crate) struct DefinitionContext<'a> {
    pub(crate) manifest: &'a CheckedManifest,
    pub(crate) providers: &'a KnownNames,
    pub(crate) prompts: &'a KnownNames,
    pub(crate) tools: &'a KnownNames,
    pub(crate) servers: &'a KnownNames,
}

/// The definition in `orchestrator.yaml`.
pub(crate) fn orchestrator(
    report: &mut FileReport<'_>,
    source: &OrchestratorSource,
    context: &DefinitionContext<'_>,
) -> AgentDefinition {
    check_tools(report, &source.tools, AgentKind::Orchestrator, context);
    check_deny_words(report, &source.deny_words);
    let flags = context.manifest.known_flags();
    let mut sub_agents = Vec::new();
    for asked in &source.sub_agents {
        let (id, flag) = match &asked.value {
            ShortOrLong::Short(id) => (id.clone(), None),
            ShortOrLong::Long(long) => {
                let id = text_of(&long.id);
                if let Some(flag) = &long.flag {
                    report.unknown(flag, "flag", &flags);
                }
                (id, long.flag.as_ref().map(|flag| flag.value.clone()))
            }
        };
        sub_agents.push(SubAgentRef { id, flag });
    }
    AgentDefinition {
        id: text_of(&source.id),
        version: version(report, &source.version),
        kind: AgentKind::Orchestrator,
        description: description(report, &source.description),
        model: model(report, source.model.as_ref(), context),
        prompt_blocks: prompt_blocks(report, source.prompt_blocks.as_ref(), context.prompts),
        tools: values(&source.tools),
        sub_agents,
        timeout_ms: TIMEOUT_MS,
        history: history(source.history.as_ref(), (60, 24_000)),
        deny_words: values(&source.deny_words),
        ..AgentDefinition::default()
    }
}

/// The definition of a sub-agent; `folder` is its vertical.
pub(crate) fn sub_agent(
    report: &mut FileReport<'_>,
    source: &AgentSource,
    folder: &str,
    context: &DefinitionContext<'_>,
) -> AgentDefinition {
    check_tools(report, &source.tools, AgentKind::SubAgent, context);
    check_sub_agent_fields(report, source, folder);
    if let Some(status) = &source.default_status
        && !source.emits.iter().any(|emits| emits.value == status.value)
    {
        let message = format!(
            "`default_status` is `{}`, which is not in `emits`",
            one_line(&status.value)
        );
        report
            .error(status.position, message)
            .suggest("one of `emits`, or add it there");
    }
    AgentDefinition {
        id: text_of(&source.id),
        version: version(report, &source.version),
        kind: AgentKind::SubAgent,
        vertical: Some(folder.to_owned()),
        aliases: values(&source.aliases),
        description: description(report, &source.description),
        model: model(report, source.model.as_ref(), context),
        prompt_blocks: prompt_blocks(report, source.prompt_blocks.as_ref(), context.prompts),
        tools: values(&source.tools),
        emits: values(&source.emits),
        on_cancel: word(&source.on_cancel).unwrap_or_default(),
        timeout_ms: value_or(
            &source.timeout_ms,
            context.manifest.limits.sub_agent_timeout_ms,
        ),
        default_status: source
            .default_status
            .as_ref()
            .map(|status| status.value.clone()),
        history: history(source.history.as_ref(), (20, 8_000)),
        ..AgentDefinition::default()
    }
}

/// The definition of a worker; `folder` is the name of its folder.
pub(crate) fn worker(
    report: &mut FileReport<'_>,
    source: &WorkerSource,
    folder: &str,
    context: &DefinitionContext<'_>,
) -> AgentDefinition {
    check_tools(report, &source.tools, AgentKind::Worker, context);
    let id = text_of(&source.id);
    if let Some(written) = &source.id
        && id != folder
    {
        let message = format!(
            "`id` is `{}`, but the folder is workers/{folder}",
            one_line(&id)
        );
        report.error(written.position, message).suggest(format!(
            "`id: {folder}`, or the folder workers/{}",
            one_line(&id)
        ));
    }
    AgentDefinition {
        id,
        version: version(report, &source.version),
        kind: AgentKind::Worker,
        description: description(report, &source.description),
        model: model(report, source.model.as_ref(), context),
        prompt_blocks: prompt_blocks(report, source.prompt_blocks.as_ref(), context.prompts),
        tools: values(&source.tools),
        on_cancel: word(&source.on_cancel).unwrap_or_default(),
        timeout_ms: value_or(&source.timeout_ms, TIMEOUT_MS),
        history: history(source.history.as_ref(), (20, 8_000)),
        ..AgentDefinition::default()
    }
}

/// Checks the fields that only a sub-agent has: vertical, aliases and emitted statuses.
fn check_sub_agent_fields(report: &mut FileReport<'_>, source: &AgentSource, folder: &str) {
    if let Some(vertical) = &source.vertical
        && vertical.value != folder
    {
        let message = format!(
            "`vertical` is `{}`, but the folder is verticals/{folder}",
            one_line(&vertical.value)
        );
        report
            .error(vertical.position, message)
            .suggest(format!("`vertical: {folder}`, or leave it out"));
    }
    report.check_unique(&source.aliases, "aliases");
    report.check_unique(&source.emits, "emits");
}

fn description(report: &mut FileReport<'_>, field: &Option<Located<String>>) -> String {
    let example = "description: what it is for and when to ask it";
    report.text(field, "description", example)
}

fn version(report: &mut FileReport<'_>, field: &Option<Located<String>>) -> String {
    report.text(field, "version", "version: \"1\"")
}

fn model(
    report: &mut FileReport<'_>,
    field: Option<&Located<String>>,
    context: &DefinitionContext<'_>,
) -> String {
    let manifest = context.manifest;
    if let Some(field) = field {
        let model = name::resolved(report, field, manifest, context.providers);
        return model.unwrap_or_else(|| field.value.clone());
    }
    if manifest.known_models().lacks(DEFAULT) {
        report
            .error(
                TextPosition::TOP,
                "no `model` is written, and pack.yaml names no `default`",
            )
            .suggest("`model: provider:model`, or `models: {default: …}` in pack.yaml");
    }
    let model = manifest.models.get(DEFAULT).map(String::as_str);
    model.unwrap_or(DEFAULT).to_owned()
}

fn prompt_blocks(
    report: &mut FileReport<'_>,
    field: Option<&Located<Vec<Located<String>>>>,
    known_names: &KnownNames,
) -> Vec<String> {
    let Some(blocks) = field else {
        return Vec::new();
    };
    if blocks.value.is_empty() {
        report
            .error(blocks.position, "`prompt_blocks` is empty")
            .suggest("at least one name of a file in prompts/, without `.md`");
    }
    report.check_unique(&blocks.value, "prompt_blocks");
    let names = || known_names.names.iter().map(String::as_str);
    for block in blocks
        .value
        .iter()
        .filter(|block| known_names.lacks(&block.value))
    {
        let name = one_line(&block.value);
        match closest_name(&block.value, names()) {
            Some(_) => report.unknown(block, "prompt block", known_names),
            None => report
                .error(block.position, format!("unknown prompt block `{name}`"))
                .suggest(match names().next() {
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

fn check_tools(
    report: &mut FileReport<'_>,
    names: &[Located<String>],
    kind: AgentKind,
    context: &DefinitionContext<'_>,
) {
    report.check_unique(names, "tools");
    for name in names {
        if let Some(server) = name.value.strip_prefix(SERVER_PREFIX) {
            let server = Located {
                value: server.to_owned(),
                position: name.position,
            };
            report.unknown(&server, "tool server", context.servers);
            continue;
        }
        let Some(id) = name.value.strip_prefix(ASK_PREFIX) else {
            report.unknown(name, "tool", context.tools);
            continue;
        };
        let id = one_line(id);
        match kind {
            AgentKind::Orchestrator => report
                .error(
                    name.position,
                    format!("`{ASK_PREFIX}{id}` is not a tool of the pack"),
                )
                .suggest(format!("`sub_agents: [{id}]`: its tool is made from that")),
            AgentKind::SubAgent => report
                .error(name.position, "a sub-agent cannot ask other agents")
                .suggest(format!("no `{ASK_PREFIX}{id}` here")),
            AgentKind::Worker => report
                .error(name.position, "a worker cannot ask sub-agents")
                .suggest(format!("no `{ASK_PREFIX}{id}` here")),
        }
    }
}

fn check_deny_words(report: &mut FileReport<'_>, words: &[Located<String>]) {
    for word in words.iter().filter(|word| word.value.trim().is_empty()) {
        report
            .error(word.position, "an empty word in `deny_words`")
            .suggest("a word, or leave it out");
    }
    for word in words
        .iter()
        .filter(|word| word.value.chars().count() > DENIED_CHARS_MAX)
    {
        report
            .error(
                word.position,
                format!("a word of `deny_words` has more than {DENIED_CHARS_MAX} characters"),
            )
            .suggest("its beginning: no more text than that is held back to look for it");
    }
}

/// The maximum length of a denied word: the text filter holds back no more text than that.
const DENIED_CHARS_MAX: usize = 64;

fn history(source: Option<&HistorySource>, default: (u64, u64)) -> HistoryLimits {
    let number = |field: fn(&HistorySource) -> &Option<Located<u64>>, default| {
        source.map_or(default, |source| value_or(field(source), default)) as u32
    };
    HistoryLimits {
        max_messages: number(|history| &history.max_messages, default.0),
        max_tokens: number(|history| &history.max_tokens, default.1),
    }
}
