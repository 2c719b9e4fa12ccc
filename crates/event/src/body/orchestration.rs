//! Payloads about agents that work for an agent: dispatches, plan steps, sub-agents and workers.

pub mod dispatch;
pub mod plan;
pub mod subagent;
pub mod delegate;
pub mod support;
pub mod agent;
