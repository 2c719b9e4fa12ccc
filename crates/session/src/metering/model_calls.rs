//! The model calls of a turn that are in flight, and the metrics recorded when each ends.
//!
//! Metrics are labelled by the pack's name of the model: one series for each model of the packs.

use std::collections::HashMap;
use std::time::Instant;

use turnwire_event::{Body, CallId, TokenUsage, metric};

/// A model call that has started and not ended.
#[derive(Clone, Debug)]
struct CallInFlight {
    model: String,
    /// The start of the call; `None` if another process started it.
    started: Option<Instant>,
    /// What the call has used so far; see [`CallsInFlight::report`].
    usage: TokenUsage,
}

/// The model calls of a turn that are in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallsInFlight(HashMap<CallId, CallInFlight>);

impl CallsInFlight {
    /// Adds a call that starts now.
    pub(crate) fn start(&mut self, id: CallId, model: &str) {
        self.insert(id, model, Some(Instant::now()));
    }

    /// Applies a stored event of a turn that an earlier process ran, without metrics.
    pub(crate) fn restore(&mut self, body: &Body) {
        match body {
            Body::LlmCallStarted(call) => self.insert(call.call_id, &call.model, None),
            Body::LlmCallCompleted(call) => drop(self.0.remove(&call.call_id)),
            Body::LlmCallFailed(call) => drop(self.0.remove(&call.call_id)),
            _ => {}
        }
    }

    fn insert(&mut self, id: CallId, model: &str, started: Option<Instant>) {
        let model = model.to_owned();
        let usage = TokenUsage::default();
        let call = CallInFlight {
            model,
            started,
            usage,
        };
        self.0.insert(id, call);
    }

    /// Takes what a call has used so far, for its end if it is stopped.
    pub(crate) fn report(&mut self, id: CallId, usage: TokenUsage) {
        if let Some(call) = self.0.get_mut(&id) {
            call.usage = usage;
        }
    }

    /// What a call has used so far.
    pub(crate) fn usage(&self, id: CallId) -> Option<TokenUsage> {
        self.0.get(&id).map(|call| call.usage)
    }

    /// Records the end, the duration and the usage of a call.
    pub(super) fn end(&mut self, id: CallId, status: &'static str, usage: &TokenUsage) {
        let model = self.close(id, status);
        if *usage != TokenUsage::default() {
            record_usage(model, usage);
        }
    }

    /// Records the end and the duration of a call, and returns its model.
    fn close(&mut self, id: CallId, status: &'static str) -> String {
        let (model, started) = match self.0.remove(&id) {
            Some(call) => (call.model, call.started),
            None => (String::new(), None),
        };
        metrics::counter!(metric::LLM_CALLS_TOTAL, "model" => model.clone(), "status" => status)
            .increment(1);
        if let Some(started) = started {
            metrics::histogram!(metric::LLM_CALL_DURATION_SECONDS, "model" => model.clone())
                .record(started.elapsed());
        }
        model
    }
}

fn record_usage(model: String, usage: &TokenUsage) {
    let kinds = [
        ("input", usage.input_tokens),
        ("cached", usage.cached_tokens),
        ("output", usage.output_tokens),
        ("reasoning", usage.reasoning_tokens),
    ];
    for (kind, tokens) in kinds {
        metrics::counter!(metric::LLM_TOKENS_TOTAL, "model" => model.clone(), "kind" => kind)
            .increment(tokens);
    }
    // A gauge, because counters are integers and costs have fractions; the value only grows.
    metrics::gauge!(metric::LLM_COST_USD_TOTAL, "model" => model).increment(usage.cost_usd);
}

#[cfg(test)]
mod tests;
