//! Where something stands in a file, and values that know it.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Location;

/// A line and a column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl Place {
    /// Where a file begins.
    pub(crate) const TOP: Self = Self { line: 1, column: 1 };
}

impl Default for Place {
    fn default() -> Self {
        Self::TOP
    }
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Self {
            line: location.line().max(1),
            column: location.column().max(1),
        }
    }
}

/// A value with its place. In a JSON Schema it is the value alone.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// The name by which the YAML parser is asked for a value with its place. `serde_saphyr::Spanned`
/// asks so too; it is not used itself because it compiles `T` seventeen times, for values that come
/// from elsewhere. So an [`At`] cannot stand where serde buffers values: under `flatten`, `untagged` or
/// `tag`. A parser that did not know the name would be refused, and every test of a place with it.
const WITH_PLACE: &str = "__yaml_spanned";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(WITH_PLACE, AtVisitor(PhantomData))
    }
}

struct AtVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for AtVisitor<T> {
    type Value = At<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<At<T>, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<At<T>, A::Error> {
        let (mut value, mut place) = (None, None);
        while let Some(part) = parts.next_key::<String>()? {
            match part.as_str() {
                "value" => value = Some(parts.next_value()?),
                "referenced" => place = Some(Place::from(parts.next_value::<Location>()?)),
                "defined" => {
                    parts.next_value::<Location>()?;
                }
                _ => {
                    parts.next_value::<IgnoredAny>()?;
                }
            }
        }
        let value = value.ok_or_else(|| A::Error::missing_field("value"))?;
        let place = place.ok_or_else(|| A::Error::missing_field("referenced"))?;
        Ok(At { value, place })
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for At<T> {
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
