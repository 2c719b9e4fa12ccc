//! Runs one turn: call the model, run the tools it calls, and repeat until it calls none.
//!
//! A [`StandaloneAgent`] answers turns without a pack; a [`TurnFactory`] binds turns to a pack, whose
//! orchestrator may call sub-agents. Both return a [`TurnAssembly`] that runs the same loop. The crate
//! knows no session, log, hub or wire: it emits through the emitter it is given, reads history through
//! a port, and is cancelled by being dropped. The order of the events of a turn is that of S3-052:
//!
//! ```text
//! route.decided
//! ( llm.call_started  message.start  deltas  message.complete  llm.call_completed
//!   tool.called*  ( tool.completed | tool.failed )* )+
//! ```
//! A tool that needs approval is not called: the turn requests the approval, ends as paused, and the
//! turn that resumes it starts with the approved tools (`tool_call`). A call that failed before its
//! first output may be repeated (`model_call::fallback`). `dispatch::dispatch_step` shows the order
//! where sub-agents are called.

pub mod emitter;
pub mod options;
mod resources;
mod prompt;
mod history;
mod model_call;
mod tool_call;
mod dispatch;
mod turn_loop;
pub mod turn_assembly;
pub mod standalone_agent;
pub mod turn_factory;

pub use options::{AgentOptions, RetryOptions};
pub use standalone_agent::StandaloneAgent;
pub use turn_assembly::TurnAssembly;
pub use turn_factory::{RelayedAgents, TurnFactory};

#[cfg(test)]
mod tests;
