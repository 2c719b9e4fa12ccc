//! The one trait every model stands behind, whether it is a script, a vendor or a recording, and
//! the one that finds a model by its name.

use std::sync::Arc;

use futures_util::stream::BoxStream;

use crate::delta::{Delta, ModelError};
use crate::request::Request;

/// A model that can be asked.
pub trait Provider: Send + Sync {
    /// Asks, and gives the answer as it comes: deltas, then `Delta::Stop` or an error, then
    /// nothing.
    ///
    /// Nothing happens before the stream is polled. Dropping it stops the call at once, between
    /// any two deltas and while it waits; no task, connection or timer stays behind.
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Delta, ModelError>>;
}

/// The models an agent can be given.
pub trait Models: Send + Sync {
    /// The one called `model`, written `provider:model`; none if nobody serves it.
    fn provider(&self, model: &str) -> Option<Arc<dyn Provider>>;
}
