//! The emitters that the agents of a turn write events to.
//!
//! All of them end in the turn's own [`EventEmitter`](turnwire_event::port::EventEmitter). [`ambient`] makes the
//! emitter available to all code that runs in a turn; the other two record what passes through them.

pub mod ambient;
pub(crate) mod open_placeholders;
pub(crate) mod output_recorder;
pub(crate) mod sub_agent_emitter;
