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

pub use delta::{Again, Delta, ModelError};
pub use dialect::{Dialect, EncodedRequest, ErrorResponse, Frame, Params, StreamDecoder};
pub use models::ModelSet;
pub use price::{Prices, TokenPrice};
pub use provider::{Models, Provider};
pub use remote::{
    Ask, Limits, Live, Priced, ProviderConfigError, Remote, Reply, Timeouts, Transport,
};
pub use request::{Request, Said, ToolSpec};
pub use routing::{Circumstances, Route, Routing};
pub use script::{Named, Script, ScriptError, Subject};
pub use scripted::{Scripted, ScriptedModels};
pub use secret::{BadKey, KeySource, Secret};
