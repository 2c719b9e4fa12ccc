//! The YAML reader and writer of the product: text into [`YamlNode`]s with positions, nodes into types.
//!
//! ```text
//! text ──▶ parse ──▶ Located<YamlNode> ──▶ NodeDeserializer ──▶ any type, Located<T> inside it
//!             └───────────── YamlError: position, what is wrong, what to write ──┘
//! ```
//! A serde deserializer is generic over every type that it reads. Only the tree is read from the
//! YAML parser, so that the parser is compiled once; types are read from the tree.

mod position;
mod error;
mod node;
mod deserializer;

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};

pub use error::YamlError;
pub use node::{YamlNode, parse};
pub use position::{Located, TextPosition};

pub(crate) use error::{unexpected_kind, unknown_field};

/// Reads one YAML document as a `T`.
///
/// # Errors
/// Fails at the first position where the text is not YAML or does not fit `T`.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    from_node(&parse(text)?)
}

/// Reads a `T` from a node.
///
/// # Errors
/// Fails at the first position where the node does not fit `T`.
pub fn from_node<T: DeserializeOwned>(node: &Located<YamlNode>) -> Result<T, YamlError> {
    T::deserialize(deserializer::NodeDeserializer(node))
}

/// Writes a value as a YAML document, a line for each entry.
///
/// # Errors
/// Fails if the value has a map whose keys are not text.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, YamlError> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_string_with_options(value, options).map_err(YamlError::custom)
}

#[cfg(test)]
mod tests;
