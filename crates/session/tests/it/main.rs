//! Tests of the session service over a real store, in one binary.

mod stage;

mod approvals;
mod audit;
mod binding;
mod calls;
mod cancel;
mod dispatch;
mod endings;
mod create;
mod gate;
mod suppressed;
mod idempotency;
mod disconnect;
mod history;
mod policy;
mod queue;
mod response_claims;
mod restart;
mod message_scopes;
mod write_path;
mod stamps;
mod streams;
mod bus_events;
mod turns;
mod upkeep;
mod text_windows;
mod workers;
mod write_slots;
