//! Checks one definition: the orchestrator, a sub-agent or a worker, and the names it refers to.

use crate::check::agent::relay;
use crate::check::manifest::CheckedManifest;
use crate::check::model::name::{self, DEFAULT};
use crate::check::report::{FileReport, text_of, value_or, values, word};
use crate::finding::KnownNames;
use crate::pack::agent::{AgentDefinition, AgentKind, HistoryLimits, PromptBlockRef, SubAgentRef};
use crate::pack::tool::{ASK_PREFIX, SERVER_PREFIX};
use crate::source::agent::{
    AgentSource, CommonFields, OrchestratorSource, PromptBlockSource, WorkerSource,
};
use crate::source::form::ShortOrLong;
use crate::text::wording::{did_you_mean, one_line, quoted_list};
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
    pub(crate) vars: &'a dyn Fn(&str) -> Option<String>,
}

/// The definition in `orchestrator.yaml`.
pub(crate) fn orchestrator(
    report: &mut FileReport<'_>,
    source: &OrchestratorSource,
    context: &DefinitionContext<'_>,
) -> AgentDefinition {
    let kind = AgentKind::Orchestrator;
    let mut definition = common(report, source.common(), kind, context);
    if let (Some(_), Some(first)) = (&source.relay, source.sub_agents.first()) {
        relay::report_ineffective(report, first.position, "sub_agents");
    }
    let flags = context.manifest.known_flags();
    for listed in &source.sub_agents {
        let (id, flag) = match &listed.value {
            ShortOrLong::Short(id) => (id.clone(), None),
            ShortOrLong::Long(long) => (text_of(&long.id), long.flag.as_ref()),
        };
        if let Some(flag) = flag {
            report.unknown(flag, "flag", &flags);
        }
        let flag = flag.map(|flag| flag.value.clone());
        definition.sub_agents.push(SubAgentRef { id, flag });
    }
    definition.deny_words = values(&source.deny_words);
    definition
}

/// The definition of a sub-agent; `folder` is its vertical.
pub(crate) fn sub_agent(
    report: &mut FileReport<'_>,
    source: &AgentSource,
    folder: &str,
    context: &DefinitionContext<'_>,
) -> AgentDefinition {
    let definition = common(report, source.common(), AgentKind::SubAgent, context);
    if let Some(vertical) = &source.vertical
        && vertical.value != folder
    {
        let written = one_line(&vertical.value);
        let message = format!("`vertical` is `{written}`, but the folder is verticals/{folder}");
        let instead = format!("`vertical: {folder}`, or leave it out");
        report.error(vertical.position, message, instead);
    }
    report.check_unique(&source.aliases, "aliases");
    report.check_unique(&source.emits, "emits");
    let default_status = source.default_status.as_ref();
    if let Some(status) = default_status
        && !source.emits.iter().any(|emits| emits.value == status.value)
    {
        let written = one_line(&status.value);
        let message = format!("`default_status` is `{written}`, which is not in `emits`");
        report.error(status.position, message, "one of `emits`, or add it there");
    }
    AgentDefinition {
        vertical: Some(folder.to_owned()),
        aliases: values(&source.aliases),
        emits: values(&source.emits),
        on_cancel: word(&source.on_cancel).unwrap_or_default(),
        timeout_ms: value_or(&source.timeout_ms, definition.timeout_ms),
        default_status: default_status.map(|status| status.value.clone()),
        ..definition
    }
}

/// The definition of a worker; `folder` is the name of its folder.
pub(crate) fn worker(
    report: &mut FileReport<'_>,
    source: &WorkerSource,
    folder: &str,
    context: &DefinitionContext<'_>,
) -> AgentDefinition {
    let definition = common(report, source.common(), AgentKind::Worker, context);
    if let Some(id) = &source.id
        && id.value != folder
    {
        let written = one_line(&id.value);
        let message = format!("`id` is `{written}`, but the folder is workers/{folder}");
        let instead = format!("`id: {folder}`, or the folder workers/{written}");
        report.error(id.position, message, instead);
    }
    AgentDefinition {
        on_cancel: word(&source.on_cancel).unwrap_or_default(),
        timeout_ms: value_or(&source.timeout_ms, definition.timeout_ms),
        ..definition
    }
}

/// A definition with the fields that all kinds of agents have, and the defaults of its kind.
fn common(
    report: &mut FileReport<'_>,
    fields: CommonFields<'_>,
    kind: AgentKind,
    context: &DefinitionContext<'_>,
) -> AgentDefinition {
    check_tools(report, fields.tools, kind, context);
    let (max_messages, max_tokens) = match kind {
        AgentKind::Orchestrator => (60, 24_000),
        AgentKind::SubAgent | AgentKind::Worker => (20, 8_000),
    };
    let history = fields.history.map(|history| &history.value);
    let relay = fields.relay;
    if relay.is_none() {
        relay::require_prompt(report, &fields);
    }
    let relay = relay.map(|source| relay::check(report, source, &fields, context.vars));
    AgentDefinition {
        id: text_of(fields.id),
        version: text_of(fields.version),
        kind,
        description: text_of(fields.description),
        model: match &relay {
            Some(_) => String::new(),
            None => model(report, fields.model, context),
        },
        prompt_blocks: prompt_blocks(report, fields.prompt_blocks, context),
        tools: values(fields.tools),
        timeout_ms: match kind {
            AgentKind::Orchestrator | AgentKind::Worker => TIMEOUT_MS,
            AgentKind::SubAgent => context.manifest.limits.sub_agent_timeout_ms,
        },
        history: HistoryLimits {
            max_messages: history
                .and_then(|own| own.max_messages)
                .unwrap_or(max_messages),
            max_tokens: history.and_then(|own| own.max_tokens).unwrap_or(max_tokens),
        },
        relay,
        ..AgentDefinition::default()
    }
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
        let message = "no `model` is written, and pack.yaml names no `default`";
        let instead = "`model: provider:model`, or `models: {default: …}` in pack.yaml";
        report.error(TextPosition::TOP, message, instead);
    }
    let model = manifest.models.get(DEFAULT).map(String::as_str);
    model.unwrap_or(DEFAULT).to_owned()
}

fn prompt_blocks(
    report: &mut FileReport<'_>,
    blocks: &[Located<ShortOrLong<String, PromptBlockSource>>],
    context: &DefinitionContext<'_>,
) -> Vec<PromptBlockRef> {
    let known = context.prompts;
    let flags = context.manifest.known_flags();
    let mut names = Vec::with_capacity(blocks.len());
    let mut references = Vec::with_capacity(blocks.len());
    for block in blocks {
        let (name, flag, unless) = match &block.value {
            ShortOrLong::Short(name) => {
                let (value, position) = (name.clone(), block.position);
                (Some(Located { value, position }), None, None)
            }
            ShortOrLong::Long(long) => (long.id.clone(), long.flag.as_ref(), long.unless.as_ref()),
        };
        for flag in flag.into_iter().chain(unless) {
            report.unknown(flag, "flag", &flags);
        }
        // A missing name is reported by the schema.
        let Some(name) = name else { continue };
        references.push(PromptBlockRef {
            name: name.value.clone(),
            flag: flag.map(|flag| flag.value.clone()),
            unless: unless.map(|flag| flag.value.clone()),
        });
        names.push(name);
    }
    report.check_unique(&names, "prompt_blocks");
    for block in names.iter().filter(|block| known.lacks(&block.value)) {
        let name = one_line(&block.value);
        let message = format!("unknown prompt block `{name}`");
        let mut instead = format!("its text in prompts/{name}.md");
        if !known.names.is_empty() {
            instead = format!("one of {}, or {instead}", quoted_list(known.iter()));
        }
        let (message, instead) = did_you_mean(message, &block.value, known.iter(), instead);
        report.error(block.position, message, instead);
    }
    references
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
        let (message, instead) = match kind {
            AgentKind::Orchestrator => (
                format!("`{ASK_PREFIX}{id}` is not a tool of the pack"),
                format!("`sub_agents: [{id}]`: its tool is made from that"),
            ),
            AgentKind::SubAgent | AgentKind::Worker => (
                match kind {
                    AgentKind::Worker => "a worker cannot ask sub-agents".to_owned(),
                    _ => "a sub-agent cannot ask other agents".to_owned(),
                },
                format!("no `{ASK_PREFIX}{id}` here"),
            ),
        };
        report.error(name.position, message, instead);
    }
}
