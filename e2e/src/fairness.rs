//! Fairness campaign: ten quiet owners beside a greedy one, resource by resource.
//!
//! Each resource has two phases that take turns. In the attack the greedy load runs against the
//! server of the quiet owners, in the reference against a second server on the same machine, so
//! that both phases share the processor in the same way and differ in what the owners share inside
//! the server.
//!
//! ```text
//!   reference   quiet ──▶ subject          greedy ──▶ other
//!   attack      quiet ──▶ subject ◀── greedy          other
//! ```

pub mod sample;
pub mod figures;
pub mod client;
pub mod resource;
pub mod quiet;
pub mod greedy;
pub mod memory;
pub mod arena;
pub mod report;
pub mod campaign;
