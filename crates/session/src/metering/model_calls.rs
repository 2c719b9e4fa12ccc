//! The model calls of a turn that are in flight, and what is counted when each ends.
//!
//! Labels are models as packs name them, so there are as many series as packs have models.

use std::collections::HashMap;
use std::time::Instant;

use turnwire_event::{Body, CallId, Usage, metric};

/// A call in flight.
#[derive(Clone, Debug)]
struct CallInFlight {
    model: String,
    /// When it began; not known of a call that another process began.
    since: Option<Instant>,
}

/// The calls in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallsInFlight(HashMap<CallId, CallInFlight>);

impl CallsInFlight {
    /// A call begins now.
    pub(crate) fn begin(&mut self, id: CallId, model: &str) {
        self.put(id, model, Some(Instant::now()));
    }

    /// Takes in an event of a turn of the last run: calls that did not end are left.
    pub(crate) fn recall(&mut self, body: &Body) {
        match body {
            Body::LlmCallStarted(call) => self.put(call.call_id, &call.model, None),
            Body::LlmCallCompleted(call) => drop(self.0.remove(&call.call_id)),
            Body::LlmCallFailed(call) => drop(self.0.remove(&call.call_id)),
            _ => {}
        }
    }

    fn put(&mut self, id: CallId, model: &str, since: Option<Instant>) {
        let model = model.to_owned();
        self.0.insert(id, CallInFlight { model, since });
    }

    /// Counts an event, if it is the end of a call.
    pub(crate) fn end(&mut self, body: &Body) {
        match body {
            Body::LlmCallCompleted(call) => {
                let model = self.close(call.call_id, "completed");
                count_usage(model, &call.usage);
            }
            Body::LlmCallFailed(call) => drop(self.close(call.call_id, "failed")),
            _ => {}
        }
    }

    /// Counts the end of a call, and how long it took. Gives back its model.
    fn close(&mut self, id: CallId, status: &'static str) -> String {
        let (model, since) = match self.0.remove(&id) {
            Some(calling) => (calling.model, calling.since),
            None => (String::new(), None),
        };
        metrics::counter!(metric::LLM_CALLS_TOTAL, "model" => model.clone(), "status" => status)
            .increment(1);
        if let Some(since) = since {
            metrics::histogram!(metric::LLM_CALL_DURATION_MS, "model" => model.clone())
                .record(since.elapsed().as_secs_f64() * 1e3);
        }
        model
    }
}

fn count_usage(model: String, usage: &Usage) {
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
    // Cents have fractions, which counters do not; it only ever grows all the same.
    metrics::gauge!(metric::LLM_COST_USD_TOTAL, "model" => model).increment(usage.cost_usd);
}

/// Whether an event is the end of a model call.
pub(crate) fn is_end(body: &Body) -> bool {
    matches!(body, Body::LlmCallCompleted(_) | Body::LlmCallFailed(_))
}

#[cfg(test)]
mod tests;
