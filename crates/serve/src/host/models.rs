//! The model providers that a pack uses.
//!
//! ```text
//! providers.yaml ─▶ key, dialect, address ─▶ Live ─▶ (Recorder) ─▶ Remote ─┐
//! scripts/       ─▶ Scripted ──────────────────────────────────────────────┼▶ ModelSet
//! cassettes/     ─▶ Player ────────────────────────────────────────────────┘
//! ```
//! Only used providers are created, so that no unneeded key is read. A provider may have any address
//! that the pack names: the author of the pack decides which hosts the server calls.

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
use turnwire_pack::{Pack, ParamsDef, ProviderDef, TimeoutsDef};

use super::keys::key;
use super::{PackLoadError, ServerVariables};

/// The settings for remote model providers.
#[derive(Clone)]
pub struct ProviderLimits {
    /// Time limits of a call, unless the pack sets others.
    pub timeouts: CallTimeouts,
    /// Size limits of a response.
    pub limits: ModelResponseLimits,
    /// Retries of a call, unless the pack sets others.
    pub retries: RetryOptions,
    /// Private hosts that may be called, besides those of the pack.
    pub allow: Vec<AllowRule>,
    /// Records every response stream.
    pub deck: Option<Arc<CassetteWriter>>,
    /// The replay speed of cassettes: 1.0 waits as long as the recorded call did.
    pub pace: f64,
    /// The pauses of scripted models, in percent of those under `pace` in a script.
    pub script_pace_percent: u32,
}

/// The [`ProviderTable`] with every provider that the pack uses.
pub(super) fn models(
    pack: &Pack,
    scripted: Option<ScriptedProvider>,
    variables: &ServerVariables,
    bounds: &ProviderLimits,
) -> Result<ProviderTable, PackLoadError> {
    let mut set = ProviderTable::new(scripted);
    let prices: Arc<dyn CostCalculator> = Arc::new(pack.prices.clone());
    let mut uses = pack.uses.iter();
    if uses.any(|used| used.provider() == CASSETTE_PROVIDER) {
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
        let key = key(&provider.key, variables).map_err(|none| wrong(name, none))?;
        let named = (name, provider);
        let remote = remote(named, key.as_ref(), dialer.clone(), prices.clone(), bounds)?;
        set = set.with(name, Arc::new(remote));
    }
    Ok(set)
}

/// Like [`models`], but every provider plays `script` and none is called.
pub(super) fn spoken_for(pack: &Pack, script: &ScriptedProvider) -> ProviderTable {
    let set = ProviderTable::new(Some(script.clone()));
    let script = Arc::new(script.clone());
    let names = pack.uses.iter().map(|used| used.provider());
    names.fold(set, |set, name| set.with(name, script.clone()))
}

/// The [`Dialer`] of model calls: hosts that the pack names for models are open to nothing else.
pub(super) fn dialer<'a>(
    used: impl Iterator<Item = &'a &'a ProviderDef>,
    bounds: &ProviderLimits,
) -> Result<Arc<Dialer>, PackLoadError> {
    let urls = used.filter_map(|provider| Url::parse(&provider.base_url).ok());
    let named = urls.filter_map(|url| AllowRule::for_host_of(&url));
    let allow = bounds.allow.iter().cloned().chain(named).collect();
    let dialer = Dialer::new(DialerOptions { allow });
    dialer.map(Arc::new).map_err(|why| {
        let message = format!("no provider can be called: {why}");
        PackLoadError::at("providers.yaml", (1, 1), message)
    })
}

/// One provider of the pack over the network.
fn remote(
    (name, provider): (&str, &ProviderDef),
    key: Option<&ApiKey>,
    dialer: Arc<Dialer>,
    prices: Arc<dyn CostCalculator>,
    bounds: &ProviderLimits,
) -> Result<RemoteProvider, PackLoadError> {
    let timeouts = timeouts(&provider.timeouts, &bounds.timeouts);
    let dialect = dialect_for(provider.dialect);
    let headers = provider.headers.iter().cloned().collect();
    let url = &provider.base_url;
    let http = ModelHttpTransport::new(dialer, url, &*dialect, key, &headers, &timeouts)
        .map_err(|why| wrong(name, why))?;
    let mut transport: Arc<dyn ModelTransport> = Arc::new(http);
    if let Some(deck) = &bounds.deck {
        let name = provider.dialect.as_str();
        transport = Arc::new(RecordingTransport::new(transport, name, deck.clone()));
    }
    let general = params(&provider.params);
    let remote = RemoteProvider::new(name, dialect, transport, general, timeouts, Some(prices))
        .with_limits(bounds.limits);
    let by_model = provider.models.iter();
    Ok(by_model.fold(remote, |remote, (model, own)| {
        remote.with_model_params(model, &params(own))
    }))
}

fn wrong(provider: &str, why: impl std::fmt::Display) -> PackLoadError {
    let message = format!("`{provider}` cannot be called: {why}");
    PackLoadError::at("providers.yaml", (1, 1), message)
}

fn player(
    pack: &Pack,
    prices: Arc<dyn CostCalculator>,
    pace: f64,
) -> Result<CassetteProvider, PackLoadError> {
    let mut tapes = BTreeMap::new();
    for (name, text) in &pack.cassettes {
        let file = format!("cassettes/{name}.jsonl");
        let tape = CassettePlayback::parse(&file, text, pace)
            .map_err(|bad| PackLoadError::at(&bad.file, (bad.line, 1), bad.message))?;
        tapes.insert(name.clone(), tape);
    }
    let dialects: DialectLookup = Arc::new(dialect_by_name);
    Ok(CassetteProvider::new(tapes, dialects, Some(prices)))
}

fn timeouts(of: &TimeoutsDef, default: &CallTimeouts) -> CallTimeouts {
    let or = |ms: Option<u64>, default| ms.map_or(default, Duration::from_millis);
    let idle = or(of.idle_ms, default.idle);
    CallTimeouts {
        connect: or(of.connect_ms, default.connect),
        first_byte: or(of.first_byte_ms, default.first_byte),
        idle,
        silence: default.silence.max(idle),
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
