//! From files to a pack: all mistakes of all files at once.
//!
//! Each file is read alone; then what the files say of each other is looked at. A file that is
//! broken gives one finding, and nothing is held against others because of it. Every check goes
//! on with something in the position of what is wrong; only a pack without an error comes out.

mod page;
mod folder;
mod manifest;
mod schema;
mod url;
mod header;
mod filled;
mod address;
mod server;
mod written;
mod connector;
mod status;
mod tool;
mod param;
mod key;
mod provider;
mod price;
mod team;
mod usage;
mod model;
mod agent;
mod locale;
mod rule;
mod route;

use std::collections::BTreeMap;

use crate::definition::Definition;
use crate::files::Files;
use crate::finding::{Finding, Findings, Known};
use crate::model::ModelUse;
use crate::pack::Pack;
use crate::price::PriceTable;
use crate::registry::Entry;
use crate::tool::ALL_OF;

use connector::Connectors;
use folder::Folder;
use locale::Texts;
use manifest::Manifest;
use page::Page;
use provider::Providers;
use route::Routes;
use rule::Rules;
use schema::Schemas;
use server::Servers;
use status::Statuses;
use team::{Hand, Member};
use tool::Tools;
use usage::Users;

/// What `check` found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The pack; none if there is an error.
    pub pack: Option<Pack>,
    /// Errors and warnings, by file and position.
    pub findings: Vec<Finding>,
}

/// Checks the files of a pack. `vars` answers `${NAME}` in `connectors.yaml`, `providers.yaml` and
/// `tools.yaml`. Keys of providers are not looked for: where each should be is in the pack.
pub fn check(files: &Files, vars: &dyn Fn(&str) -> Option<String>) -> Report {
    let mut found = Findings::default();
    if folder::is_too_much(files, &mut found) {
        return Report {
            pack: None,
            findings: found.sorted(),
        };
    }
    let folder = folder::read(files, &mut found);
    let schemas = Schemas::read(files, &mut found);
    let manifest = manifest::check(folder.manifest.as_ref(), &mut found);
    let servers = server::check(folder.tools.as_ref(), vars, &mut found);
    let source = folder.connectors.as_ref();
    let connectors = connector::check(source, &schemas, &servers.known, vars, &mut found);
    let agents = team::known(&folder.agents);
    let workers = team::workers(&folder.workers);
    let statuses = status::check(&folder.fragments, &agents, &verticals(&folder), &mut found);
    let around = tool::Around {
        connectors: &connectors,
        statuses: &statuses.known,
        schemas: &schemas,
        servers: &servers.known,
        hands: &team::hands(&folder, &agents, &workers),
        vars,
    };
    let tools = tool::check(folder.tools.as_ref(), &around, &mut found);
    let around = rule::Around {
        manifest: &manifest,
        statuses: &statuses,
        agents: &agents,
    };
    let rules = rule::check(folder.overrides.as_ref(), &around, &mut found);
    let texts = locale::check(&folder.locales, &manifest, &mut found);
    let words = Words {
        statuses: &statuses,
        rules: &rules,
        texts: &texts,
        manifest: &manifest,
    };
    wording(&folder, &words, &mut found);
    let everybody = agents.and(&workers);
    let minds = minds(files, &folder, &manifest, &everybody, vars, &mut found);
    let around = Around {
        manifest: &manifest,
        providers: &minds.providers.known,
        statuses: &statuses,
        tools: &tools,
        servers: &servers,
        connectors: &connectors,
        agents: &agents,
        workers: &workers,
    };
    let team = people(&folder, &around, &mut found);
    let pack = match team {
        (Some(orchestrator), members, workers) if !found.has_errors() => {
            let parts = Parts {
                manifest,
                connectors,
                statuses,
                tools,
                servers,
                rules,
                locales: texts.locales,
                minds,
            };
            Some(pack(files, folder, parts, (orchestrator, members, workers)))
        }
        (Some(_) | None, ..) => None,
    };
    Report {
        pack,
        findings: found.sorted(),
    }
}

/// What asks for texts, and the texts.
struct Words<'a> {
    statuses: &'a Statuses,
    rules: &'a Rules,
    texts: &'a Texts,
    manifest: &'a Manifest,
}

/// What is asked for has a text, in the form that it is shown in, and no text is there for nobody.
fn wording(folder: &Folder, words: &Words<'_>, found: &mut Findings) {
    let (texts, manifest) = (words.texts, words.manifest);
    let asked = [words.statuses.keys.as_slice(), words.rules.keys.as_slice()].concat();
    locale::keys(&asked, texts, &folder.locales, manifest, found);
    if words.statuses.known.hidden {
        return;
    }
    let registry = &words.statuses.registry;
    let together = rule::together(registry, &words.rules.overrides);
    locale::phrases(&together, &folder.locales, found);
    // A key that nobody asks for may be asked for where it cannot be read.
    let is_sure = |entry: &Entry| !entry.render_key.is_empty();
    if folder.overrides.is_some() && registry.entries.iter().all(is_sure) {
        locale::unasked(&asked, texts, &folder.locales, manifest, found);
    }
}

/// The vertical of each sub-agent.
fn verticals(folder: &Folder) -> BTreeMap<String, String> {
    let agents = folder.agents.iter().filter_map(|agent| {
        let id = agent.source.as_ref()?.id.as_ref()?;
        Some((id.value.clone(), agent.name.clone()))
    });
    agents.collect()
}

/// Who answers, by whose rules, for how much.
struct Minds {
    providers: Providers,
    routes: Routes,
    prices: PriceTable,
    uses: Vec<ModelUse>,
}

/// Everything about models.
fn minds(
    files: &Files,
    folder: &Folder,
    manifest: &Manifest,
    agents: &Known,
    vars: &dyn Fn(&str) -> Option<String>,
    found: &mut Findings,
) -> Minds {
    let providers = provider::check(folder.providers.as_ref(), vars, found);
    model::named(folder.manifest.as_ref(), &providers.known, found);
    let speaker = folder.orchestrator.as_ref();
    let around = route::Around {
        manifest,
        providers: &providers.known,
        agents,
        speaker: speaker.and_then(|source| Some(source.id.as_ref()?.value.as_str())),
    };
    let text = files.get(route::FILE);
    let routes = route::check(folder.routing.as_ref(), text, &around, found);
    let prices = price::check(folder.prices.as_ref(), found);
    let mut uses = model::uses(folder);
    uses.extend(routes.uses.iter().cloned());
    model::cassettes(&uses, folder, found);
    model::check(&uses, &providers, prices.as_ref(), found);
    Minds {
        providers,
        routes,
        prices: prices.unwrap_or_default(),
        uses,
    }
}

/// What definitions point at.
struct Around<'a> {
    manifest: &'a Manifest,
    providers: &'a Known,
    statuses: &'a Statuses,
    tools: &'a Tools,
    servers: &'a Servers,
    connectors: &'a Connectors,
    agents: &'a Known,
    workers: &'a Known,
}

/// The orchestrator, the sub-agents and the workers.
type Team = (Option<Definition>, Vec<Definition>, Vec<Definition>);

/// The definitions, each alone and all together.
fn people(folder: &Folder, around: &Around<'_>, found: &mut Findings) -> Team {
    let tools = around.tools;
    let blocks = Known {
        names: folder
            .prompts
            .iter()
            .map(|prompt| prompt.name.clone())
            .collect(),
        hidden: false,
    };
    let names = agent::Around {
        manifest: around.manifest,
        providers: around.providers,
        blocks: &blocks,
        tools: &tools.known,
        servers: &around.servers.known,
    };
    let orchestrator = folder.orchestrator.as_ref().map(|source| {
        let mut page = Page {
            file: "orchestrator.yaml",
            found,
        };
        agent::orchestrator(&mut page, source, &names)
    });
    let mut members = Vec::new();
    for doc in &folder.agents {
        let mut page = Page {
            file: &doc.file,
            found,
        };
        if let Some(source) = &doc.source {
            members.push(Member {
                file: &doc.file,
                source,
                definition: agent::sub_agent(&mut page, source, &doc.name, &names),
            });
        }
    }
    let mut hands = Vec::new();
    for doc in &folder.workers {
        let mut page = Page {
            file: &doc.file,
            found,
        };
        if let Some(source) = &doc.source {
            hands.push(Hand {
                file: &doc.file,
                source,
                definition: agent::worker(&mut page, source, &doc.name, &names),
            });
        }
    }
    team::names(orchestrator.as_ref(), &members, &hands, found);
    team::emits(&members, around.statuses, tools, found);
    together(folder, around, (&members, &hands), found);
    let members = members.into_iter().map(|member| member.definition);
    let hands = hands.into_iter().map(|hand| hand.definition);
    (orchestrator, members.collect(), hands.collect())
}

/// What only can be said once everybody is known.
fn together(
    folder: &Folder,
    around: &Around<'_>,
    (members, hands): (&[Member<'_>], &[Hand<'_>]),
    found: &mut Findings,
) {
    let Some(speaker) = &folder.orchestrator else {
        return;
    };
    let (tools, agents, workers) = (around.tools, around.agents, around.workers);
    team::asked(speaker, members, (agents, workers), found);
    let users = Users {
        speaker,
        members,
        hands,
    };
    usage::check(&users, tools, found);
    if !agents.hidden && !workers.hidden && !tools.known.hidden {
        let services = around.connectors.services.values();
        usage::unused(&users, tools, around.servers, services, found);
    }
}

/// What the pack is put together from.
struct Parts {
    manifest: Manifest,
    connectors: Connectors,
    statuses: Statuses,
    tools: Tools,
    servers: Servers,
    rules: Rules,
    locales: crate::locale::Locales,
    minds: Minds,
}

fn pack(
    files: &Files,
    folder: Folder,
    parts: Parts,
    (orchestrator, members, workers): (Definition, Vec<Definition>, Vec<Definition>),
) -> Pack {
    let agents = orchestrator.sub_agents.iter().filter_map(|asked| {
        let member = members.iter().find(|member| member.id == asked.id);
        member.cloned()
    });
    let prompts = folder.prompts.into_iter();
    let key_positions = parts.minds.providers.key_positions.into_iter();
    Pack {
        tool_positions: tool_positions(&parts.tools, &parts.servers),
        written: written::digests(folder.tools.as_ref()),
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
        overrides: parts.rules.overrides,
        scripts: folder.scripts,
        cassettes: folder.cassettes,
        providers: parts.minds.providers.all,
        routing: parts.minds.routes.policy,
        prices: parts.minds.prices,
        uses: parts.minds.uses,
        key_positions: key_positions
            .map(|(name, position)| (name, (position.line, position.column)))
            .collect(),
    }
}

/// Where tools and tool servers stand, by the words that agents have for them.
fn tool_positions(tools: &Tools, servers: &Servers) -> BTreeMap<String, (u64, u64)> {
    let names = tools.known.names.iter().cloned();
    let tools = names.zip(&tools.positions);
    let servers = servers.positions.iter();
    let servers = servers.map(|(name, position)| (format!("{ALL_OF}{name}"), position));
    let positions = tools.chain(servers);
    positions
        .map(|(name, position)| (name, (position.line, position.column)))
        .collect()
}

#[cfg(test)]
mod tests;
