//! The parts of a schema that can be reached: which apply to the same value, which to what is
//! inside it. Keywords of all drafts count, whatever draft a schema names.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::keyword::{Meaning, pointer};
use super::pattern::Pattern;
use super::{ComplexityLimit, TooComplex};
use crate::text::wording::one_line;

/// The index of a part.
pub(super) type PartIndex = usize;

/// One part of a schema.
#[derive(Debug, Default)]
pub(super) struct SchemaPart {
    /// Entries of lists and maps that are searched for one value.
    pub(super) entries: u64,
    pub(super) pattern: Option<Pattern>,
    /// Values that one value is compared with as a whole.
    pub(super) compared: u64,
    /// True if what other parts leave over is checked, which applies those parts again.
    pub(super) has_unevaluated: bool,
    /// Parts that apply to the same value.
    pub(super) same: Vec<PartIndex>,
    /// Parts that apply to the same value, and once more to explain why it does not fit.
    pub(super) tried: Vec<PartIndex>,
    pub(super) properties: HashMap<String, PartIndex>,
    pub(super) by_pattern: Vec<(Pattern, PartIndex)>,
    pub(super) other_properties: Vec<PartIndex>,
    pub(super) all_properties: Vec<PartIndex>,
    pub(super) property_names: Vec<PartIndex>,
    /// Parts of the first items, one each.
    pub(super) first_items: Vec<PartIndex>,
    pub(super) all_items: Vec<PartIndex>,
}

impl SchemaPart {
    /// The parts that apply to what is inside a value.
    pub(super) fn inner(&self) -> impl Iterator<Item = PartIndex> {
        let lists = [
            &self.other_properties,
            &self.all_properties,
            &self.property_names,
            &self.first_items,
            &self.all_items,
        ];
        let by_pattern = self.by_pattern.iter().map(|(_, part)| part);
        let named = self.properties.values().chain(by_pattern);
        named.chain(lists.into_iter().flatten()).copied()
    }
}

/// The parts of a schema, the whole schema first, with their JSON pointers.
#[derive(Debug)]
pub(super) struct SchemaGraph {
    pub(super) parts: Vec<SchemaPart>,
    pub(super) pointers: Vec<String>,
}

impl SchemaGraph {
    /// Fails if a reference cannot be followed.
    pub(super) fn new(schema: &Value) -> Result<Self, TooComplex> {
        let mut builder = GraphBuilder {
            known: known_parts(schema)?,
            base: schema["$id"].as_str().unwrap_or_default(),
            indexes: HashMap::new(),
            pointers: Vec::new(),
        };
        builder.index(String::new());
        let mut parts = Vec::new();
        while let Some(pointer) = builder.pointers.get(parts.len()).cloned() {
            parts.push(builder.part(&pointer)?);
        }
        Ok(Self {
            parts,
            pointers: builder.pointers,
        })
    }
}

/// Every part of a schema by its JSON pointer; data inside it is not a part. Fails if a part inside
/// has a name that references could count from.
fn known_parts(schema: &Value) -> Result<HashMap<String, &Value>, TooComplex> {
    let mut indices = HashMap::new();
    let mut below = vec![(String::new(), schema, Meaning::Part)];
    // In draft 4 a name is an `id`.
    let (mut is_draft_4, mut id) = (false, None);
    while let Some((at, value, meaning)) = below.pop() {
        match value {
            Value::Object(pairs) => {
                let text = |key: &str| pairs.get(key).and_then(Value::as_str);
                is_draft_4 |= text("$schema").is_some_and(|draft| draft.contains("draft-04"));
                if !at.is_empty() && text("$id").is_some() {
                    return Err(inner_name("$id", &at));
                }
                if !at.is_empty() && text("id").is_some() {
                    id = Some(at.clone());
                }
                below.extend(pairs.iter().filter_map(|(key, value)| {
                    Some((pointer(&at, key), value, meaning.under(key)?))
                }));
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                below.extend(
                    items.map(|(index, item)| (pointer(&at, &index.to_string()), item, meaning)),
                );
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        indices.insert(at, value);
    }
    match id {
        Some(at) if is_draft_4 => Err(inner_name("id", &at)),
        _ => Ok(indices),
    }
}

fn inner_name(key: &str, pointer: &str) -> TooComplex {
    let message = format!("it has a `{key}` inside, and only its root may have one");
    not_followed(message, pointer)
}

fn not_followed(message: String, pointer: &str) -> TooComplex {
    TooComplex {
        limit: ComplexityLimit::Reference,
        ..TooComplex::new(message, pointer)
    }
}

struct GraphBuilder<'s> {
    known: HashMap<String, &'s Value>,
    /// The `$id` of the root.
    base: &'s str,
    indexes: HashMap<String, PartIndex>,
    pointers: Vec<String>,
}

impl GraphBuilder<'_> {
    fn index(&mut self, pointer: String) -> PartIndex {
        *self.indexes.entry(pointer).or_insert_with_key(|pointer| {
            self.pointers.push(pointer.clone());
            self.pointers.len() - 1
        })
    }

    fn part(&mut self, at: &str) -> Result<SchemaPart, TooComplex> {
        let Some(Value::Object(schema)) = self.known.get(at).copied() else {
            return Ok(SchemaPart::default());
        };
        let has = |key: &str| schema.contains_key(key);
        let mut part = SchemaPart {
            entries: entries(schema),
            has_unevaluated: has("unevaluatedProperties") || has("unevaluatedItems"),
            compared: match schema.get("enum") {
                Some(Value::Array(values)) => values.len() as u64,
                _ => u64::from(has("const") || has("uniqueItems")),
            },
            pattern: schema
                .get("pattern")
                .and_then(Value::as_str)
                .map(Pattern::new),
            ..SchemaPart::default()
        };
        for (key, value) in schema {
            let at = pointer(at, key);
            match key.as_str() {
                "$ref" => part.same.extend(self.reference(value, &at)?),
                "$dynamicRef" | "$recursiveRef" => {
                    let message = format!("`{key}` is not followed; `$ref` is");
                    return Err(not_followed(message, &at));
                }
                "allOf" | "then" | "else" => part.same.extend(self.list(value, &at)),
                "anyOf" | "oneOf" | "not" | "if" => part.tried.extend(self.list(value, &at)),
                "dependentSchemas" | "dependencies" => {
                    part.same
                        .extend(self.named(value, &at).into_iter().map(|(_, part)| part));
                }
                "properties" => part.properties = self.named(value, &at).into_iter().collect(),
                "patternProperties" => {
                    let named = self.named(value, &at).into_iter();
                    let named = named.map(|(pattern, part)| (Pattern::new(&pattern), part));
                    part.by_pattern = named.collect();
                }
                "additionalProperties" => part.other_properties = self.list(value, &at),
                "unevaluatedProperties" => part.all_properties = self.list(value, &at),
                "propertyNames" => part.property_names = self.list(value, &at),
                "items" | "prefixItems" if value.is_array() => {
                    part.first_items.extend(self.list(value, &at));
                }
                "items" | "additionalItems" | "contains" | "unevaluatedItems" => {
                    part.all_items.extend(self.list(value, &at));
                }
                _ => {}
            }
        }
        Ok(part)
    }

    /// The part that a `$ref` leads to. Only references within the schema that count from its root
    /// are followed: `#` and `#/…`.
    fn reference(&mut self, value: &Value, at: &str) -> Result<Option<PartIndex>, TooComplex> {
        let Some(reference) = value.as_str() else {
            return Ok(None);
        };
        let base = self.base.split('#').next().unwrap_or_default();
        let local = match reference.strip_prefix(base) {
            Some(local) if local.is_empty() || local.starts_with('#') => local,
            _ => reference,
        };
        let target = match local.strip_prefix('#') {
            Some(pointer) => percent_decode_str(pointer).decode_utf8().ok(),
            None => (local.is_empty() && !reference.is_empty()).then(Default::default),
        };
        match target.filter(|pointer| self.known.contains_key(pointer.as_ref())) {
            Some(pointer) => Ok(Some(self.index(pointer.into_owned()))),
            None => {
                let message = format!(
                    "the `$ref` to `{}` is not followed: it must be `#` or `#/…` and lead to a part of the schema",
                    one_line(reference)
                );
                Err(not_followed(message, at))
            }
        }
    }

    /// One part, or a list of parts.
    fn list(&mut self, value: &Value, at: &str) -> Vec<PartIndex> {
        match value {
            Value::Array(items) => {
                let items = 0..items.len();
                items
                    .map(|item| self.index(pointer(at, &item.to_string())))
                    .collect()
            }
            _ => vec![self.index(at.to_owned())],
        }
    }

    fn named(&mut self, value: &Value, at: &str) -> Vec<(String, PartIndex)> {
        let pairs = value.as_object().into_iter().flatten();
        let part = |(name, _): (&String, _)| (name.clone(), self.index(pointer(at, name)));
        pairs.map(part).collect()
    }
}

fn entries(schema: &Map<String, Value>) -> u64 {
    let keys = [
        "enum",
        "required",
        "properties",
        "type",
        "dependentRequired",
    ];
    let lengths = keys.iter().map(|&key| match schema.get(key) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(pairs)) => pairs.len(),
        _ => 0,
    });
    lengths.sum::<usize>() as u64
}
