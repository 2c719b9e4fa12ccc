//! What stands under a keyword: a schema, schemas by name, or data.

use serde_json::{Map, Value};

/// What a value inside a schema is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Under {
    /// A part, or a list of parts.
    Part,
    /// Parts by names that are not keywords.
    Names,
}

impl Under {
    /// What `key` of a value of this kind holds; nothing if that is data.
    pub(super) fn key(self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::Names, _) => Some(Self::Part),
            (Self::Part, "const" | "enum" | "default" | "examples" | "example") => None,
            (
                Self::Part,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
            ) => Some(Self::Names),
            (Self::Part, _) => Some(Self::Part),
        }
    }
}

/// The patterns that a part itself has.
pub(super) fn patterns(part: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let keys = part.get("patternProperties").and_then(Value::as_object);
    let keys = keys.into_iter().flat_map(Map::keys).map(String::as_str);
    let own = part.get("pattern").and_then(Value::as_str);
    own.into_iter().chain(keys)
}
