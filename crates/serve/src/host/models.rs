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
use turnwire_dial::{Allow, Dialer, Options, Url};
use turnwire_model::cassette::{CASSETTE, Deck, DialectOf, Player, Recorder, Tape};
use turnwire_model::models::{dialect, dialect_of};
use turnwire_model::{
    Limits, Live, ModelSet, Params, Priced, Prices, Remote, Scripted, Secret, Timeouts, Transport,
};
use turnwire_pack::{Pack, PackFinding, ParamsDef, ProviderDef, TimeoutsDef};

use super::keys::key;
use super::{Broken, Variables};

/// What the operator says of models that somebody else runs.
#[derive(Clone)]
pub struct Bounds {
    /// How long one is waited for, where the pack does not say.
    pub timeouts: Timeouts,
    /// How much it may say.
    pub limits: Limits,
    /// How often it is asked again, where the pack does not say.
    pub retries: RetryOptions,
    /// Hosts that may be asked although they are not public, besides those of the pack.
    pub allow: Vec<Allow>,
    /// What records all that is streamed.
    pub deck: Option<Arc<Deck>>,
    /// How long a cassette waits, as a part of the time it took.
    pub pace: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            limits: Limits::default(),
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
    scripted: Option<Scripted>,
    variables: &Variables,
    bounds: &Bounds,
) -> Result<ModelSet, Broken> {
    let mut set = ModelSet::new(scripted);
    let prices: Arc<dyn Priced> = Arc::new(Prices::new(&pack.prices));
    if pack.uses.iter().any(|used| used.provider() == CASSETTE) {
        let player = player(pack, prices.clone(), bounds.pace)?;
        set = set.with(CASSETTE, Arc::new(player));
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
        let one = Asked {
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
pub(super) fn spoken_for(pack: &Pack, script: &Scripted) -> ModelSet {
    let set = ModelSet::new(Some(script.clone()));
    let script = Arc::new(script.clone());
    let names = pack.uses.iter().map(|used| used.provider());
    names.fold(set, |set, name| set.with(name, script.clone()))
}

/// A dialer of their own: hosts that the pack names for models are open to nothing else.
fn dialer<'a>(
    used: impl Iterator<Item = &'a &'a ProviderDef>,
    bounds: &Bounds,
) -> Result<Arc<Dialer>, Broken> {
    let urls = used.filter_map(|provider| Url::parse(&provider.base_url).ok());
    let named = urls.filter_map(|url| Allow::host_of(&url));
    let allow = bounds.allow.iter().cloned().chain(named).collect();
    let dialer = Dialer::new(Options { allow });
    dialer.map(Arc::new).map_err(|why| {
        let what = format!("no provider can be asked: {why}");
        Broken::Wrong(vec![PackFinding::error("providers.yaml", 1, 1, what)])
    })
}

/// One provider, with all that it takes to ask it.
struct Asked<'a> {
    name: &'a str,
    provider: &'a ProviderDef,
    key: Option<Secret>,
    dialer: Arc<Dialer>,
}

impl Asked<'_> {
    fn remote(self, prices: &Arc<dyn Priced>, bounds: &Bounds) -> Result<Remote, Broken> {
        let provider = self.provider;
        let timeouts = patience(&provider.timeouts, &bounds.timeouts);
        let speaks = dialect(provider.dialect);
        let headers = provider.headers.iter().cloned().collect();
        let live = Live::new(
            self.dialer,
            &provider.base_url,
            &*speaks,
            self.key.as_ref(),
            &headers,
            &timeouts,
        );
        let live = live.map_err(|why| wrong(self.name, why))?;
        let mut transport: Arc<dyn Transport> = Arc::new(live);
        if let Some(deck) = &bounds.deck {
            let name = provider.dialect.as_str();
            transport = Arc::new(Recorder::new(transport, name, deck.clone()));
        }
        let general = params(&provider.params);
        let prices = Some(prices.clone());
        let remote = Remote::new(self.name, speaks, transport, general, timeouts, prices);
        let remote = remote.limits(bounds.limits);
        let single = provider.models.iter();
        Ok(single.fold(remote, |remote, (model, own)| {
            remote.for_model(model, &params(own))
        }))
    }
}

fn wrong(provider: &str, why: impl std::fmt::Display) -> Broken {
    let what = format!("`{provider}` cannot be asked: {why}");
    Broken::Wrong(vec![PackFinding::error("providers.yaml", 1, 1, what)])
}

fn player(pack: &Pack, prices: Arc<dyn Priced>, pace: f64) -> Result<Player, Broken> {
    let mut tapes = BTreeMap::new();
    for (name, text) in &pack.cassettes {
        let file = format!("cassettes/{name}.jsonl");
        let tape = Tape::parse(&file, text, pace).map_err(|bad| {
            let finding = PackFinding::error(bad.file, bad.line, 1, bad.what);
            Broken::Wrong(vec![finding])
        })?;
        tapes.insert(name.clone(), tape);
    }
    let dialects: DialectOf = Arc::new(dialect_of);
    Ok(Player::new(tapes, dialects, Some(prices)))
}

fn patience(of: &TimeoutsDef, default: &Timeouts) -> Timeouts {
    let or = |ms: Option<u64>, default| ms.map_or(default, Duration::from_millis);
    Timeouts {
        connect: or(of.connect_ms, default.connect),
        first_byte: or(of.first_byte_ms, default.first_byte),
        idle: or(of.idle_ms, default.idle),
        total: or(of.total_ms, default.total),
    }
}

fn params(of: &ParamsDef) -> Params {
    Params {
        max_tokens: of.max_tokens,
        temperature: of.temperature,
        thinking_tokens: of.thinking_tokens,
        effort: of.effort.clone(),
        extra: of.extra.clone(),
    }
}
