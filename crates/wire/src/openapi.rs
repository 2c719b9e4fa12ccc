//! The REST API as one table, and the OpenAPI 3.1 document made from it.
//!
//! ```text
//! table (operations) + rest, problem (schemas) ─▶ generate ─▶ schema/openapi.json   (cargo xtask schema)
//! schema/openapi.json + Limits                 ─▶ document ─▶ /openapi.json         (the server)
//! ```
//! The server has the committed file built in; table and generator exist with the feature `schema`
//! alone, which `schemagen` turns on to write the file and to test that it has not drifted. The server's
//! routes are tested against the document in both directions, so neither can say more than the
//! other. JSON Schema 2020-12, which the types derive, is the dialect of OpenAPI 3.1.

mod served;
#[cfg(feature = "schema")]
mod schemas;
#[cfg(feature = "schema")]
mod parameter;
#[cfg(feature = "schema")]
mod operation;
#[cfg(feature = "schema")]
mod table;
#[cfg(feature = "schema")]
mod document;

#[cfg(feature = "schema")]
pub use document::generate;
pub use served::{Limits, Operation, document, operations};

#[cfg(all(test, feature = "schema"))]
mod tests;
