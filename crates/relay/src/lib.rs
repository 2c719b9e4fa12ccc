//! Agents that run elsewhere. An upstream gets one request a turn and answers with a stream of events
//! in the inner vocabulary (S1 3.1); they become the events that a native agent would have emitted.
//!
//! ```text
//! Upstream ─▶ UpstreamCall (dial, SSE) ─▶ InnerEvent ─▶ Translation ─▶ EventEmitter
//! ```
//! An upstream is not trusted: its stream is bounded in bytes and in time, no text of its failures
//! reaches a client, and whatever it does the turn ends once.

mod inner_event;
mod fault;
mod request;
mod shown;
mod tools;
mod translation;
mod dialect;
mod upstream;
mod held_response;
mod answer;
mod turn;
mod sub_agent;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;

pub use answer::RELAY_MODEL_PREFIX;
pub use dialect::UpstreamDialect;
pub use fault::UpstreamFault;
pub use inner_event::TypeMap;
#[cfg(feature = "schema")]
pub use request::schema as request_schema;
pub use request::{AgentQuestion, HistoryMessage, RelayRequest};
pub use sub_agent::{AgentAnswer, AskError, RelayedAgent};
pub use turn::RelayedTurns;
pub use upstream::{Upstream, UpstreamLimits};
