//! What an agent works with: the models it may call, its tools, and what the turn may spend.

pub(crate) mod turn_budget;
pub(crate) mod model_choice;
pub(crate) mod agent_resources;
