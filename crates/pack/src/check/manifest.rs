//! Checks `pack.yaml`: models, limits and flags.

use std::collections::BTreeMap;

use crate::check::report::{FileReport, is_id, text_of};
use crate::finding::{Findings, KnownNames};
use crate::pack::PackLimits;
use crate::pack::flag::{FeatureFlag, FlagRollout, PLATFORM_FLAGS};
use crate::source::form::ShortOrLong;
use crate::source::manifest::{LimitsSource, ManifestSource, RolloutSource};
use crate::text::wording::{closest_name, one_line, quoted_list};
use crate::yaml::TextPosition;

const FILE: &str = "pack.yaml";
/// The prefix of every flag (S1-060).
const FLAG_PREFIX: &str = "ai_assistant_";
/// The default of `fan_out.cap`.
const CAP_DEFAULT: u32 = 3;

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
        let has_stem = |name: &str| {
            name.strip_prefix(FLAG_PREFIX)
                .is_some_and(|stem| !stem.is_empty())
        };
        let is_good = |flag: &&FeatureFlag| is_id(&flag.name) && has_stem(&flag.name);
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
    let mut report = FileReport::new(FILE, findings);
    let models = source.models.0.iter();
    let locale = source.default_locale.as_ref();
    CheckedManifest {
        name: text_of(&source.name),
        version: text_of(&source.version),
        default_locale: locale.map_or("en".to_owned(), |tag| tag.value.replace('_', "-")),
        locale_position: locale.map_or(TextPosition::TOP, |tag| tag.position),
        cap: source
            .fan_out
            .as_ref()
            .and_then(|fan_out| fan_out.cap)
            .unwrap_or(CAP_DEFAULT),
        limits: source.limits.as_ref().map(limits).unwrap_or_default(),
        flags: flags(&mut report, source),
        models: models
            .map(|(name, model)| (name.value.clone(), model.value.clone()))
            .collect(),
        incomplete: false,
    }
}

fn limits(source: &LimitsSource) -> PackLimits {
    let default = PackLimits::default();
    PackLimits {
        workers_max: source.workers_max.unwrap_or(default.workers_max),
        sub_agent_timeout_ms: source
            .sub_agent_timeout_ms
            .unwrap_or(default.sub_agent_timeout_ms),
        calls_max: source.calls_max.unwrap_or(default.calls_max),
        tool_calls_max: source.tool_calls_max.unwrap_or(default.tool_calls_max),
        turn_tokens_max: source.turn_tokens_max.unwrap_or(default.turn_tokens_max),
        turn_cost_max_usd: source.turn_cost_max_usd,
        status_window_ms: source.status_window_ms.unwrap_or(default.status_window_ms),
        watchdog_ms: source.watchdog_ms.unwrap_or(default.watchdog_ms),
        prior_context_chars: source
            .prior_context_chars
            .unwrap_or(default.prior_context_chars),
        component_bytes: source.component_bytes.unwrap_or(default.component_bytes),
    }
}

/// True if `text` is `provider:model`.
pub(crate) fn is_model(text: &str) -> bool {
    text.split_once(':').is_some_and(|(provider, model)| {
        !provider.is_empty() && !model.is_empty() && !text.contains(char::is_whitespace)
    })
}

fn flags(report: &mut FileReport<'_>, source: &ManifestSource) -> Vec<FeatureFlag> {
    let flags = source.flags.0.iter().map(|(name, rollout)| FeatureFlag {
        name: name.value.clone(),
        rollout: match &rollout.value {
            ShortOrLong::Short(true) => FlagRollout::On,
            ShortOrLong::Short(false) => FlagRollout::Off,
            ShortOrLong::Long(source) => rollout_of(report, rollout.position, source),
        },
    });
    let mut flags: Vec<FeatureFlag> = flags.collect();
    flags.sort_by(|a, b| a.name.cmp(&b.name));
    flags
}

/// Reports flags that neither the platform knows nor `used` has: one that is almost a flag of the
/// platform as an error, because the pack counts on it. Others are not reported if an unknown key may
/// use them.
pub(crate) fn check_unused_flags(source: &ManifestSource, used: &[&str], findings: &mut Findings) {
    let may_be_used = findings.has_removed_keys();
    let mut report = FileReport::new(FILE, findings);
    let stem = |flag: &'static str| flag.trim_start_matches(FLAG_PREFIX);
    for (flag, _) in &source.flags.0 {
        let name = flag.value.as_str();
        let is_used = PLATFORM_FLAGS.contains(&name) || used.contains(&name);
        let Some(written) = name.strip_prefix(FLAG_PREFIX).filter(|_| !is_used) else {
            continue;
        };
        let message = format!("nothing in the pack uses the flag `{}`", one_line(name));
        match closest_name(written, PLATFORM_FLAGS.map(stem)) {
            Some(meant) => {
                let message = format!("{message}, did you mean `{FLAG_PREFIX}{meant}`?");
                report.error(flag.position, message, "");
            }
            None if may_be_used => {}
            None => {
                let instead = format!(
                    "its name in overrides.yaml, `sub_agents` or `prompt_blocks`, no entry, or a flag of the \
                     platform: {}",
                    quoted_list(PLATFORM_FLAGS)
                );
                report.warning(flag.position, message, instead);
            }
        }
    }
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
            let message = "a flag says one thing about whom it is active for";
            let instead = "`true`, `false`, `{share: 0.25}` or `{principals: [user-42]}`";
            report.error(home, message, instead);
            FlagRollout::Off
        }
    }
}
