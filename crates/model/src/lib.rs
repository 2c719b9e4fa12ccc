//! Model providers in, canonical deltas out.
//!
//! A [`ModelProvider`] takes a [`ModelRequest`] and returns a stream of [`Delta`]s that ends in
//! [`Delta::Stop`]. Each vendor's blocks, fragments and stop reasons are translated behind that
//! trait; no other crate knows a vendor. [`ScriptedProvider`] plays a YAML script with real pauses
//! and needs no key and no network; [`RemoteProvider`] calls a vendor through its
//! [`VendorDialect`].

pub mod request;
pub mod provider_fault;
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
    EncodeInput, EncodedRequest, ErrorResponse, ModelParams, SseEvent, StreamDecoder, VendorDialect,
};
pub use models::ProviderTable;
pub use provider::{DeltaStream, ModelProvider, ProviderLookup};
pub use provider_fault::{ProviderFault, ProviderMessage};
pub use remote::{
    CallTimeouts, CostCalculator, ModelHttpTransport, ModelResponseLimits, ModelTransport,
    ProviderConfigError, RemoteProvider, TransportRequest, TransportResponse,
};
pub use request::{ModelMessage, ModelRequest, ToolSpec};
pub use routing::{ModelRoute, ModelRouter, RoutingInput};
pub use script::{ModelScript, ReferenceKind, ScriptError, ScriptReference};
pub use scripted::ScriptedProvider;
pub use secret::{ApiKey, ApiKeyError, KeySource};
