//! The parts of a schema: which values inside it are schemas themselves, and which are data.

use std::collections::VecDeque;

use percent_encoding::percent_decode_str;
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

/// Every part of `schema` that is an object, with its JSON pointer; the whole schema first.
pub(super) fn parts(schema: &Value) -> Vec<(String, &Map<String, Value>)> {
    let mut parts = Vec::new();
    let mut below = VecDeque::from([(String::new(), schema, Meaning::Part)]);
    while let Some((at, value, meaning)) = below.pop_front() {
        match value {
            Value::Object(pairs) => {
                below.extend(pairs.iter().filter_map(|(key, value)| {
                    Some((pointer(&at, key), value, meaning.under(key)?))
                }));
                if meaning == Meaning::Part {
                    parts.push((at, pairs));
                }
            }
            Value::Array(items) => below.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (pointer(&at, &index.to_string()), item, meaning)),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    parts
}

/// The patterns of a part, not those of parts inside it, each with its JSON pointer below `at`.
pub(super) fn patterns<'s>(
    part: &'s Map<String, Value>,
    at: &str,
) -> impl Iterator<Item = (&'s str, String)> {
    let own = part.get("pattern").and_then(Value::as_str);
    let own = own.map(|text| (text, pointer(at, "pattern")));
    let names = part.get("patternProperties").and_then(Value::as_object);
    let at = pointer(at, "patternProperties");
    let names = names.into_iter().flat_map(Map::keys);
    own.into_iter()
        .chain(names.map(move |text| (text.as_str(), pointer(&at, text))))
}

/// The part of `schema` that a `$ref` leads to. Only references within the schema that count from
/// its root are followed: `#` and `#/…`, also with the root's `$id` before them.
pub(super) fn target<'s>(schema: &'s Value, reference: &str) -> Option<&'s Value> {
    let id = schema["$id"].as_str().unwrap_or_default();
    let local = reference.strip_prefix(id.split('#').next()?);
    let local = local.filter(|local| local.is_empty() || local.starts_with('#'));
    let pointer = match local.unwrap_or(reference) {
        "" if !reference.is_empty() => "",
        local => local.strip_prefix('#')?,
    };
    let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
    let mut steps = pointer.split('/').skip(1);
    steps.try_fold(Meaning::Part, Meaning::under)?;
    schema.pointer(&pointer)
}

/// The JSON pointer of what is under `key` of the part at `pointer`.
fn pointer(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}
