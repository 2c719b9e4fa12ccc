//! The host: a pack in, bound turns out.
//!
//! ```text
//! files ─▶ check ─▶ pack ─┬▶ factory (agents, tools, models) ─┐
//!                         └▶ policies (registry, locales) ────┴▶ bind ─▶ a turn
//! ```
//! A loaded pack is replaced as a whole. A turn keeps the pack it was bound to, and a changed pack
//! with mistakes is not applied (S2-001).

pub mod reload;
mod variables;
mod look;
mod agent_file;
mod keys;
mod services;
mod programs;
mod models;
mod relays;
mod online;
mod reach;
mod judge;
mod tools;
mod watch;

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch as news;
use turnwire_agent::{StandaloneAgent, TurnFactory};
use turnwire_dial::Dialer;
use turnwire_event::metric::SubAgentVerticals;
use turnwire_event::port::{BoundTurn, HistoryBudget, TurnInput, TurnProducer, TurnWork};
use turnwire_event::{Clock, IdGenerator, Owner, metric};
use turnwire_fair::FairLimits;
use turnwire_model::{ModelRouter, ModelScript, ProviderTable, ScriptedProvider};
use turnwire_pack::{FindingLevel, FlagCohort, Pack, PackFiles, PackFinding, PackReadError};
use turnwire_relay::UpstreamLimits;
use turnwire_render::RenderPolicies;
use turnwire_tool::{McpServers, OrphanReaper, ProgramRunner, Secrets};

use look::FileFingerprint;
use relays::PackRelays;

pub use judge::judge;
pub use models::ProviderLimits;
pub use online::{ModelTrial, try_models};
pub use reach::{ProviderReach, reach_providers};
pub use variables::{BundledService, ServerVariables};

/// Why a pack cannot be run, in words for its author.
#[derive(Debug, thiserror::Error)]
pub enum PackLoadError {
    /// The folder cannot be read.
    #[error(transparent)]
    Unreadable(#[from] PackReadError),
    /// The pack has mistakes.
    #[error("the pack has mistakes:\n{}", list(.0))]
    Wrong(Vec<PackFinding>),
}

impl PackLoadError {
    /// One mistake at a line and column of `file`.
    fn at(file: &str, (line, column): (u64, u64), message: impl Display) -> Self {
        let finding = PackFinding::error(file, line, column, message.to_string());
        Self::Wrong(vec![finding])
    }
}

fn list(findings: &[PackFinding]) -> String {
    let lines: Vec<String> = findings.iter().map(PackFinding::to_string).collect();
    lines.join("\n")
}

/// The resources that every loaded pack uses.
#[derive(Clone)]
pub struct HostResources {
    /// The clock of tools.
    pub clock: Arc<dyn Clock>,
    pub id_generator: Arc<dyn IdGenerator>,
    pub dialer: Arc<Dialer>,
    /// Runs the programs of tools.
    pub runner: Arc<ProgramRunner>,
    /// The limits of parallel calls to each MCP server.
    pub mcp_call_limits: FairLimits,
    /// The limits of parallel calls to all data services.
    pub service_call_limits: FairLimits,
    /// The limits of remote model providers.
    pub bounds: ProviderLimits,
    /// The limits of upstreams, unless the pack sets others.
    pub upstream_limits: UpstreamLimits,
}

/// A pack with all parts that answer turns.
struct LoadedPack {
    checked: CheckedPack,
    routing: Arc<ModelRouter>,
    factory: TurnFactory,
    policies: RenderPolicies,
    relays: PackRelays,
}

/// A pack without mistakes, and the parts that are made of it without waiting.
struct CheckedPack {
    pack: Arc<Pack>,
    digest: String,
    /// The fingerprints of the key files.
    keys: Vec<(PathBuf, Option<FileFingerprint>)>,
    models: Arc<ProviderTable>,
    /// All keys that the server knows, which no result of a tool may contain.
    secrets: Secrets,
}

/// Where a pack is.
#[derive(Clone, Debug)]
pub enum PackSource {
    Folder(PathBuf),
    /// The demo pack of the binary, which never changes.
    Demo,
    /// The pack of the binary whose only agent is the upstream in `TURNWIRE_UPSTREAM`, which is asked
    /// for a model if it is a Chat Completions API.
    Relay {
        model: Option<String>,
    },
}

/// The [`TurnProducer`] of a pack.
pub struct PackHost {
    loaded: ArcSwap<LoadedPack>,
    source: PackSource,
    variables: ServerVariables,
    /// Replaces every model of the pack.
    script: Option<ScriptedProvider>,
    /// The key files of a changed pack with mistakes: a missing one may be the mistake.
    wanted: Mutex<Vec<PathBuf>>,
    resources: HostResources,
    /// The MCP servers; a server that a changed pack still names keeps running.
    servers: McpServers,
    /// The version of the routing rules in force. [`PackHost::policy`] subscribes; there may be no
    /// receiver.
    policy: news::Sender<String>,
}

impl PackHost {
    /// Loads the pack and starts its MCP servers.
    pub async fn open(
        source: PackSource,
        variables: ServerVariables,
        script: Option<ModelScript>,
        resources: HostResources,
    ) -> Result<Arc<Self>, PackLoadError> {
        let files = read(&source)?;
        let percent = resources.bounds.script_pace_percent;
        let script = script.map(|script| ScriptedProvider::new(script).paced(percent));
        let servers = McpServers::new(resources.dialer.clone(), resources.runner.clone())
            .with_call_limits(resources.mcp_call_limits);
        let draft = draft(&files, &variables, script.as_ref(), &resources)?;
        let loaded = load(draft, &variables, &resources, &servers).await?;
        let (policy, _) = news::channel(loaded.routing.version().to_owned());
        Ok(Arc::new(Self {
            policy,
            loaded: ArcSwap::from_pointee(loaded),
            source,
            variables,
            script,
            wanted: Mutex::default(),
            resources,
            servers,
        }))
    }

    /// Reads the folder and the key files again, and loads them if they have changed; true if so. A
    /// pack with mistakes is not applied.
    pub async fn reload(self: &Arc<Self>) -> Result<bool, PackLoadError> {
        self.again(|host, files| {
            let before = &host.loaded.load_full().checked;
            let key_files = before.keys.iter().map(|(file, _)| file.clone()).collect();
            let changed = files.digest() != before.digest || keys::stamps(key_files) != before.keys;
            if !changed {
                // A change that was refused has been taken back.
                host.wanted.lock().clear();
            }
            changed
        })
        .await
    }

    /// Like [`PackHost::reload`], but loads the pack even if nothing has changed.
    pub async fn renew(self: &Arc<Self>) -> Result<bool, PackLoadError> {
        self.again(|_, _| true).await
    }

    /// Reads the folder and loads the pack if `changed` returns true. Reading and checking block on the
    /// disk, so they run on a blocking thread; MCP servers are awaited here.
    async fn again(
        self: &Arc<Self>,
        changed: impl Fn(&Self, &PackFiles) -> bool + Send + 'static,
    ) -> Result<bool, PackLoadError> {
        let host = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let files = read(&host.source)?;
            if !changed(&host, &files) {
                return Ok(None);
            }
            let drafted = draft(
                &files,
                &host.variables,
                host.script.as_ref(),
                &host.resources,
            );
            *host.wanted.lock() = match (&drafted, &host.script) {
                (Err(_), None) => keys::wanted(&files, &host.variables),
                (Ok(_), _) | (Err(_), Some(_)) => Vec::new(),
            };
            drafted.map(Some)
        });
        // The thread only breaks with the process.
        let Some(draft) = read.await.unwrap_or(Ok(None))? else {
            return Ok(false);
        };
        let loaded = load(draft, &self.variables, &self.resources, &self.servers).await?;
        self.take(loaded);
        Ok(true)
    }

    fn take(&self, loaded: LoadedPack) {
        let before = self.loaded.load_full();
        let version = loaded.routing.version().to_owned();
        if version == before.routing.version() && loaded.routing != before.routing {
            tracing::warn!(
                version,
                "routing.yaml has changed and its version has not: turns are routed by the new \
                 rules under the old name"
            );
        }
        self.loaded.store(Arc::new(loaded));
        self.policy.send_if_modified(|announced| {
            let is_new = *announced != version;
            *announced = version;
            is_new
        });
    }

    /// The key files of the pack in force, and those of a changed pack with mistakes.
    fn key_files(&self) -> Vec<PathBuf> {
        let loaded = self.loaded.load();
        let key_files = loaded.checked.keys.iter().map(|(file, _)| file.clone());
        key_files
            .chain(self.wanted.lock().iter().cloned())
            .collect()
    }

    /// Receives the version of the routing rules, now and at every change.
    pub fn policy(&self) -> news::Receiver<String> {
        self.policy.subscribe()
    }

    /// Blocks until the cassette of recorded calls is written.
    pub fn flush(&self) {
        if let Some(deck) = &self.resources.bounds.deck {
            deck.flush();
        }
    }

    /// Ends the processes of programs that lose their guard. Never ends.
    pub fn end_orphans(&self, reaper: OrphanReaper) -> impl Future<Output = ()> + use<> {
        self.resources.runner.end_orphans(reaper)
    }

    /// Stops the MCP servers, gracefully if that does not take long.
    pub async fn close(&self) {
        self.servers.close().await;
    }

    /// The pack that new turns are bound to.
    pub fn pack(&self) -> Arc<Pack> {
        self.loaded.load().checked.pack.clone()
    }

    /// The experiments that turns of `owner` are part of now, as a label of metrics.
    pub fn experiment_arm(&self, owner: &Owner) -> String {
        let pack = self.pack();
        pack.experiment_arm(&pack.cohort(owner.principal.as_str()))
    }

    /// The flags of the pack that are active for `owner`.
    pub fn cohort(&self, owner: &Owner) -> FlagCohort {
        self.loaded
            .load()
            .checked
            .pack
            .cohort(owner.principal.as_str())
    }
}

impl TurnProducer for PackHost {
    fn history(&self) -> HistoryBudget {
        let loaded = self.loaded.load();
        loaded.relays.history(loaded.factory.history())
    }

    fn bind(&self, input: &TurnInput) -> BoundTurn {
        let loaded = self.loaded.load();
        let cohort = loaded.checked.pack.cohort(input.owner.principal.as_str());
        let (versions, history, relayed_to, work) = match loaded.relays.of(input) {
            Some(turns) => {
                let versions = loaded.checked.pack.versions(&cohort);
                let history = turns.history();
                let relayed_to = Some(turns.model());
                let work: TurnWork =
                    Box::new(move |turn| Box::pin(async move { turns.answer(turn).await }));
                (versions, history, relayed_to, work)
            }
            None => {
                let assembly = loaded.factory.bind(input, &cohort);
                (assembly.versions, assembly.history, None, assembly.work)
            }
        };
        BoundTurn {
            experiment_arm: loaded.checked.pack.experiment_arm(&cohort),
            verticals: loaded.factory.verticals(),
            versions,
            history,
            relayed_to,
            gate: loaded.policies.gate(&cohort, &input.locale, &input.dm_type),
            work,
        }
    }
}

/// The [`TurnProducer`] of one agent without a pack.
pub struct SingleAgentHost(pub StandaloneAgent);

impl TurnProducer for SingleAgentHost {
    fn history(&self) -> HistoryBudget {
        self.0.history()
    }

    fn bind(&self, input: &TurnInput) -> BoundTurn {
        let assembly = self.0.assemble(input);
        BoundTurn {
            experiment_arm: String::new(),
            verticals: SubAgentVerticals::default(),
            gate: RenderPolicies::default_gate(&assembly.versions.agent_definition),
            versions: assembly.versions,
            history: assembly.history,
            relayed_to: None,
            work: assembly.work,
        }
    }
}

fn read(source: &PackSource) -> Result<PackFiles, PackReadError> {
    match source {
        PackSource::Folder(dir) => PackFiles::read(dir),
        PackSource::Demo => Ok(PackFiles::market()),
        PackSource::Relay { model } => Ok(PackFiles::relay(model.as_deref())),
    }
}

fn draft(
    files: &PackFiles,
    variables: &ServerVariables,
    script: Option<&ScriptedProvider>,
    resources: &HostResources,
) -> Result<CheckedPack, PackLoadError> {
    let report = match script {
        Some(_) => judge::spoken_for(files, variables),
        None => judge(files, variables),
    };
    for finding in &report.findings {
        if finding.level == FindingLevel::Warning {
            tracing::warn!("{finding}");
        }
    }
    let Some(pack) = report.pack else {
        let errors = report.findings.into_iter();
        let errors: Vec<_> = errors.filter(|f| f.level == FindingLevel::Error).collect();
        let rejected = errors.iter().filter(|f| f.unregistered).count() as u64;
        let (name, labels) = (
            metric::STREAM_UNREGISTERED_EVENT_REJECTED_TOTAL,
            metric::dimensions(""),
        );
        metrics::counter!(name, &labels).increment(rejected);
        return Err(PackLoadError::Wrong(errors));
    };
    let pack = Arc::new(pack);
    // Looked at before the keys are read: what changes in between is read again.
    let (keys, models) = match script {
        Some(script) => (Vec::new(), models::spoken_for(&pack, script)),
        None => {
            let keys = keys::stamps(keys::files(&pack));
            let scripted = scripted(&pack)?;
            let percent = resources.bounds.script_pace_percent;
            let scripted = scripted.map(|scripted| scripted.paced(percent));
            let models = models::models(&pack, scripted, variables, &resources.bounds)?;
            (keys, models)
        }
    };
    Ok(CheckedPack {
        secrets: keys::known(&pack, variables),
        digest: files.digest(),
        keys,
        models: Arc::new(models),
        pack,
    })
}

/// Creates the parts of a [`LoadedPack`] and starts its MCP servers.
async fn load(
    draft: CheckedPack,
    variables: &ServerVariables,
    resources: &HostResources,
    servers: &McpServers,
) -> Result<LoadedPack, PackLoadError> {
    let pack = &draft.pack;
    let tools = tools::tools(pack, variables, resources, servers, &draft.secrets).await?;
    let routing = pack.routing.as_ref().map(ModelRouter::new);
    let routing = Arc::new(routing.unwrap_or_default());
    let relays = PackRelays::new(pack, variables, resources)?;
    let (models, id_generator) = (draft.models.clone(), resources.id_generator.clone());
    let factory = TurnFactory::with_tools(pack.clone(), models, &tools, id_generator)
        .routing(routing.clone())
        .relayed(relays.sub_agents.clone())
        .retries(resources.bounds.retries);
    Ok(LoadedPack {
        relays,
        routing,
        policies: RenderPolicies::new(pack.clone()),
        factory,
        checked: draft,
    })
}

/// The provider that plays all scripts of the pack; `None` if the pack has no script.
fn scripted(pack: &Pack) -> Result<Option<ScriptedProvider>, PackLoadError> {
    if pack.scripts.is_empty() {
        return Ok(None);
    }
    let script = ModelScript::parse_many(&pack.scripts)
        .map_err(|error| PackLoadError::at("scripts", (1, 1), error))?;
    Ok(Some(ScriptedProvider::new(script)))
}

#[cfg(test)]
mod tests;
