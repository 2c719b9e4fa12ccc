//! One turn: ask the model, run the tools it asks for, ask again, until it has said all.
//!
//! An `Agent` answers turns alone; a `Factory` makes turns of a pack, whose orchestrator may ask
//! sub-agents. Both give an `Assembly`, and both run the same loop. None of it knows a session,
//! log, hub or wire: it emits through the emitter it is given, reads the past through the history
//! it is given, and is stopped by being dropped. What it emits is the order of S3-052:
//!
//! ```text
//! route.decided
//! ( llm.call_started  message.start  deltas  message.complete  llm.call_completed
//!   tool.called*  ( tool.completed | tool.failed )* )+
//! ```
//! A tool that needs a person's word is not called: the turn asks, ends as paused, and the turn that
//! goes on with the answers begins with the tools (`tool_call`). A call that failed without a word may come again, as the head of `model_call::fallback` shows; where sub-agents
//! are asked, the order is that at the head of `dispatch::dispatch_step`.

pub mod emitter;
pub mod options;
mod resources;
mod prompt;
mod history;
mod model_call;
mod tool_call;
mod dispatch;
mod turn_loop;
pub mod assembly;
pub mod agent;
pub mod factory;

pub use agent::Agent;
pub use assembly::Assembly;
pub use factory::Factory;
pub use options::{Options, Retries};

#[cfg(test)]
mod tests;
