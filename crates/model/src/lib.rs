//! Model providers in, canonical deltas out.
//!
//! A `Provider` is asked with a `Request` and answers with a stream of `Delta`s that ends in
//! `Stop`. Whatever a vendor calls its blocks, fragments and reasons is translated behind that
//! trait; nothing on this side of it knows a vendor. `Scripted` says what a YAML file tells it to
//! say, with real pauses, and needs no key and no network; `Remote` asks a vendor in its own
//! dialect.

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
pub use dialect::{Decoder, Dialect, Encoded, Frame, Params, Refused};
pub use models::ModelSet;
pub use price::{Price, Prices};
pub use provider::{Models, Provider};
pub use remote::{Ask, BadProvider, Limits, Live, Priced, Remote, Reply, Timeouts, Transport};
pub use request::{Request, Said, ToolSpec};
pub use routing::{Circumstances, Route, Routing};
pub use script::{Named, Script, ScriptError, Subject};
pub use scripted::{Scripted, ScriptedModels};
pub use secret::{BadKey, KeySource, Secret};
