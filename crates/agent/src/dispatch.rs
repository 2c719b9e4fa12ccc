//! Sub-agents of a turn: what a turn is bound to, the invocations of sub-agents, their results and
//! failures, and the dispatch of several at once.

pub(crate) mod turn_spans;
pub(crate) mod sub_agent;
pub(crate) mod turn_binding;
pub(crate) mod invocation;
mod native_answer;
mod remote_answer;
mod invocation_run;
pub(crate) mod invocation_result;
pub(crate) mod turn_failures;
pub(crate) mod dispatch_step;
