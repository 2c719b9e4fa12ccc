//! The trait behind which every model stands, be it a script, a vendor or a recording, and the
//! trait that looks a provider up by model name.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use turnwire_event::TokenUsage;

use crate::delta::{Delta, ModelError};
use crate::request::ModelRequest;

/// The streamed answer of a model.
pub type DeltaStream = BoxStream<'static, Result<Delta, ModelError>>;

/// A source of model answers.
pub trait ModelProvider: Send + Sync {
    /// Calls the model and streams its answer: deltas, then [`Delta::Stop`] or an error, then the
    /// end.
    ///
    /// The call starts when the stream is first polled. Dropping the stream stops the call at once,
    /// between any two deltas and while it waits; no task, connection or timer remains.
    fn stream(&self, request: ModelRequest) -> DeltaStream;

    /// The cost in USD of `usage` of `model`, written `provider:model`, for a call without the
    /// provider's final numbers; 0 if its price is unknown.
    fn cost_usd(&self, model: &str, usage: &TokenUsage) -> f64 {
        let _ = (model, usage);
        0.0
    }
}

/// Looks up the provider of a model.
pub trait ProviderLookup: Send + Sync {
    /// The [`ModelProvider`] that serves `model`, written `provider:model`; `None` if no provider
    /// of that name exists.
    fn provider(&self, model: &str) -> Option<Arc<dyn ModelProvider>>;
}
