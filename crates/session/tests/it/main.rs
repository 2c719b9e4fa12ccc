//! Tests of the session service over a real store, in one binary.

mod stage;

mod approvals;
mod binding;
mod calls;
mod cancel;
mod dispatch;
mod endings;
mod founding;
mod gate;
mod hidden;
mod idempotency;
mod leaving;
mod memory;
mod policy;
mod queue;
mod restart;
mod scopes;
mod sink;
mod stamps;
mod streams;
mod turns;
mod upkeep;
mod words;
mod workers;
