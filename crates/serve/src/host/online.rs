//! Tries the models of a pack over the network: one small call to each, without retries and fallbacks.
//! A call is ended at its first output.

use futures_util::StreamExt as _;
use turnwire_agent::RetryOptions;
use turnwire_event::{ContentBlock, Role};
use turnwire_model::{
    CallTimeouts, Delta, ModelError, ModelMessage, ModelRequest, ModelResponseLimits,
    ProviderLookup as _, ProviderTable,
};
use turnwire_pack::{ModelUse, Pack, PackFinding, one_line};

use super::models::{self, ProviderLimits};
use super::{PackLoadError, ServerVariables};

/// Calls at the same time: a pack names few models, and vendors limit bursts.
const CALLS_MAX: usize = 4;
/// The message of a call. Any answer will do.
const MESSAGE: &str = "Reply with the word ok.";

/// The result of trying one model.
#[derive(Debug)]
pub struct ModelTrial {
    /// The model, as `provider:model`.
    pub model: String,
    /// Why the model cannot be used, at its first use in the pack; `None` if it answered.
    pub finding: Option<PackFinding>,
}

/// Calls every model that the pack uses over the network once, in the order of their first uses.
/// Scripts and cassettes are not called.
pub async fn try_models(
    pack: &Pack,
    variables: &ServerVariables,
) -> Result<Vec<ModelTrial>, PackLoadError> {
    let limits = ProviderLimits {
        timeouts: CallTimeouts::default(),
        limits: ModelResponseLimits::default(),
        retries: RetryOptions::default(),
        allow: Vec::new(),
        deck: None,
        pace: 1.0,
        script_pace_percent: 0,
    };
    let providers = models::models(pack, None, variables, &limits)?;
    let remote = pack.used_providers();
    let mut uses: Vec<&ModelUse> = Vec::new();
    for used in &pack.uses {
        let is_known = uses.iter().any(|known| known.model == used.model);
        if remote.contains_key(used.provider()) && !is_known {
            uses.push(used);
        }
    }
    let trials = uses.into_iter().map(|used| try_model(&providers, used));
    let trials = futures_util::stream::iter(trials).buffered(CALLS_MAX);
    Ok(trials.collect().await)
}

async fn try_model(providers: &ProviderTable, used: &ModelUse) -> ModelTrial {
    let name = one_line(&used.model);
    let failure = match providers.provider(&used.model) {
        None => Some(format!("{name}: the provider is not set up")),
        Some(provider) => {
            let mut answer = provider.stream(request(&used.model));
            loop {
                match answer.next().await {
                    // They come before the answer, which may still fail.
                    Some(Ok(Delta::Started { .. } | Delta::PartialUsage { .. })) => {}
                    Some(Ok(_)) => break None,
                    Some(Err(error)) => break Some(failure_text(&name, &error)),
                    None => break Some(format!("{name}: the answer is empty")),
                }
            }
        }
    };
    let finding = failure.map(|failure| {
        let message = format!("a model cannot be used: {}", one_line_of(&failure));
        PackFinding::error(used.file.clone(), used.line, used.column, message)
    });
    ModelTrial {
        model: used.model.clone(),
        finding,
    }
}

fn request(model: &str) -> ModelRequest {
    let message = ModelMessage::new(Role::User, vec![ContentBlock::text(MESSAGE)]);
    ModelRequest {
        model: model.to_owned(),
        agent: "check".to_owned(),
        call: 1,
        attempt: 1,
        locale: "en".to_owned(),
        system: None,
        messages: vec![message.into()],
        tools: [].into(),
    }
}

/// What went wrong with the model `name`, without keys: the words of the provider if it said anything.
fn failure_text(name: &str, error: &ModelError) -> String {
    match &error.fault {
        // Names the model itself, and with a status needs no other place.
        Some(fault) if fault.status.is_some() => fault.to_string(),
        Some(fault) => format!("{fault} ({})", error.location),
        None => format!("{name}: {error} ({})", error.location),
    }
}

/// A text of others on one line.
fn one_line_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
