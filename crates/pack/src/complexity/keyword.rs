//! The meaning of what is under a keyword of a schema: a part, parts by name, or data.

use serde_json::{Map, Value};

/// The meaning of a value inside a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A part, or a list of parts.
    Part,
    /// Parts by names that are not keywords.
    PartsByName,
}

impl Meaning {
    /// The meaning of what is under `key`; `None` if that is data.
    pub(super) fn under(self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::PartsByName, _) => Some(Self::Part),
            (Self::Part, "const" | "enum" | "default" | "examples" | "example") => None,
            (
                Self::Part,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
            ) => Some(Self::PartsByName),
            (Self::Part, _) => Some(Self::Part),
        }
    }
}

/// The patterns of a part, not those of parts inside it.
pub(super) fn patterns(part: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let by_pattern = part.get("patternProperties").and_then(Value::as_object);
    let names = by_pattern
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str);
    let own = part.get("pattern").and_then(Value::as_str);
    own.into_iter().chain(names)
}

/// The JSON pointer of what is under `key` of the part at `pointer`.
pub(super) fn pointer(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}
