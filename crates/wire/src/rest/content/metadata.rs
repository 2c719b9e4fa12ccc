//! The `metadata` of a request: any JSON object of the client, held as its compact text.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use turnwire_event::{JsonObject, OversizedObject};

/// The most bytes of metadata that are kept while a request is read. Servers may be set to accept
/// less.
pub const METADATA_READ_BYTES_MAX: usize = 65_536;

/// The `metadata` of a request, before its size is checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MetadataInput {
    /// An object of at most [`METADATA_READ_BYTES_MAX`] as compact JSON.
    Object(JsonObject),
    /// An object that no server accepts, of which only the size is known. Written as null.
    #[serde(serialize_with = "as_null")]
    Oversized(OversizedObject),
}

impl MetadataInput {
    /// The size as compact JSON.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Object(object) => object.as_json().len(),
            Self::Oversized(object) => object.bytes,
        }
    }

    /// The object, if its size is at most `bytes_max`.
    pub fn up_to(self, bytes_max: usize) -> Result<JsonObject, OversizedObject> {
        let bytes = self.bytes();
        match self {
            Self::Object(object) if bytes <= bytes_max => Ok(object),
            Self::Object(_) | Self::Oversized(_) => Err(OversizedObject { bytes }),
        }
    }
}

fn as_null<S: Serializer>(_: &OversizedObject, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_none()
}

impl<'de> Deserialize<'de> for MetadataInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = JsonObject::read_up_to(deserializer, METADATA_READ_BYTES_MAX)?;
        Ok(object.map_or_else(Self::Oversized, Self::Object))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for MetadataInput {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "MetadataInput".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        JsonObject::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_kept_up_to_its_bound() {
        let of_bytes = |bytes: usize| format!(r#"{{"m":"{}"}}"#, "x".repeat(bytes - 8));
        for (bytes, bytes_max, is_kept) in [
            (100, 100, true),
            (101, 100, false),
            (METADATA_READ_BYTES_MAX, METADATA_READ_BYTES_MAX, true),
            (METADATA_READ_BYTES_MAX + 1, usize::MAX, false),
            (1_000_000, usize::MAX, false),
        ] {
            let json = of_bytes(bytes);
            let read: MetadataInput = serde_json::from_str(&json).expect("an object");
            assert_eq!(read.bytes(), bytes);
            match read.up_to(bytes_max) {
                Ok(object) => assert!(is_kept && object.as_json() == json, "{bytes}"),
                Err(oversized) => assert!(!is_kept && oversized.bytes == bytes, "{bytes}"),
            }
        }
    }
}
