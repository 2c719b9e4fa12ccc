//! Checks every use of a model: its provider exists and has a valid address, and its price is known.

use crate::check::folder::{ParsedFile, ParsedPack};
use crate::check::manifest::{CheckedManifest, is_model};
use crate::check::model::provider::{CASSETTE, CheckedProviders};
use crate::check::report::FileReport;
use crate::finding::{Findings, KnownNames};
use crate::pack::model_use::ModelUse;
use crate::pack::price::PriceTable;
use crate::source::manifest::ManifestSource;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// The name of the model of a definition without one.
pub(crate) const DEFAULT: &str = "default";

/// The model of a name of `models`, or of a `provider:model`; `None` if it is neither.
pub(crate) fn resolved(
    report: &mut FileReport<'_>,
    name: &Located<String>,
    manifest: &CheckedManifest,
    providers: &KnownNames,
) -> Option<String> {
    if let Some(model) = manifest.models.get(&name.value) {
        return Some(model.clone());
    }
    if !is_model(&name.value) {
        report.unknown(name, "model", &manifest.known_models());
        return None;
    }
    check_provider(report, name, providers);
    Some(name.value.clone())
}

/// Reports an unknown provider of a `provider:model`.
fn check_provider(report: &mut FileReport<'_>, model: &Located<String>, providers: &KnownNames) {
    let name = Located {
        value: model.value.split(':').next().unwrap_or_default().to_owned(),
        position: model.position,
    };
    report.unknown(&name, "provider", providers);
}

/// Checks the providers of `models` in pack.yaml.
pub(crate) fn check_manifest(
    source: Option<&ManifestSource>,
    providers: &KnownNames,
    findings: &mut Findings,
) {
    let mut report = FileReport::new("pack.yaml", findings);
    for (_, model) in source.iter().flat_map(|source| &source.models.0) {
        if is_model(&model.value) {
            check_provider(&mut report, model, providers);
        }
    }
}

/// The models of the agents that run in this process, the orchestrator's first, at the position in pack.yaml if the agent uses
/// a name, else in the agent's own file.
pub(crate) fn uses(folder: &ParsedPack) -> Vec<ModelUse> {
    let mut uses = Vec::new();
    let Some(orchestrator) = &folder.orchestrator else {
        return uses;
    };
    if orchestrator.relay.is_none() {
        let model = orchestrator.model.as_ref();
        uses.extend(agent_use(folder, "orchestrator.yaml", model));
    }
    let listed_ids = orchestrator.sub_agent_ids();
    let agents = folder.agents.iter().filter_map(ParsedFile::parts);
    for (file, _, source) in agents.filter(|(_, _, source)| source.relay.is_none()) {
        let id = source.id.as_ref();
        if id.is_some_and(|id| listed_ids.iter().any(|listed| listed.value == id.value)) {
            uses.extend(agent_use(folder, file, source.model.as_ref()));
        }
    }
    let workers = folder.workers.iter().filter_map(ParsedFile::parts);
    for (file, _, source) in workers.filter(|(_, _, source)| source.relay.is_none()) {
        uses.extend(agent_use(folder, file, source.model.as_ref()));
    }
    uses
}

fn agent_use(folder: &ParsedPack, file: &str, field: Option<&Located<String>>) -> Option<ModelUse> {
    let name = field.map_or(DEFAULT, |field| field.value.as_str());
    let mut models = folder.manifest.iter().flat_map(|source| &source.models.0);
    let named = models.find(|(known, _)| known.value == name);
    let named = named.map(|(_, model)| ("pack.yaml", model));
    let (file, model) = named.or(field.map(|field| (file, field)))?;
    Some(used(file, model.position, &model.value))
}

/// A use of a model at a position.
pub(crate) fn used(file: &str, position: TextPosition, model: &str) -> ModelUse {
    ModelUse {
        model: model.to_owned(),
        file: file.to_owned(),
        line: position.line,
        column: position.column,
    }
}

/// Reports models that play a cassette which the pack does not have.
pub(crate) fn check_cassettes(uses: &[ModelUse], folder: &ParsedPack, findings: &mut Findings) {
    let known = KnownNames::complete(folder.cassettes.iter().map(|(name, _)| name));
    let mut seen: Vec<&str> = Vec::new();
    for used in uses {
        let Some((CASSETTE, name)) = used.model.split_once(':') else {
            continue;
        };
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        if known.names.is_empty() {
            let name = one_line(name);
            let message = format!("unknown cassette `{name}`: the pack has none");
            let instead = format!("it as `cassettes/{name}.jsonl`");
            findings.error(&used.file, used.position(), message, instead);
        } else {
            let name = Located {
                value: name.to_owned(),
                position: used.position(),
            };
            findings.unknown(&used.file, &name, "cassette", &known);
        }
    }
}

/// Checks the provider and the price of each model that is used, once.
pub(crate) fn check_uses(
    uses: &[ModelUse],
    providers: &CheckedProviders,
    prices: Option<&PriceTable>,
    findings: &mut Findings,
) {
    let mut invalid_builtins: Vec<&str> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for used in uses {
        let (provider, model) = (used.provider(), used.model.as_str());
        let is_served = providers.all.contains_key(provider);
        if seen.contains(&model) || !is_model(model) || !is_served {
            continue;
        }
        seen.push(model);
        let position = used.position();
        if let Some((message, instead)) = providers.invalid_builtins.get(provider)
            && !invalid_builtins.contains(&provider)
        {
            invalid_builtins.push(provider);
            findings.error(&used.file, position, message, instead);
        }
        if prices.is_some_and(|prices| prices.of(model).is_none()) {
            let model = one_line(model);
            let message = format!("`{model}` has no price: its calls count as 0 USD");
            let instead =
                format!("`\"{model}\": {{input: …, output: …}}` under `prices:` in prices.yaml");
            findings.warning(&used.file, position, message, instead);
        }
    }
}
