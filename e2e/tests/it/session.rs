//! The session wire (WebSocket).

mod attach;
mod cuts;
mod delete;
mod frozen;
mod input;
mod metrics;
mod open_work;
mod order;
mod replay;
mod snapshot;
mod subscribe;
mod turn;
