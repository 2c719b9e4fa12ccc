//! A model that somebody else runs: a dialect that words the request and reads the answer, a
//! transport that carries both, and the time and bytes one call may use up.
//!
//! ```text
//! Request ─▶ Dialect::encode ─▶ Transport ─▶ SseReader ─▶ Decoder ─▶ Delta
//!                               (network or cassette)
//! ```
//! The stream pulls: nothing is asked before it is polled, no byte is read that nobody waits for,
//! and dropping it drops the transport's answer with it. A call that fails is not tried again
//! here.

mod call;
mod live;
mod retry_after;
mod transport;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, once};
use futures_util::{StreamExt as _, TryStreamExt as _};
use turnwire_event::Usage;

use crate::delta::{Delta, ModelError};
use crate::dialect::{Dialect, Params};
use crate::provider::Provider;
use crate::request::Request;

pub use live::{BadProvider, Live};
pub use transport::{Ask, Reply, Transport};

/// How long a call may take, step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the beginning of the call to the first byte of the answer's body.
    pub first_byte: Duration,
    /// From one piece of the answer to the next, while somebody waits for it.
    pub idle: Duration,
    /// The whole call, as far as somebody waits for its provider: time in which nobody asks for
    /// the next piece is not counted.
    pub total: Duration,
}

impl Default for Timeouts {
    /// A connection takes seconds at most; models think for a minute before the first word, and
    /// some keep as silent between two; an answer that takes five minutes is read by nobody.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(300),
        }
    }
}

/// How many bytes a call may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One frame.
    pub frame_bytes_max: usize,
    /// The whole answer, pings and unknown events included.
    pub call_bytes_max: u64,
}

impl Default for Limits {
    /// An answer of a hundred thousand tokens in one frame fits into 4 MiB. The largest answers are
    /// a few hundred thousand tokens of about 200 bytes a frame: 64 MiB.
    fn default() -> Self {
        Self {
            frame_bytes_max: 4 * 1_048_576,
            call_bytes_max: 64 * 1_048_576,
        }
    }
}

/// What calls cost.
pub trait Priced: Send + Sync {
    /// The price in US dollars of a call of `model`, written `provider:model`; 0 where nobody
    /// knows it. `cache_written_tokens` of the tokens read were put into the provider's cache.
    fn cost_usd(&self, model: &str, usage: &Usage, cache_written_tokens: u64) -> f64;
}

/// One provider, for all of its models.
#[derive(Clone)]
pub struct Remote(Arc<Setup>);

#[derive(Clone)]
struct Setup {
    name: String,
    dialect: Arc<dyn Dialect>,
    transport: Arc<dyn Transport>,
    params: Params,
    models: BTreeMap<String, Params>,
    timeouts: Timeouts,
    limits: Limits,
    price: Option<Arc<dyn Priced>>,
}

impl Remote {
    /// The provider that the operator calls `name`.
    pub fn new(
        name: &str,
        dialect: Arc<dyn Dialect>,
        transport: Arc<dyn Transport>,
        params: Params,
        timeouts: Timeouts,
        price: Option<Arc<dyn Priced>>,
    ) -> Self {
        Self(Arc::new(Setup {
            name: name.to_owned(),
            dialect,
            transport,
            params,
            models: BTreeMap::new(),
            timeouts,
            limits: Limits::default(),
            price,
        }))
    }

    /// With params for one model, by the vendor's name, laid over the provider's.
    #[must_use]
    pub fn for_model(mut self, model: &str, params: &Params) -> Self {
        let setup = Arc::make_mut(&mut self.0);
        let params = params.over(&setup.params);
        setup.models.insert(model.to_owned(), params);
        self
    }

    /// With other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        Arc::make_mut(&mut self.0).limits = limits;
        self
    }
}

impl Provider for Remote {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Delta, ModelError>> {
        let setup = Arc::clone(&self.0);
        once(call::open(setup, request)).try_flatten().boxed()
    }
}

#[cfg(test)]
mod tests;
