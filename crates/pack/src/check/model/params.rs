//! Checks the parameters of model calls.

use crate::check::report::{FileReport, value_of};
use crate::pack::provider::{DialectName, ParamsDef, ProviderDef};
use crate::source::provider::{ParamsSource, ProviderSource};
use crate::text::wording::one_line;

/// The maximum size of all `extra` fields: they are sent with every call.
const EXTRA_MAX: usize = 16_384;

/// Fields of a request that the dialects set from the conversation.
const RESERVED: [&str; 11] = [
    "model",
    "messages",
    "system",
    "instructions",
    "input",
    "contents",
    "systemInstruction",
    "tools",
    "stream",
    "stream_options",
    "max_tokens",
];

/// The parameters of a provider or a model.
pub(crate) fn check(report: &mut FileReport<'_>, source: &ParamsSource) -> ParamsDef {
    ParamsDef {
        max_tokens: value_of(&source.max_tokens).map(|tokens| tokens as u32),
        temperature: value_of(&source.temperature),
        thinking_tokens: value_of(&source.thinking_tokens).map(|tokens| tokens as u32),
        effort: value_of(&source.effort),
        extra: extra(report, source),
    }
}

fn extra(
    report: &mut FileReport<'_>,
    source: &ParamsSource,
) -> serde_json::Map<String, serde_json::Value> {
    let mut bytes = 0;
    for (name, value) in &source.extra.0 {
        if RESERVED.contains(&name.value.as_str()) {
            let message = format!("`{}` of a request is not the pack's to write", name.value);
            let instead = match &*name.value {
                "max_tokens" => "`max_tokens` beside `extra`",
                _ => "nothing",
            };
            report.error(name.position, message, instead);
        }
        let before = bytes;
        bytes += name.value.len() + value.to_string().len();
        if before <= EXTRA_MAX && bytes > EXTRA_MAX {
            let message = format!("`extra` has more than {EXTRA_MAX} bytes");
            report.error(name.position, message, "less");
        }
    }
    let fields = source.extra.0.iter();
    fields
        .map(|(name, value)| (name.value.clone(), value.clone()))
        .collect()
}

/// Reports models whose reasoning budget leaves no tokens for the answer.
pub(crate) fn check_budget(
    report: &mut FileReport<'_>,
    source: &ProviderSource,
    provider: &ProviderDef,
) {
    let counts_both = match provider.dialect {
        DialectName::Anthropic | DialectName::Gemini => true,
        // These have a reasoning effort instead of a budget.
        DialectName::OpenaiChat | DialectName::OpenaiResponses => false,
    };
    if !counts_both {
        return;
    }
    let general = source.params.as_ref().map(|params| ("", &params.value));
    let single = source.models.0.iter();
    let single = single.map(|(name, params)| (name.value.as_str(), &params.value));
    for (model, written) in general.into_iter().chain(single) {
        let (own, all) = (provider.models.get(model), &provider.params);
        let thinking_tokens = own
            .and_then(|own| own.thinking_tokens)
            .or(all.thinking_tokens);
        let max_tokens = own.and_then(|own| own.max_tokens).or(all.max_tokens);
        let tokens = written
            .thinking_tokens
            .as_ref()
            .or(written.max_tokens.as_ref());
        if let (Some(tokens), Some(thinking), Some(all)) = (tokens, thinking_tokens, max_tokens)
            && thinking >= all
        {
            let whose = match model {
                "" => String::new(),
                model => format!(" for `{}`", one_line(model)),
            };
            let message = format!(
                "`thinking_tokens` is {thinking} and `max_tokens` is {all}{whose}: nothing is left for the answer"
            );
            let instead = "`max_tokens` that is larger: it counts both";
            report.error(tokens.position, message, instead);
        }
    }
}
