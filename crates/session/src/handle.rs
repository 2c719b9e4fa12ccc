//! What callers use: one handle for each kind of access.

pub mod family;
mod submitter;
mod canceller;
pub mod approvals;
mod reload;
pub mod reader;
