//! Checks `providers.yaml`. Messages never repeat a key, also if one is written into the file.

use std::collections::BTreeMap;

use crate::check::endpoint::header;
use crate::check::endpoint::key::{self, KeyFields};
use crate::check::endpoint::url::{self, UrlField};
use crate::check::model::params;
use crate::check::report::{FileReport, value_of, word};
use crate::finding::{Findings, KnownNames};
use crate::pack::provider::{ApiKeySource, DialectName, ProviderDef, RetriesDef, TimeoutsDef};
use crate::source::provider::{ProviderSource, ProvidersSource, RetriesSource, TimeoutsSource};
use crate::yaml::{Located, TextPosition};

pub(crate) const FILE: &str = "providers.yaml";
/// The built-in provider that plays the pack's scripts.
pub(crate) const SCRIPTED: &str = "scripted";
/// The built-in provider that plays the pack's recorded calls.
pub(crate) const CASSETTE: &str = "cassette";

/// The base url of a provider.
const PROVIDER: UrlField = UrlField {
    field: "base_url",
    example: "http://127.0.0.1:8090/v1",
    query: "it without a query: the path of the call is put after it",
    user: "it without: a key is written as `key: ${NAME}`",
};

/// A built-in provider: name, dialect, variable of its address, default address, variables of its key.
/// The variables are those that the vendors' own clients read.
type Builtin = (
    &'static str,
    DialectName,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const BUILTIN: [Builtin; 4] = [
    (
        "anthropic",
        DialectName::Anthropic,
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
        &["ANTHROPIC_API_KEY"],
    ),
    (
        "openai",
        DialectName::OpenaiChat,
        "OPENAI_BASE_URL",
        "https://api.openai.com/v1",
        &["OPENAI_API_KEY"],
    ),
    (
        "openai_responses",
        DialectName::OpenaiResponses,
        "OPENAI_BASE_URL",
        "https://api.openai.com/v1",
        &["OPENAI_API_KEY"],
    ),
    (
        "gemini",
        DialectName::Gemini,
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
];

/// The providers of `providers.yaml`, and the built-in ones.
pub(crate) struct CheckedProviders {
    pub(crate) all: BTreeMap<String, ProviderDef>,
    /// The position of each provider's key.
    pub(crate) key_positions: BTreeMap<String, TextPosition>,
    /// Built-in providers with an invalid address in their variable, reported if they are used.
    pub(crate) invalid_builtins: BTreeMap<String, url::UrlProblem>,
    /// The names that are valid before the `:` of a model.
    pub(crate) known_names: KnownNames,
}

pub(crate) fn check(
    source: Option<&ProvidersSource>,
    vars: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> CheckedProviders {
    let mut report = FileReport::new(FILE, findings);
    let mut providers = CheckedProviders {
        all: BTreeMap::new(),
        key_positions: BTreeMap::new(),
        invalid_builtins: BTreeMap::new(),
        known_names: KnownNames {
            names: vec![SCRIPTED.to_owned(), CASSETTE.to_owned()],
            incomplete: source.is_none(),
        },
    };
    builtin(&mut providers, vars);
    let written = source.map_or(&[][..], |source| &source.providers.0);
    for (name, source) in written {
        let plays = [(SCRIPTED, "scripts"), (CASSETTE, "cassettes")];
        if let Some((built_in, message)) =
            plays.iter().find(|(built_in, _)| name.value == *built_in)
        {
            let message = format!("`{built_in}` is built in and plays {message}");
            report.error(name.position, message, "another name");
            continue;
        }
        let provider = provider(&mut report, source, vars);
        if let Some(key) = source.value.key.as_ref().or(source.value.key_file.as_ref()) {
            providers
                .key_positions
                .insert(name.value.clone(), key.position);
        }
        providers.invalid_builtins.remove(&name.value);
        providers.all.insert(name.value.clone(), provider);
    }
    providers
        .known_names
        .names
        .extend(providers.all.keys().cloned());
    providers.known_names.names.sort();
    providers
}

fn builtin(providers: &mut CheckedProviders, vars: &dyn Fn(&str) -> Option<String>) {
    for (name, dialect, variable, address, keys) in BUILTIN {
        let set = vars(variable).filter(|value| !value.is_empty());
        let address = match &set {
            None => address,
            Some(set) => {
                if let Err((message, instead)) = url::check_url(set, &PROVIDER) {
                    let message = format!("the url in the variable `{variable}` {message}");
                    providers
                        .invalid_builtins
                        .insert(name.to_owned(), (message, instead));
                }
                set.trim_end_matches('/')
            }
        };
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let provider = ProviderDef::new(dialect, address, ApiKeySource::Variables(keys));
        providers.all.insert(name.to_owned(), provider);
    }
}

fn provider(
    report: &mut FileReport<'_>,
    source: &Located<ProviderSource>,
    vars: &dyn Fn(&str) -> Option<String>,
) -> ProviderDef {
    let source = &source.value;
    let dialect = word(&source.dialect);
    let key = KeyFields {
        key: source.key.as_ref(),
        key_file: source.key_file.as_ref(),
    };
    let key = key::check(report, &key, vars);
    let base_url = match &source.base_url {
        Some(url) => address(report, url, (dialect, &key), vars),
        None => String::new(),
    };
    let params = source.params.as_ref();
    let params = params.map(|params| params::check(report, &params.value));
    let models = source.models.0.iter();
    let models = models.map(|(name, own)| (name.value.clone(), params::check(report, &own.value)));
    let models = models.collect();
    let timeouts = source
        .timeouts
        .as_ref()
        .map(|source| timeouts(report, source));
    let retries = source
        .retries
        .as_ref()
        .map(|source| retries(report, source));
    let provider = ProviderDef {
        // A placeholder: the pack is refused.
        dialect: dialect.unwrap_or(DialectName::OpenaiChat),
        base_url,
        key,
        headers: header::check(report, &source.headers, &header::PROVIDER),
        params: params.unwrap_or_default(),
        models,
        timeouts: timeouts.unwrap_or_default(),
        retries: retries.unwrap_or_default(),
    };
    if dialect.is_some() {
        params::check_budget(report, source, &provider);
    }
    provider
}

/// The base url, checked for this dialect and this key.
fn address(
    report: &mut FileReport<'_>,
    url: &Located<String>,
    (dialect, key): (Option<DialectName>, &ApiKeySource),
    vars: &dyn Fn(&str) -> Option<String>,
) -> String {
    let before = report.findings.count();
    let filled = url::check(report, url, &PROVIDER, vars);
    if report.findings.count() > before {
        return filled;
    }
    check_path(report, url, &filled, dialect);
    if *key != ApiKeySource::None && url::is_unencrypted(&filled) {
        let message = "the key is sent unencrypted to another machine";
        let instead = "`https://`, or no key";
        report.warning(url.position, message, instead);
    }
    filled
}

/// Warns of a base url with the path of a call, or without the path that most servers need.
fn check_path(
    report: &mut FileReport<'_>,
    url: &Located<String>,
    filled: &str,
    dialect: Option<DialectName>,
) {
    use DialectName as D;
    let Some(dialect) = dialect else { return };
    let (calls, ends): (&str, &[&str]) = match dialect {
        D::Anthropic => ("/v1/messages", &["/v1/messages", "/v1"]),
        D::OpenaiChat => ("/chat/completions", &["/chat/completions"]),
        D::OpenaiResponses => ("/responses", &["/responses"]),
        D::Gemini => ("/v1beta/models/…", &["/v1beta/models", "/v1beta"]),
    };
    if ends.iter().any(|end| filled.ends_with(end)) {
        let message = format!("`{calls}` is put after this base_url, which already has some of it");
        let instead = format!("it without: what stands before `{calls}`");
        report.warning(url.position, message, instead);
    }
    let is_bare = filled.matches('/').count() == 2;
    if is_bare && matches!(dialect, D::OpenaiChat | D::OpenaiResponses) {
        let message =
            format!("`{calls}` is put after this base_url, and most servers want `/v1` before it");
        let instead = "it with `/v1` behind";
        report.warning(url.position, message, instead);
    }
}

fn timeouts(report: &mut FileReport<'_>, source: &TimeoutsSource) -> TimeoutsDef {
    if let (Some(total), Some(first)) = (&source.total_ms, &source.first_byte_ms)
        && first.value > total.value
    {
        let message = format!(
            "`first_byte_ms` is {}, longer than the whole answer may take",
            first.value
        );
        let instead = format!("at most {}, or a longer `total_ms`", total.value);
        report.warning(first.position, message, instead);
    }
    TimeoutsDef {
        connect_ms: value_of(&source.connect_ms),
        first_byte_ms: value_of(&source.first_byte_ms),
        idle_ms: value_of(&source.idle_ms),
        total_ms: value_of(&source.total_ms),
    }
}

fn retries(report: &mut FileReport<'_>, source: &RetriesSource) -> RetriesDef {
    if let (Some(base), Some(max)) = (&source.base_ms, &source.max_ms)
        && base.value > max.value
    {
        let message = format!("`base_ms` is {}, longer than the longest pause", base.value);
        let instead = format!("at most {}, or a longer `max_ms`", max.value);
        report.error(base.position, message, instead);
    }
    RetriesDef {
        attempts: value_of(&source.attempts).map(|attempts| attempts as u32),
        base_ms: value_of(&source.base_ms),
        max_ms: value_of(&source.max_ms),
    }
}
