//! What the agents of a turn emit through: the turn's emitter, ambient for all that runs in the turn,
//! and wrapped to record what the user was shown and what a sub-agent has open.

pub mod ambient;
pub(crate) mod output_recorder;
pub(crate) mod sub_agent_emitter;
