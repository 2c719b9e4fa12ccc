//! From files to a [`Pack`]: all mistakes of all files at once.
//!
//! Each file is read alone against its schema; then what the files say of each other is checked. A
//! broken file is reported once, and no other file is blamed for it. Every check goes on with a
//! placeholder for what is wrong; only a pack without an error comes out.

mod report;
mod folder;
mod against;
mod manifest;
mod json_schema;
mod endpoint;
mod tool;
mod text;
mod model;
mod agent;

use std::collections::BTreeMap;

use crate::files::PackFiles;
use crate::finding::{Findings, KnownNames, PackFinding};
use crate::pack::Pack;
use crate::pack::agent::AgentDefinition;
use crate::pack::locale::LocaleTable;
use crate::pack::model_use::ModelUse;
use crate::pack::price::PriceTable;
use crate::pack::status::RegisteredStatus;
use crate::pack::tool::SERVER_PREFIX;

pub use against::check_against;

use agent::definition::{self, DefinitionContext};
use agent::team::{self, AgentFile};
use agent::timeout::{self, TimeoutSources};
use agent::tool_use::{self, ToolUsers};
use folder::{ParsedFile, ParsedPack};
use json_schema::SchemaFiles;
use manifest::CheckedManifest;
use model::provider::{self, CheckedProviders};
use model::routing::{self, CheckedRouting, RoutingContext};
use model::{name, price};
use report::FileReport;
use text::locale::{self, CheckedTexts};
use text::overrides::{self, CheckedOverrides, OverrideContext};
use text::status::{self, CheckedStatuses};
use tool::connector::{self, CheckedConnectors};
use tool::server::{self, CheckedServers};
use tool::{CheckedTools, ToolContext, digest};

/// The result of [`check`].
#[derive(Clone, Debug)]
pub struct PackReport {
    /// The pack; `None` if there is an error.
    pub pack: Option<Pack>,
    /// A pack with errors, with placeholders for what is wrong: for further checks alone. `None` if
    /// the pack has no error, or if the file of its orchestrator cannot be read.
    pub draft: Option<Pack>,
    /// Errors and warnings, by file and position.
    pub findings: Vec<PackFinding>,
}

/// Checks the files of a pack. `vars` looks up `${NAME}` in `connectors.yaml`, `providers.yaml` and
/// `tools.yaml`. Keys of providers are not read: the pack says where each should be.
pub fn check(files: &PackFiles, vars: &dyn Fn(&str) -> Option<String>) -> PackReport {
    let mut findings = Findings::default();
    let draft = match folder::is_too_large(files, &mut findings) {
        true => None,
        false => checked(files, vars, &mut findings),
    };
    let (pack, draft) = match findings.has_errors() {
        true => (None, draft),
        false => (draft, None),
    };
    PackReport {
        pack,
        draft,
        findings: findings.sorted(),
    }
}

impl PackReport {
    /// The pack, also with errors, for checks that do not depend on what is wrong.
    pub fn readable(&self) -> Option<&Pack> {
        self.pack.as_ref().or(self.draft.as_ref())
    }
}

/// The pack, with a placeholder for everything that is reported.
fn checked(
    files: &PackFiles,
    vars: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> Option<Pack> {
    let parsed = folder::read(files, findings);
    let schemas = SchemaFiles::read(files, findings);
    let manifest = manifest::check(parsed.manifest.as_ref(), findings);
    let servers = server::check(parsed.tools.as_ref(), vars, findings);
    let source = parsed.connectors.as_ref();
    let connectors = connector::check(source, &schemas, &servers.known_names, vars, findings);
    let agents = team::sub_agent_ids(&parsed.agents);
    let workers = team::worker_ids(&parsed.workers);
    let emitters = team::status_emitters(&parsed, &agents);
    let statuses = status::check(&parsed.fragments, &emitters, &verticals(&parsed), findings);
    let context = ToolContext {
        connectors: &connectors,
        statuses: &statuses.known_names,
        schemas: &schemas,
        servers: &servers.known_names,
        delegates: &team::delegate_targets(&parsed, &agents, &workers),
        vars,
    };
    let tools = tool::check(parsed.tools.as_ref(), &context, findings);
    let context = OverrideContext {
        manifest: &manifest,
        statuses: &statuses,
        agents: &agents,
    };
    let overrides = overrides::check(parsed.overrides.as_ref(), &context, findings);
    let texts = locale::check(&parsed.locales, &manifest, findings);
    check_texts(
        &parsed,
        &manifest,
        (&statuses, &overrides, &texts),
        findings,
    );
    let ids = agents.and(&workers);
    let models = check_models(files, &parsed, &manifest, &ids, vars, findings);
    let parts = PackParts {
        manifest,
        connectors,
        statuses,
        tools,
        servers,
        overrides,
        locales: texts.locales,
        models,
    };
    let agents = check_agents(&parsed, &parts, (&agents, &workers), vars, findings)?;
    check_flags(&parsed, &parts, &agents, findings);
    Some(assemble(files, parsed, parts, agents))
}

/// The checked content of the files that are not about agents, for [`assemble`].
struct PackParts {
    manifest: CheckedManifest,
    connectors: CheckedConnectors,
    statuses: CheckedStatuses,
    tools: CheckedTools,
    servers: CheckedServers,
    overrides: CheckedOverrides,
    locales: LocaleTable,
    models: ModelParts,
}

/// Providers, routing rules, prices, and every use of a model.
struct ModelParts {
    providers: CheckedProviders,
    routing: CheckedRouting,
    prices: PriceTable,
    uses: Vec<ModelUse>,
}

/// The definitions: the orchestrator, the sub-agents, the workers.
type AgentParts = (AgentDefinition, Vec<AgentDefinition>, Vec<AgentDefinition>);

/// Every render key has a text in the form that is shown, and every text has a key that uses it.
fn check_texts(
    parsed: &ParsedPack,
    manifest: &CheckedManifest,
    (statuses, overrides, texts): (&CheckedStatuses, &CheckedOverrides, &CheckedTexts),
    findings: &mut Findings,
) {
    let keys = [statuses.keys.as_slice(), overrides.keys.as_slice()].concat();
    locale::check_keys(&keys, texts, &parsed.locales, manifest, findings);
    if statuses.known_names.incomplete {
        return;
    }
    let batched = overrides::batched_keys(&statuses.registry, &overrides.overrides);
    locale::check_phrases(&batched, &parsed.locales, findings);
    // A key that seems unused may be used where the file cannot be read.
    let is_complete = |entry: &RegisteredStatus| !entry.render_key.is_empty();
    if parsed.overrides.is_some() && statuses.registry.entries.iter().all(is_complete) {
        locale::check_unused(&keys, texts, &parsed.locales, manifest, findings);
    }
}

/// The vertical of each sub-agent of a [`ParsedPack`].
fn verticals(parsed: &ParsedPack) -> BTreeMap<String, String> {
    let agents = parsed.agents.iter().filter_map(|agent| {
        let id = agent.source.as_ref()?.id.as_ref()?;
        Some((id.value.clone(), agent.name.clone()))
    });
    agents.collect()
}

fn check_models(
    files: &PackFiles,
    parsed: &ParsedPack,
    manifest: &CheckedManifest,
    agents: &KnownNames,
    vars: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> ModelParts {
    let providers = provider::check(parsed.providers.as_ref(), vars, findings);
    name::check_manifest(parsed.manifest.as_ref(), &providers.known_names, findings);
    let orchestrator = parsed.orchestrator.as_ref();
    let context = RoutingContext {
        manifest,
        providers: &providers.known_names,
        agents,
        orchestrator: orchestrator.and_then(|source| Some(source.id.as_ref()?.value.as_str())),
    };
    let text = files.get(routing::FILE);
    let routing = routing::check(parsed.routing.as_ref(), text, &context, findings);
    let prices = price::check(parsed.prices.as_ref());
    let mut uses = name::uses(parsed);
    uses.extend(routing.uses.iter().cloned());
    name::check_cassettes(&uses, parsed, findings);
    name::check_uses(&uses, &providers, prices.as_ref(), findings);
    ModelParts {
        providers,
        routing,
        prices: prices.unwrap_or_default(),
        uses,
    }
}

/// The definitions, each alone and all together; `agents` and `workers` are the ids of the
/// sub-agents and workers. `None` if the orchestrator's file is broken.
fn check_agents(
    parsed: &ParsedPack,
    parts: &PackParts,
    (agents, workers): (&KnownNames, &KnownNames),
    vars: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> Option<AgentParts> {
    let context = DefinitionContext {
        manifest: &parts.manifest,
        providers: &parts.models.providers.known_names,
        prompts: &KnownNames::complete(parsed.prompts.iter().map(|prompt| &prompt.name)),
        tools: &parts.tools.known_names,
        servers: &parts.servers.known_names,
        vars,
    };
    let orchestrator = parsed.orchestrator.as_ref().map(|source| {
        let mut report = FileReport::new("orchestrator.yaml", findings);
        definition::orchestrator(&mut report, source, &context)
    });
    let mut sub_agents = Vec::new();
    for (file, name, source) in parsed.agents.iter().filter_map(ParsedFile::parts) {
        let mut report = FileReport::new(file, findings);
        sub_agents.push(AgentFile {
            file,
            fields: source.common(),
            aliases: &source.aliases,
            emits: &source.emits,
            has_timeout: source.timeout_ms.is_some(),
            definition: definition::sub_agent(&mut report, source, name, &context),
        });
    }
    let mut worker_files = Vec::new();
    for (file, name, source) in parsed.workers.iter().filter_map(ParsedFile::parts) {
        let mut report = FileReport::new(file, findings);
        worker_files.push(AgentFile {
            file,
            fields: source.common(),
            aliases: &[],
            emits: &[],
            has_timeout: source.timeout_ms.is_some(),
            definition: definition::worker(&mut report, source, name, &context),
        });
    }
    let all: Vec<&AgentFile<'_>> = sub_agents.iter().chain(&worker_files).collect();
    team::check_names(orchestrator.as_ref(), &all, findings);
    team::check_emits(&sub_agents, &parts.statuses, &parts.tools, findings);
    let sources = TimeoutSources {
        tools: &parts.tools,
        servers: &parts.servers,
        connectors: &parts.connectors,
    };
    let limits = parsed.manifest.as_ref().and_then(|it| it.limits.as_ref());
    let has_limit = limits.is_some_and(|limits| limits.sub_agent_timeout_ms.is_some());
    for agent in &sub_agents {
        timeout::check(agent, agent.has_timeout || has_limit, &sources, findings);
    }
    for worker in &worker_files {
        timeout::check(worker, worker.has_timeout, &sources, findings);
    }
    if let Some(source) = &parsed.orchestrator {
        team::check_sub_agents(source, &sub_agents, (agents, workers), findings);
        let users = ToolUsers {
            orchestrator: source,
            sub_agents: &sub_agents,
            workers: &worker_files,
        };
        tool_use::check(&users, &parts.tools, findings);
        let is_complete =
            !agents.incomplete && !workers.incomplete && !parts.tools.known_names.incomplete;
        if is_complete && !findings.has_removed_keys() {
            let services = parts.connectors.services.values();
            tool_use::check_unused(&users, &parts.tools, &parts.servers, services, findings);
        }
    }
    let sub_agents = sub_agents.into_iter().map(|file| file.definition);
    let workers = worker_files.into_iter().map(|file| file.definition);
    Some((orchestrator?, sub_agents.collect(), workers.collect()))
}

/// Every flag is used: by an override, by a sub-agent or a prompt block that it turns on or off, or by
/// the platform.
fn check_flags(
    parsed: &ParsedPack,
    parts: &PackParts,
    (orchestrator, sub_agents, workers): &AgentParts,
    findings: &mut Findings,
) {
    let (Some(manifest), Some(overrides)) = (&parsed.manifest, &parsed.overrides) else {
        return;
    };
    let overridden = overrides.0.iter().map(|(flag, _)| flag.value.as_str());
    let listed = orchestrator.sub_agents.iter();
    let gating = listed.filter_map(|listed| listed.flag.as_deref());
    let agents = sub_agents.iter().chain(workers).chain([orchestrator]);
    let blocks = agents.flat_map(|agent| &agent.prompt_blocks);
    let in_prompts = blocks.flat_map(|block| [&block.flag, &block.unless]);
    let in_prompts = in_prompts.filter_map(Option::as_deref);
    let used: Vec<&str> = overridden.chain(gating).chain(in_prompts).collect();
    // A misspelt use may mean a flag that seems unused.
    let known = parts.manifest.known_flags();
    if !known.incomplete && !used.iter().any(|flag| known.lacks(flag)) {
        manifest::check_unused_flags(manifest, &used, findings);
    }
}

fn assemble(
    files: &PackFiles,
    parsed: ParsedPack,
    parts: PackParts,
    (orchestrator, sub_agents, workers): AgentParts,
) -> Pack {
    let agents = orchestrator.sub_agents.iter().filter_map(|listed| {
        let sub_agent = sub_agents.iter().find(|agent| agent.id == listed.id);
        sub_agent.cloned()
    });
    let prompts = parsed.prompts.into_iter();
    let key_positions = parts.models.providers.key_positions.into_iter();
    Pack {
        tool_positions: tool_positions(&parts.tools, &parts.servers),
        unexpanded: digest::digests(parsed.tools.as_ref()),
        mcp_servers: parts.servers.servers,
        workers,
        agents: agents.collect(),
        name: parts.manifest.name,
        version: parts.manifest.version,
        default_locale: parts.manifest.default_locale,
        digest: files.digest(),
        cap: parts.manifest.cap,
        limits: parts.manifest.limits,
        flags: parts.manifest.flags,
        models: parts.manifest.models,
        orchestrator,
        registry: parts.statuses.registry,
        prompts: prompts
            .filter_map(|prompt| prompt.source.map(|text| (prompt.name, text)))
            .collect(),
        services: parts.connectors.services,
        service_positions: parts.connectors.positions,
        enrichers: parts.connectors.enrichers,
        tools: parts.tools.tools,
        locales: parts.locales,
        overrides: parts.overrides.overrides,
        scripts: parsed.scripts,
        cassettes: parsed.cassettes,
        providers: parts.models.providers.all,
        routing: parts.models.routing.policy,
        prices: parts.models.prices,
        uses: parts.models.uses,
        key_positions: key_positions
            .map(|(name, position)| (name, (position.line, position.column)))
            .collect(),
    }
}

/// The positions of tools and tool servers, by the names that agents use for them.
fn tool_positions(tools: &CheckedTools, servers: &CheckedServers) -> BTreeMap<String, (u64, u64)> {
    let tools = tools
        .known_names
        .names
        .iter()
        .cloned()
        .zip(tools.positions.iter());
    let servers = servers.positions.iter();
    let servers = servers.map(|(name, position)| (format!("{SERVER_PREFIX}{name}"), position));
    let positions = tools.chain(servers);
    positions
        .map(|(name, position)| (name, (position.line, position.column)))
        .collect()
}

#[cfg(test)]
mod tests;
