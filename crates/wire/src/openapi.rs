//! The REST API as one table, and the OpenAPI 3.1 document made from it.
//!
//! ```text
//! table (operations) + rest, problem (schemas) + Limits ─▶ document ─▶ /openapi.json
//! ```
//! The server's routes are tested against the table in both directions, so neither can say more
//! than the other. JSON Schema 2020-12, which the types derive, is the dialect of OpenAPI 3.1.

mod schemas;
mod operation;
mod parameter;
mod table;
mod document;

pub use document::document;
pub use operation::{Method, Operation};
pub use schemas::Limits;
pub use table::operations;

#[cfg(test)]
mod tests;
