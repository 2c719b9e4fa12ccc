//! Checks `pack.yaml`: models, limits and flags.

use std::collections::BTreeMap;

use crate::check::report::{FileReport, is_id, text_of, value_or};
use crate::finding::{Findings, KnownNames};
use crate::pack::PackLimits;
use crate::pack::flag::{FeatureFlag, FlagRollout};
use crate::pack::locale::is_tag;
use crate::source::form::ShortOrLong;
use crate::source::manifest::{LimitsSource, ManifestSource, RolloutSource};
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

const FILE: &str = "pack.yaml";
/// The prefix of every flag (S1-060).
const FLAG_PREFIX: &str = "ai_assistant_";
/// The default of `fan_out.cap`.
const CAP_DEFAULT: u64 = 3;

/// The content of `pack.yaml`.
#[derive(Default)]
pub(crate) struct CheckedManifest {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) default_locale: String,
    pub(crate) cap: u32,
    pub(crate) limits: PackLimits,
    pub(crate) flags: Vec<FeatureFlag>,
    pub(crate) models: BTreeMap<String, String>,
    /// The position of `default_locale`.
    pub(crate) locale_position: TextPosition,
    /// True if the file is broken, so that its names are not known.
    pub(crate) incomplete: bool,
}

impl CheckedManifest {
    pub(crate) fn known_flags(&self) -> KnownNames {
        let is_good = |flag: &&FeatureFlag| is_id(&flag.name) && flag.name.starts_with(FLAG_PREFIX);
        let good = self.flags.iter().filter(is_good);
        let names: Vec<String> = good.map(|flag| flag.name.clone()).collect();
        KnownNames {
            // A misspelt flag may be the one that another file means.
            incomplete: self.incomplete || names.len() < self.flags.len(),
            names,
        }
    }

    pub(crate) fn known_models(&self) -> KnownNames {
        KnownNames {
            names: self.models.keys().cloned().collect(),
            incomplete: self.incomplete,
        }
    }
}

pub(crate) fn check(source: Option<&ManifestSource>, findings: &mut Findings) -> CheckedManifest {
    let Some(source) = source else {
        return CheckedManifest {
            incomplete: true,
            ..CheckedManifest::default()
        };
    };
    let mut report = FileReport {
        file: FILE,
        findings,
    };
    CheckedManifest {
        name: text_of(&source.name),
        version: report.text(&source.version, "version", "version: \"1.0.0\""),
        default_locale: locale(&mut report, source.default_locale.as_ref()),
        locale_position: source
            .default_locale
            .as_ref()
            .map_or(TextPosition::TOP, |tag| tag.position),
        cap: source
            .fan_out
            .as_ref()
            .map_or(CAP_DEFAULT, |fan_out| value_or(&fan_out.cap, CAP_DEFAULT)) as u32,
        limits: source
            .limits
            .as_ref()
            .map_or_else(PackLimits::default, limits),
        flags: flags(&mut report, source),
        models: models(&mut report, source),
        incomplete: false,
    }
}

fn locale(report: &mut FileReport<'_>, tag: Option<&Located<String>>) -> String {
    let Some(tag) = tag else {
        return "en".to_owned();
    };
    if !is_tag(&tag.value) {
        let message = format!("`{}` is not a language tag", one_line(&tag.value));
        report
            .error(tag.position, message)
            .suggest("for example `en` or `es-MX`");
    }
    tag.value.replace('_', "-")
}

fn limits(source: &LimitsSource) -> PackLimits {
    let default = PackLimits::default();
    let number =
        |field: &Option<Located<u64>>, default: u32| value_or(field, default.into()) as u32;
    PackLimits {
        workers_max: number(&source.workers_max, default.workers_max),
        sub_agent_timeout_ms: value_or(&source.sub_agent_timeout_ms, default.sub_agent_timeout_ms),
        calls_max: number(&source.calls_max, default.calls_max),
        tool_calls_max: number(&source.tool_calls_max, default.tool_calls_max),
        turn_tokens_max: value_or(&source.turn_tokens_max, default.turn_tokens_max),
        turn_cost_max_usd: source.turn_cost_max_usd.as_ref().map(|usd| usd.value),
        status_window_ms: value_or(&source.status_window_ms, default.status_window_ms),
        watchdog_ms: value_or(&source.watchdog_ms, default.watchdog_ms),
        prior_context_chars: number(&source.prior_context_chars, default.prior_context_chars),
    }
}

fn models(report: &mut FileReport<'_>, source: &ManifestSource) -> BTreeMap<String, String> {
    let mut models = BTreeMap::new();
    for (name, model) in &source.models.0 {
        if !is_model(&model.value) {
            let message = format!("`{}` is not a model", one_line(&model.value));
            report
                .error(model.position, message)
                .suggest("`provider:model`, for example `scripted:market`");
        }
        models.insert(name.value.clone(), model.value.clone());
    }
    models
}

/// True if `text` is `provider:model`.
pub(crate) fn is_model(text: &str) -> bool {
    text.split_once(':').is_some_and(|(provider, model)| {
        !provider.is_empty() && !model.is_empty() && !text.contains(char::is_whitespace)
    })
}

fn flags(report: &mut FileReport<'_>, source: &ManifestSource) -> Vec<FeatureFlag> {
    let mut flags = Vec::new();
    for (name, rollout) in &source.flags.0 {
        let rollout = match &rollout.value {
            ShortOrLong::Short(true) => FlagRollout::On,
            ShortOrLong::Short(false) => FlagRollout::Off,
            ShortOrLong::Long(source) => rollout_of(report, rollout.position, source),
        };
        flags.push(FeatureFlag {
            name: name.value.clone(),
            rollout,
        });
    }
    flags.sort_by(|a, b| a.name.cmp(&b.name));
    flags
}

fn rollout_of(
    report: &mut FileReport<'_>,
    home: TextPosition,
    source: &RolloutSource,
) -> FlagRollout {
    match (&source.share, &source.principals) {
        (Some(share), None) => FlagRollout::Share(share.value),
        (None, Some(principals)) => FlagRollout::Principals(principals.clone()),
        (None, None) | (Some(_), Some(_)) => {
            report
                .error(home, "a flag says one thing about whom it is active for")
                .suggest("`true`, `false`, `{share: 0.25}` or `{principals: [user-42]}`");
            FlagRollout::Off
        }
    }
}
