//! Model providers in, canonical deltas out.
//!
//! A [`Provider`] takes a [`Request`] and returns a stream of [`Delta`]s that ends in
//! [`Delta::Stop`]. Each vendor's blocks, fragments and stop reasons are translated behind that
//! trait; no other crate knows a vendor. [`Scripted`] plays a YAML script with real pauses and
//! needs no key and no network; [`Remote`] calls a vendor through its [`Dialect`].

pub mod request;
pub mod delta;
pub mod provider;
pub mod dialect;
pub mod routing;
pub mod script;
pub mod scripted;
pub mod secret;
pub mod remote;
pub mod price;
pub mod models;
pub mod cassette;

pub use delta::{Delta, ModelError, RetryHint};
pub use dialect::{
    EncodedRequest, ErrorResponse, ModelParams, SseFrame, StreamDecoder, VendorDialect,
};
pub use models::ProviderTable;
pub use price::{ModelPrices, TokenPrice};
pub use provider::{ModelProvider, ProviderLookup};
pub use remote::{
    CallTimeouts, CostCalculator, ModelHttpTransport, ModelResponseLimits, ModelTransport,
    ProviderConfigError, RemoteProvider, TransportRequest, TransportResponse,
};
pub use request::{ModelMessage, ModelRequest, ToolSpec};
pub use routing::{ModelRoute, ModelRouter, RoutingInput};
pub use script::{ModelScript, ReferenceKind, ScriptError, ScriptReference};
pub use scripted::{ScriptedModels, ScriptedProvider};
pub use secret::{ApiKey, ApiKeyError, KeySource};
