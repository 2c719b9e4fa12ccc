//! Checks `pack.yaml`: what the pack is, its models, bounds and flags.

use std::collections::BTreeMap;

use super::page::{Page, TIMEOUT_MS_MAX, is_id};
use crate::finding::{Findings, Known, shown};
use crate::flag::{Flag, Rollout};
use crate::locale::is_tag;
use crate::pack::Limits;
use crate::place::{At, Place};
use crate::source::form::Either;
use crate::source::manifest::{LimitsSource, ManifestSource, RolloutSource};

const FILE: &str = "pack.yaml";
/// What every flag begins with (S1-060).
const FLAG_PREFIX: &str = "ai_assistant_";
/// Sub-agents asked at once where the pack does not say.
const CAP_DEFAULT: u64 = 3;
/// Tokens of a turn at most: a thousand times what is usual.
const TOKENS_MAX: u64 = 1_000_000_000;

/// Workers of one turn at most.
const WORKERS_MAX: u64 = 64;

/// What `pack.yaml` says.
#[derive(Default)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) default_locale: String,
    pub(crate) cap: u32,
    pub(crate) limits: Limits,
    pub(crate) flags: Vec<Flag>,
    pub(crate) models: BTreeMap<String, String>,
    /// Where `default_locale` stands.
    pub(crate) locale_place: Place,
    /// Whether the file is broken, so that nobody knows its names.
    pub(crate) hidden: bool,
}

impl Manifest {
    pub(crate) fn known_flags(&self) -> Known {
        let is_good = |flag: &&Flag| is_id(&flag.name) && flag.name.starts_with(FLAG_PREFIX);
        let good = self.flags.iter().filter(is_good);
        let names: Vec<String> = good.map(|flag| flag.name.clone()).collect();
        Known {
            // One that is misspelt there may be the one that is meant here.
            hidden: self.hidden || names.len() < self.flags.len(),
            names,
        }
    }

    pub(crate) fn known_models(&self) -> Known {
        Known {
            names: self.models.keys().cloned().collect(),
            hidden: self.hidden,
        }
    }
}

/// Checks it.
pub(crate) fn check(source: Option<&ManifestSource>, found: &mut Findings) -> Manifest {
    let Some(source) = source else {
        return Manifest {
            hidden: true,
            ..Manifest::default()
        };
    };
    let mut page = Page { file: FILE, found };
    let cap = source
        .fan_out
        .as_ref()
        .and_then(|fan_out| fan_out.cap.clone());
    Manifest {
        name: page.id(&source.name, "name", Place::TOP, "name: my_pack"),
        version: page.text(&source.version, "version", Place::TOP, "version: \"1.0.0\""),
        default_locale: locale(&mut page, source.default_locale.as_ref()),
        locale_place: source
            .default_locale
            .as_ref()
            .map_or(Place::TOP, |tag| tag.place),
        cap: page.number(&cap, "cap", (1, 10), CAP_DEFAULT) as u32,
        limits: source
            .limits
            .as_ref()
            .map_or_else(Limits::default, |limits| bounds(&mut page, limits)),
        flags: flags(&mut page, source),
        models: models(&mut page, source),
        hidden: false,
    }
}

fn locale(page: &mut Page<'_>, tag: Option<&At<String>>) -> String {
    let Some(tag) = tag else {
        return "en".to_owned();
    };
    if !is_tag(&tag.value) {
        let what = format!("`{}` is not a language tag", shown(&tag.value));
        page.error(tag.place, what)
            .write("for example `en` or `es-MX`");
    }
    tag.value.replace('_', "-")
}

fn bounds(page: &mut Page<'_>, source: &LimitsSource) -> Limits {
    let default = Limits::default();
    let timeout = (1, TIMEOUT_MS_MAX);
    Limits {
        // Each is a session with an agent of its own.
        workers_max: page.number(
            &source.workers_max,
            "workers_max",
            (1, WORKERS_MAX),
            u64::from(default.workers_max),
        ) as u32,
        sub_agent_timeout_ms: page.number(
            &source.sub_agent_timeout_ms,
            "sub_agent_timeout_ms",
            timeout,
            default.sub_agent_timeout_ms,
        ),
        // A turn of a hundred calls of one agent is a loop, not an answer.
        calls_max: page.number(
            &source.calls_max,
            "calls_max",
            (1, 100),
            u64::from(default.calls_max),
        ) as u32,
        // A message that asks for more is a model that went astray.
        tool_calls_max: page.number(
            &source.tool_calls_max,
            "tool_calls_max",
            (1, 1_000),
            u64::from(default.tool_calls_max),
        ) as u32,
        turn_tokens_max: page.number(
            &source.turn_tokens_max,
            "turn_tokens_max",
            (1, TOKENS_MAX),
            default.turn_tokens_max,
        ),
        turn_cost_max_usd: source
            .turn_cost_max_usd
            .as_ref()
            .and_then(|usd| page.usd(usd, "turn_cost_max_usd")),
        // A status that is older than ten seconds tells nothing any more.
        status_window_ms: page.number(
            &source.status_window_ms,
            "status_window_ms",
            (0, 10_000),
            default.status_window_ms,
        ),
        watchdog_ms: page.number(
            &source.watchdog_ms,
            "watchdog_ms",
            timeout,
            default.watchdog_ms,
        ),
        prior_context_chars: page.number(
            &source.prior_context_chars,
            "prior_context_chars",
            (0, 100_000),
            u64::from(default.prior_context_chars),
        ) as u32,
    }
}

fn models(page: &mut Page<'_>, source: &ManifestSource) -> BTreeMap<String, String> {
    let mut models = BTreeMap::new();
    for (name, model) in &source.models.0 {
        page.id_form(name, "name of a model");
        if !is_model(&model.value) {
            let what = format!("`{}` is not a model", shown(&model.value));
            page.error(model.place, what)
                .write("`provider:model`, for example `scripted:market`");
        }
        models.insert(name.value.clone(), model.value.clone());
    }
    models
}

/// Whether this is `provider:model`.
pub(crate) fn is_model(text: &str) -> bool {
    text.split_once(':').is_some_and(|(provider, model)| {
        !provider.is_empty() && !model.is_empty() && !text.contains(char::is_whitespace)
    })
}

/// Says so if a name cannot be a flag.
pub(crate) fn flag_form(page: &mut Page<'_>, name: &At<String>) -> bool {
    let rest = name.value.strip_prefix(FLAG_PREFIX);
    if rest.is_some_and(|rest| !rest.is_empty()) {
        page.id_form(name, "flag");
        return true;
    }
    let what = format!("`{}` is not a valid flag", shown(&name.value));
    let stem = name.value.trim_start_matches(FLAG_PREFIX);
    let stem = if stem.is_empty() { "…" } else { stem };
    page.error(name.place, what)
        .write(format!("`{FLAG_PREFIX}{}`", shown(stem)));
    false
}

fn flags(page: &mut Page<'_>, source: &ManifestSource) -> Vec<Flag> {
    let mut flags = Vec::new();
    for (name, rollout) in &source.flags.0 {
        flag_form(page, name);
        let rollout = match &rollout.value {
            Either::Short(true) => Rollout::On,
            Either::Short(false) => Rollout::Off,
            Either::Long(source) => spread(page, rollout.place, source),
        };
        flags.push(Flag {
            name: name.value.clone(),
            rollout,
        });
    }
    flags.sort_by(|a, b| a.name.cmp(&b.name));
    flags
}

fn spread(page: &mut Page<'_>, home: Place, source: &RolloutSource) -> Rollout {
    match (&source.share, &source.principals) {
        (Some(share), None) => {
            if !(0.0..=1.0).contains(&share.value) {
                page.error(share.place, format!("`share` is {}", share.value))
                    .write("a number from 0 to 1, for example 0.25 for a quarter");
            }
            Rollout::Share(share.value)
        }
        (None, Some(principals)) => Rollout::Principals(principals.clone()),
        (None, None) | (Some(_), Some(_)) => {
            page.error(home, "a flag says one thing about whom it is active for")
                .write("`true`, `false`, `{share: 0.25}` or `{principals: [user-42]}`");
            Rollout::Off
        }
    }
}
