//! The models of a pack: everyone it uses, ready to be asked.
//!
//! ```text
//! providers.yaml ─▶ key, dialect, address ─▶ Live ─▶ (Recorder) ─▶ Remote ─┐
//! scripts/       ─▶ Scripted ──────────────────────────────────────────────┼▶ ModelSet
//! cassettes/     ─▶ Player ────────────────────────────────────────────────┘
//! ```
//! Only who is used is made, so that a key that nobody needs is not read. A provider may be at any
//! address that the pack names: whoever writes the pack says whom the server talks to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use turnwire_agent::RetryOptions;
use turnwire_dial::{AllowRule, Dialer, DialerOptions, Url};
use turnwire_model::cassette::{
    CASSETTE_PROVIDER, CassettePlayback, CassetteProvider, CassetteWriter, DialectLookup,
    RecordingTransport,
};
use turnwire_model::models::{dialect_by_name, dialect_for};
use turnwire_model::{
    ApiKey, CallTimeouts, CostCalculator, ModelHttpTransport, ModelParams, ModelResponseLimits,
    ModelTransport, ProviderTable, RemoteProvider, ScriptedProvider,
};
use turnwire_pack::{Pack, PackFinding, ParamsDef, ProviderDef, TimeoutsDef};

use super::keys::key;
use super::{PackLoadError, ServerVariables};

/// What the operator says of models that somebody else runs.
#[derive(Clone)]
pub struct ProviderLimits {
    /// How long one is waited for, where the pack does not say.
    pub timeouts: CallTimeouts,
    /// How much it may say.
    pub limits: ModelResponseLimits,
    /// How often it is asked again, where the pack does not say.
    pub retries: RetryOptions,
    /// Hosts that may be asked although they are not public, besides those of the pack.
    pub allow: Vec<AllowRule>,
    /// What records all that is streamed.
    pub deck: Option<Arc<CassetteWriter>>,
    /// How long a cassette waits, as a part of the time it took.
    pub pace: f64,
}

impl Default for ProviderLimits {
    fn default() -> Self {
        Self {
            timeouts: CallTimeouts::default(),
            limits: ModelResponseLimits::default(),
            retries: RetryOptions::default(),
            allow: Vec::new(),
            deck: None,
            pace: 1.0,
        }
    }
}

/// Everyone the pack uses.
pub(super) fn models(
    pack: &Pack,
    scripted: Option<ScriptedProvider>,
    variables: &ServerVariables,
    bounds: &ProviderLimits,
) -> Result<ProviderTable, PackLoadError> {
    let mut set = ProviderTable::new(scripted);
    let prices: Arc<dyn CostCalculator> = Arc::new(pack.prices.clone());
    if pack
        .uses
        .iter()
        .any(|used| used.provider() == CASSETTE_PROVIDER)
    {
        let player = player(pack, prices.clone(), bounds.pace)?;
        set = set.with(CASSETTE_PROVIDER, Arc::new(player));
    }
    let used = pack.used_providers();
    if used.is_empty() {
        if bounds.deck.is_some() {
            tracing::warn!("nothing is recorded: the pack asks no provider over the network");
        }
        return Ok(set);
    }
    let dialer = dialer(used.values(), bounds)?;
    for (name, provider) in used {
        let key = key(provider, variables).map_err(|none| wrong(name, none))?;
        let one = ProviderSetup {
            name,
            provider,
            key,
            dialer: dialer.clone(),
        };
        set = set.with(name, Arc::new(one.remote(&prices, bounds)?));
    }
    Ok(set)
}

/// Everyone the pack uses, each saying what one script says: nobody is asked.
pub(super) fn spoken_for(pack: &Pack, script: &ScriptedProvider) -> ProviderTable {
    let set = ProviderTable::new(Some(script.clone()));
    let script = Arc::new(script.clone());
    let names = pack.uses.iter().map(|used| used.provider());
    names.fold(set, |set, name| set.with(name, script.clone()))
}

/// A dialer of their own: hosts that the pack names for models are open to nothing else.
fn dialer<'a>(
    used: impl Iterator<Item = &'a &'a ProviderDef>,
    bounds: &ProviderLimits,
) -> Result<Arc<Dialer>, PackLoadError> {
    let urls = used.filter_map(|provider| Url::parse(&provider.base_url).ok());
    let named = urls.filter_map(|url| AllowRule::for_host_of(&url));
    let allow = bounds.allow.iter().cloned().chain(named).collect();
    let dialer = Dialer::new(DialerOptions { allow });
    dialer.map(Arc::new).map_err(|why| {
        let message = format!("no provider can be asked: {why}");
        PackLoadError::Wrong(vec![PackFinding::error("providers.yaml", 1, 1, message)])
    })
}

/// One provider, with all that it takes to ask it.
struct ProviderSetup<'a> {
    name: &'a str,
    provider: &'a ProviderDef,
    key: Option<ApiKey>,
    dialer: Arc<Dialer>,
}

impl ProviderSetup<'_> {
    fn remote(
        self,
        prices: &Arc<dyn CostCalculator>,
        bounds: &ProviderLimits,
    ) -> Result<RemoteProvider, PackLoadError> {
        let provider = self.provider;
        let timeouts = patience(&provider.timeouts, &bounds.timeouts);
        let speaks = dialect_for(provider.dialect);
        let headers = provider.headers.iter().cloned().collect();
        let live = ModelHttpTransport::new(
            self.dialer,
            &provider.base_url,
            &*speaks,
            self.key.as_ref(),
            &headers,
            &timeouts,
        );
        let live = live.map_err(|why| wrong(self.name, why))?;
        let mut transport: Arc<dyn ModelTransport> = Arc::new(live);
        if let Some(deck) = &bounds.deck {
            let name = provider.dialect.as_str();
            transport = Arc::new(RecordingTransport::new(transport, name, deck.clone()));
        }
        let general = params(&provider.params);
        let prices = Some(prices.clone());
        let remote = RemoteProvider::new(self.name, speaks, transport, general, timeouts, prices);
        let remote = remote.with_limits(bounds.limits);
        let single = provider.models.iter();
        Ok(single.fold(remote, |remote, (model, own)| {
            remote.with_model_params(model, &params(own))
        }))
    }
}

fn wrong(provider: &str, why: impl std::fmt::Display) -> PackLoadError {
    let message = format!("`{provider}` cannot be asked: {why}");
    PackLoadError::Wrong(vec![PackFinding::error("providers.yaml", 1, 1, message)])
}

fn player(
    pack: &Pack,
    prices: Arc<dyn CostCalculator>,
    pace: f64,
) -> Result<CassetteProvider, PackLoadError> {
    let mut tapes = BTreeMap::new();
    for (name, text) in &pack.cassettes {
        let file = format!("cassettes/{name}.jsonl");
        let tape = CassettePlayback::parse(&file, text, pace).map_err(|bad| {
            let finding = PackFinding::error(bad.file, bad.line, 1, bad.message);
            PackLoadError::Wrong(vec![finding])
        })?;
        tapes.insert(name.clone(), tape);
    }
    let dialects: DialectLookup = Arc::new(dialect_by_name);
    Ok(CassetteProvider::new(tapes, dialects, Some(prices)))
}

fn patience(of: &TimeoutsDef, default: &CallTimeouts) -> CallTimeouts {
    let or = |ms: Option<u64>, default| ms.map_or(default, Duration::from_millis);
    CallTimeouts {
        connect: or(of.connect_ms, default.connect),
        first_byte: or(of.first_byte_ms, default.first_byte),
        idle: or(of.idle_ms, default.idle),
        total: or(of.total_ms, default.total),
    }
}

fn params(of: &ParamsDef) -> ModelParams {
    ModelParams {
        max_tokens: of.max_tokens,
        temperature: of.temperature,
        thinking_tokens: of.thinking_tokens,
        effort: of.effort.clone(),
        extra: of.extra.clone(),
    }
}
