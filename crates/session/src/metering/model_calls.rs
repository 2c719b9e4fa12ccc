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
        self.0.insert(id, CallInFlight { model, started });
    }

    /// Records the end, the duration and the usage of a call that succeeded.
    pub(super) fn complete(&mut self, id: CallId, usage: &TokenUsage) {
        let model = self.close(id, "completed");
        record_usage(model, usage);
    }

    /// Records the end and the duration of a call, and returns its model.
    pub(super) fn close(&mut self, id: CallId, status: &'static str) -> String {
        let (model, started) = match self.0.remove(&id) {
            Some(call) => (call.model, call.started),
            None => (String::new(), None),
        };
        metrics::counter!(metric::LLM_CALLS_TOTAL, "model" => model.clone(), "status" => status)
            .increment(1);
        if let Some(started) = started {
            metrics::histogram!(metric::LLM_CALL_DURATION_MS, "model" => model.clone())
                .record(started.elapsed().as_secs_f64() * 1e3);
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
