//! The streams as an AsyncAPI 3.0 document: channels, messages, and the schema of each frame.
//!
//! ```text
//! session, pc3 (schemas of frames) ─▶ generate ─▶ schema/asyncapi.json   (cargo xtask schema)
//! schema/asyncapi.json                                   ─▶ /asyncapi.json         (the server)
//! ```
//! As with [`openapi`](crate::openapi) the server embeds the committed file, and the generator exists with
//! the feature `schema` only. Nothing in the document depends on a setting.

#[cfg(feature = "schema")]
mod channel;
#[cfg(feature = "schema")]
mod document;

#[cfg(feature = "schema")]
pub use document::generate;

/// The document as text; `cargo xtask schema` writes it.
pub const DOCUMENT: &str = include_str!("../../../schema/asyncapi.json");
