//! The whole system under load and faults: campaigns that the tests run for a little while and
//! the command of this crate for as long as it is told. Each ends with the history checker.

pub mod python;
pub mod load;
pub mod scene;
pub mod chat;
pub mod trace;
pub mod told;
pub mod engine;
pub mod workers;
pub mod mcp;
pub mod models;
pub mod approvals;
pub mod probe;
pub mod kills;
pub mod cuts;
pub mod carried;
pub mod cancels;
pub mod stops;
pub mod chat_cuts;
pub mod both;

pub use turnwire_testkit::data_service;
