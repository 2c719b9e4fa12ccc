//! Checks of the agents: each definition alone, what definitions say of each other, and the tools
//! that they use.

pub(crate) mod relay;
pub(crate) mod definition;
pub(crate) mod team;
pub(crate) mod tool_use;
pub(crate) mod timeout;
