//! The REST API as one table, and the OpenAPI 3.1 document generated from it.
//!
//! ```text
//! table (operations) + rest, problem (schemas) ─▶ generate ─▶ schema/openapi.json   (cargo xtask schema)
//! schema/openapi.json + Limits                 ─▶ document ─▶ /openapi.json         (the server)
//! ```
//! The server embeds the committed file. Table and generator exist with the feature `schema` only,
//! which `schemagen` enables to write the file and to test that it is up to date. Tests compare the
//! routes of the server with the document in both directions. The types derive JSON Schema 2020-12,
//! the dialect of OpenAPI 3.1.

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
pub use served::{ApiOperation, DocumentLimits, document, operations, without_security};

#[cfg(all(test, feature = "schema"))]
mod tests;
