//! The host: a pack in, bound turns out.
//!
//! ```text
//! files ─▶ check ─▶ pack ─┬▶ factory (agents, tools, models) ─┐
//!                         └▶ policies (registry, locales) ────┴▶ bind ─▶ a turn
//! ```
//! What is loaded is replaced as a whole. A turn keeps what it was bound to, and a change that
//! does not pass the check changes nothing (S2-001).

mod variables;
mod look;
mod keys;
mod models;
mod judge;
mod tools;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch as news;
use turnwire_agent::{StandaloneAgent, TurnFactory};
use turnwire_dial::Dialer;
use turnwire_event::port::{BoundTurn, HistoryBudget, TurnInput, TurnProducer};
use turnwire_event::{Clock, IdGenerator, Owner, metric};
use turnwire_model::{ModelRouter, ModelScript, ProviderTable, ScriptedProvider};
use turnwire_pack::{FindingLevel, FlagCohort, Pack, PackFiles, PackFinding, PackReadError};
use turnwire_render::RenderPolicies;
use turnwire_tool::{McpServers, ProgramRunner};

use look::FileFingerprint;

pub use judge::judge;
pub use models::ProviderLimits;
pub use variables::{BundledService, ServerVariables};

/// Why a pack cannot be run. Said to the person who wrote it.
#[derive(Debug, thiserror::Error)]
pub enum PackLoadError {
    /// Its folder cannot be read.
    #[error(transparent)]
    Unreadable(#[from] PackReadError),
    /// There are mistakes in it.
    #[error("the pack has mistakes:\n{}", list(.0))]
    Wrong(Vec<PackFinding>),
}

fn list(findings: &[PackFinding]) -> String {
    let lines: Vec<String> = findings.iter().map(PackFinding::to_string).collect();
    lines.join("\n")
}

/// What everything that is loaded has in common.
#[derive(Clone)]
pub struct HostResources {
    /// What the time is.
    pub clock: Arc<dyn Clock>,
    pub mint: Arc<dyn IdGenerator>,
    pub dialer: Arc<Dialer>,
    /// Where programs of tools run.
    pub workshop: Arc<ProgramRunner>,
    /// What models that somebody else runs are bound by.
    pub bounds: ProviderLimits,
}

/// A pack with everything made of it.
struct LoadedPack {
    pack: Arc<Pack>,
    digest: String,
    /// How the key files looked.
    keys: Vec<(PathBuf, Option<FileFingerprint>)>,
    routing: Arc<ModelRouter>,
    factory: TurnFactory,
    policies: RenderPolicies,
}

/// What answers turns with a pack.
pub struct PackHost {
    loaded: ArcSwap<LoadedPack>,
    /// The pack's folder; none for the one that is built in, which never changes.
    dir: Option<PathBuf>,
    variables: ServerVariables,
    /// What every model says instead of its own words.
    script: Option<ScriptedProvider>,
    /// The key files of a change that was refused: with one of them it may be as it should.
    wanted: Mutex<Vec<PathBuf>>,
    means: HostResources,
    /// The tool servers, which outlive a pack that still has them.
    servers: McpServers,
    /// The version of the routing rules in force. Whoever tells sessions of another holds the
    /// other end; nobody has to.
    policy: news::Sender<String>,
}

impl PackHost {
    /// Loads the pack in `dir`, or the one that is built in, and starts its tool servers.
    pub async fn open(
        dir: Option<PathBuf>,
        variables: ServerVariables,
        script: Option<ModelScript>,
        means: HostResources,
    ) -> Result<Arc<Self>, PackLoadError> {
        let files = read(dir.as_ref())?;
        let script = script.map(ScriptedProvider::new);
        let servers = McpServers::new(means.dialer.clone(), means.workshop.clone());
        let draft = draft(&files, &variables, script.as_ref(), &means)?;
        let loaded = load(draft, &means, &servers).await?;
        let (policy, _) = news::channel(loaded.routing.version().to_owned());
        Ok(Arc::new(Self {
            policy,
            loaded: ArcSwap::from_pointee(loaded),
            dir,
            variables,
            script,
            wanted: Mutex::default(),
            means,
            servers,
        }))
    }

    /// Reads the folder and the key files again; says whether anything changed. What is broken
    /// changes nothing.
    pub async fn reload(self: &Arc<Self>) -> Result<bool, PackLoadError> {
        self.again(|host, files| {
            let before = host.loaded.load_full();
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

    /// The same for someone who asks for it: everything is made anew, changed or not.
    pub async fn renew(self: &Arc<Self>) -> Result<bool, PackLoadError> {
        self.again(|_, _| true).await
    }

    /// Reads the folder and loads it if `changed` says so. Reading and judging wait for the disk,
    /// so they have a thread of their own; servers are waited for here.
    async fn again(
        self: &Arc<Self>,
        changed: impl Fn(&Self, &PackFiles) -> bool + Send + 'static,
    ) -> Result<bool, PackLoadError> {
        let host = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let files = read(host.dir.as_ref())?;
            if !changed(&host, &files) {
                return Ok(None);
            }
            let drafted = draft(&files, &host.variables, host.script.as_ref(), &host.means);
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
        let loaded = load(draft, &self.means, &self.servers).await?;
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
        self.policy.send_if_modified(|told| {
            let is_new = *told != version;
            *told = version;
            is_new
        });
    }

    /// The files with keys: those of the pack in force, and those that a refused one wants.
    fn key_files(&self) -> Vec<PathBuf> {
        let loaded = self.loaded.load();
        let key_files = loaded.keys.iter().map(|(file, _)| file.clone());
        key_files
            .chain(self.wanted.lock().iter().cloned())
            .collect()
    }

    /// The version of the rules of which model serves which turn, now and whenever it changes.
    pub fn policy(&self) -> news::Receiver<String> {
        self.policy.subscribe()
    }

    /// Waits until all that was recorded is written; blocks.
    pub fn flush(&self) {
        if let Some(deck) = &self.means.bounds.deck {
            deck.flush();
        }
    }

    /// Ends the tool servers, in peace where that does not take long.
    pub async fn close(&self) {
        self.servers.close().await;
    }

    /// The pack that new turns are bound to.
    pub fn pack(&self) -> Arc<Pack> {
        self.loaded.load().pack.clone()
    }

    /// What of the pack is meant for `owner`.
    pub fn cohort(&self, owner: &Owner) -> FlagCohort {
        self.loaded.load().pack.cohort(owner.principal.as_str())
    }
}

impl TurnProducer for PackHost {
    fn history(&self) -> HistoryBudget {
        self.loaded.load().factory.history()
    }

    fn bind(&self, input: &TurnInput) -> BoundTurn {
        let loaded = self.loaded.load();
        let cohort = loaded.pack.cohort(input.owner.principal.as_str());
        let assembly = loaded.factory.bind(input, &cohort);
        BoundTurn {
            versions: assembly.versions,
            history: assembly.history,
            gate: loaded.policies.gate(&cohort, &input.locale),
            work: assembly.work,
        }
    }
}

/// One agent without a pack.
pub struct SingleAgentHost(pub StandaloneAgent);

impl TurnProducer for SingleAgentHost {
    fn history(&self) -> HistoryBudget {
        self.0.history()
    }

    fn bind(&self, input: &TurnInput) -> BoundTurn {
        let assembly = self.0.assemble(input);
        BoundTurn {
            gate: RenderPolicies::default_gate(&assembly.versions.agent_definition),
            versions: assembly.versions,
            history: assembly.history,
            work: assembly.work,
        }
    }
}

fn read(dir: Option<&PathBuf>) -> Result<PackFiles, PackReadError> {
    dir.map_or_else(|| Ok(PackFiles::market()), |dir| PackFiles::read(dir))
}

/// A pack that has been judged, with all of it that waits for nobody.
struct CheckedPack {
    pack: Arc<Pack>,
    digest: String,
    keys: Vec<(PathBuf, Option<FileFingerprint>)>,
    models: Arc<ProviderTable>,
}

fn draft(
    files: &PackFiles,
    variables: &ServerVariables,
    script: Option<&ScriptedProvider>,
    means: &HostResources,
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
        let dimensions = metric::dimensions("");
        metrics::counter!(
            metric::STREAM_UNREGISTERED_EVENT_REJECTED_TOTAL,
            &dimensions
        )
        .increment(rejected);
        return Err(PackLoadError::Wrong(errors));
    };
    let pack = Arc::new(pack);
    // Looked at before the keys are read: what changes in between is read again.
    let (keys, models) = match script {
        Some(script) => (Vec::new(), models::spoken_for(&pack, script)),
        None => {
            let keys = keys::stamps(keys::files(&pack));
            let script_text = said(&pack)?;
            (
                keys,
                models::models(&pack, script_text, variables, &means.bounds)?,
            )
        }
    };
    Ok(CheckedPack {
        digest: files.digest(),
        keys,
        models: Arc::new(models),
        pack,
    })
}

/// Everything made of a pack, its tool servers started.
async fn load(
    draft: CheckedPack,
    means: &HostResources,
    servers: &McpServers,
) -> Result<LoadedPack, PackLoadError> {
    let pack = draft.pack;
    let tools = tools::tools(&pack, means, servers).await?;
    let routing = pack.routing.as_ref().map(ModelRouter::new);
    let routing = Arc::new(routing.unwrap_or_default());
    let factory = TurnFactory::with_tools(pack.clone(), draft.models, &tools, means.mint.clone())
        .routing(routing.clone())
        .retries(means.bounds.retries);
    Ok(LoadedPack {
        digest: draft.digest,
        keys: draft.keys,
        routing,
        policies: RenderPolicies::new(pack.clone()),
        factory,
        pack,
    })
}

/// What the pack's scripts say together; none if it has none.
fn said(pack: &Pack) -> Result<Option<ScriptedProvider>, PackLoadError> {
    if pack.scripts.is_empty() {
        return Ok(None);
    }
    match ModelScript::parse_many(&pack.scripts) {
        Ok(script) => Ok(Some(ScriptedProvider::new(script))),
        Err(error) => {
            let finding = PackFinding::error("scripts", 1, 1, error.to_string());
            Err(PackLoadError::Wrong(vec![finding]))
        }
    }
}

#[cfg(test)]
mod tests;
