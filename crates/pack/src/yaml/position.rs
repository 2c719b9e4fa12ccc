//! Positions in a text, and values that carry the position they were read at.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Location;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
}

impl TextPosition {
    /// The first character of a file.
    pub const TOP: Self = Self { line: 1, column: 1 };
}

impl Default for TextPosition {
    fn default() -> Self {
        Self::TOP
    }
}

impl From<Location> for TextPosition {
    fn from(location: Location) -> Self {
        Self {
            line: location.line().max(1),
            column: location.column().max(1),
        }
    }
}

/// A value with its position. Its JSON Schema is that of the value.
///
/// A [`Located`] is only read from a [`super::YamlNode`]. It cannot stand where serde buffers
/// values: under `flatten`, `untagged` or `tag`.
#[derive(Clone, Debug)]
pub struct Located<T> {
    pub value: T,
    /// Where the value begins; of an alias, where the alias stands.
    pub position: TextPosition,
}

/// The newtype name by which a [`Located`] asks for a value, its line and its column.
pub(super) const LOCATED: &str = "turnwire::Located";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(LOCATED, LocatedVisitor(PhantomData))
    }
}

struct LocatedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for LocatedVisitor<T> {
    type Value = Located<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its position")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Located<T>, A::Error> {
        let (value, line, column) = Deserialize::deserialize(SeqAccessDeserializer::new(parts))?;
        Ok(Located {
            value,
            position: TextPosition { line, column },
        })
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
