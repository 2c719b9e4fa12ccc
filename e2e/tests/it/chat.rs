//! The chat wire (SSE).

mod ask;
mod bad;
mod both_wires;
mod cuts;
mod kept_until;
mod leave;
mod metrics;
mod queue;
mod repeat;
mod resume;
mod slow;
mod versions;
mod wire;
