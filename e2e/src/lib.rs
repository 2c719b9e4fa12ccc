//! System tests under load and faults: fixtures, and campaigns that the tests run briefly and the
//! command of this crate runs for any length. Each ends with the history checker.

pub mod python;
pub mod example_agent;
pub mod load;
pub mod large_session;
pub mod server_fixture;
pub mod chat;
pub mod trace;
pub mod chat_reply;
pub mod engine;
pub mod workers;
pub mod mcp;
pub mod models;
pub mod approvals;
pub mod probe;
pub mod kills;
pub mod cuts;
pub mod worker_cuts;
pub mod cancels;
pub mod stops;
pub mod chat_cuts;
pub mod both_wires;
pub mod fairness;
pub mod api_cases;

pub use turnwire_testkit::data_service;
