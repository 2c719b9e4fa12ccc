//! A model that a vendor or another server runs: a [`VendorDialect`] encodes the request and
//! decodes the answer, a [`ModelTransport`] carries both, and [`CallTimeouts`] and
//! [`ModelResponseLimits`] bound one call.
//!
//! ```text
//! Request ─▶ Dialect::encode ─▶ Transport ─▶ SseReader ─▶ Decoder ─▶ Delta
//!                               (network or cassette)
//! ```
//! The stream is pull-based: the call starts when it is polled, no byte is read before a consumer
//! waits for it, and dropping it drops the response. A failed call is not retried here.

mod transport;
mod retry_after;
mod call;
mod http;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::once;
use futures_util::{StreamExt as _, TryStreamExt as _};
use turnwire_event::TokenUsage;

use crate::dialect::{ModelParams, VendorDialect};
use crate::provider::{DeltaStream, ModelProvider};
use crate::request::ModelRequest;

pub use http::{ModelHttpTransport, ProviderConfigError};
pub use transport::{
    ChunkStream, ModelTransport, ResponseFuture, TransportRequest, TransportResponse,
};

/// Time limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Limit for establishing a connection.
    pub connect: Duration,
    /// Limit from the start of the call to the first byte of the response body.
    pub first_byte: Duration,
    /// Limit between two chunks of the body, while a consumer waits.
    pub idle: Duration,
    /// Limit between two parts of the answer. Comments, pings and other events without output end
    /// an idle time, and not this. Counted like `total`.
    pub silence: Duration,
    /// Limit of the whole call. Only time spent waiting for the provider counts, not the time in
    /// which the consumer does not poll.
    pub total: Duration,
}

impl Default for CallTimeouts {
    /// A connection takes seconds; models think for up to a minute before the first token and
    /// between tokens, twice as long if they send pings; no user waits longer than five minutes.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            silence: Duration::from_secs(120),
            total: Duration::from_secs(300),
        }
    }
}

/// Size limits of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelResponseLimits {
    /// Largest server-sent event in bytes.
    pub frame_bytes_max: usize,
    /// Largest response body in bytes, pings and unknown events included.
    pub call_bytes_max: u64,
}

impl Default for ModelResponseLimits {
    /// An answer of a hundred thousand tokens in one frame fits into 4 MiB. The largest answers
    /// have a few hundred thousand tokens at about 200 bytes per frame: 64 MiB.
    fn default() -> Self {
        Self {
            frame_bytes_max: 4 * 1_048_576,
            call_bytes_max: 64 * 1_048_576,
        }
    }
}

/// Computes the cost of calls; the pack's price table implements it.
pub trait CostCalculator: Send + Sync {
    /// Cost in USD of a call of `model`, written `provider:model`; 0 if its price is unknown.
    /// `cache_written_tokens` is the part of the input tokens that the provider wrote to its cache.
    fn cost_usd(&self, model: &str, usage: &TokenUsage, cache_written_tokens: u64) -> f64;
}

/// A [`ModelProvider`] that calls a vendor; serves all of the vendor's models through a
/// [`ModelTransport`].
#[derive(Clone)]
pub struct RemoteProvider(Arc<RemoteConfig>);

#[derive(Clone)]
struct RemoteConfig {
    name: String,
    dialect: Arc<dyn VendorDialect>,
    transport: Arc<dyn ModelTransport>,
    params: ModelParams,
    models: BTreeMap<String, ModelParams>,
    timeouts: CallTimeouts,
    limits: ModelResponseLimits,
    price: Option<Arc<dyn CostCalculator>>,
}

impl RemoteProvider {
    /// The provider that the operator named `name`. Without `price` every call costs 0.
    pub fn new(
        name: &str,
        dialect: Arc<dyn VendorDialect>,
        transport: Arc<dyn ModelTransport>,
        params: ModelParams,
        timeouts: CallTimeouts,
        price: Option<Arc<dyn CostCalculator>>,
    ) -> Self {
        Self(Arc::new(RemoteConfig {
            name: name.to_owned(),
            dialect,
            transport,
            params,
            models: BTreeMap::new(),
            timeouts,
            limits: ModelResponseLimits::default(),
            price,
        }))
    }

    /// Sets [`ModelParams`] for one model, by the vendor's name; unset ones are those of the
    /// provider.
    #[must_use]
    pub fn with_model_params(mut self, model: &str, params: &ModelParams) -> Self {
        let config = Arc::make_mut(&mut self.0);
        let params = params.with_defaults(&config.params);
        config.models.insert(model.to_owned(), params);
        self
    }

    /// Replaces the default [`ModelResponseLimits`].
    #[must_use]
    pub fn with_limits(mut self, limits: ModelResponseLimits) -> Self {
        Arc::make_mut(&mut self.0).limits = limits;
        self
    }
}

impl ModelProvider for RemoteProvider {
    fn stream(&self, request: ModelRequest) -> DeltaStream {
        let config = Arc::clone(&self.0);
        once(call::open(config, request)).try_flatten().boxed()
    }

    fn cost_usd(&self, model: &str, usage: &TokenUsage) -> f64 {
        let price = self.0.price.as_ref();
        price.map_or(0.0, |price| price.cost_usd(model, usage, 0))
    }
}

#[cfg(test)]
mod tests;
