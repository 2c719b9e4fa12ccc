//! One turn: ask the model, run the tools it asks for, ask again, until it has said all.
//!
//! An `Agent` is a producer of turns. It knows no session, log, hub or wire: it emits through the
//! emitter it is given, reads the past through the history it is given, and is stopped by being
//! dropped. What it emits is the order of S3-052:
//!
//! ```text
//! route.decided
//! ( llm.call_started  message.start  deltas  message.complete  llm.call_completed
//!   tool.called*  ( tool.completed | tool.failed )* )+
//! ```

pub mod writer;
pub mod options;
mod summary;
mod past;
mod draft;
mod call;
mod work;
mod turn;
pub mod agent;

pub use agent::Agent;
pub use options::Options;

#[cfg(test)]
mod tests;
