//! What an agent works with: its role, its models and tools, the budget of the turn, and the
//! [`AgentContext`](agent_context::AgentContext) that ties them to one turn.

pub(crate) mod turn_budget;
pub(crate) mod model_choice;
pub(crate) mod agent_role;
pub(crate) mod message_metadata;
pub(crate) mod agent_resources;
pub(crate) mod agent_context;
