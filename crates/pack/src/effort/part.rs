//! The parts of a schema: which apply to the same value, which to what is in it. Keywords of all
//! drafts count, whatever draft a schema says it is.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Heavy;
use super::pattern::Pattern;
use super::reference::{Root, below};

/// Which part, among all.
pub(super) type Index = usize;

/// One part of a schema.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Things in its lists that are looked through for one value.
    pub(super) listed: u64,
    pub(super) pattern: Option<Pattern>,
    /// Values that one is compared with, whole.
    pub(super) alike: u64,
    /// What is left over is found by taking all that applies again.
    pub(super) again: bool,
    /// Applies to the same value.
    pub(super) here: Vec<Index>,
    /// Applies to the same value, and is taken once more to tell why it does not fit.
    pub(super) tried: Vec<Index>,
    pub(super) fields: HashMap<String, Index>,
    pub(super) by_pattern: Vec<(Pattern, Index)>,
    /// Of the fields that have no name here.
    pub(super) other_fields: Vec<Index>,
    pub(super) each_field: Vec<Index>,
    pub(super) field_names: Vec<Index>,
    /// Of the first items, one each.
    pub(super) first: Vec<Index>,
    pub(super) each_item: Vec<Index>,
}

impl Part {
    /// Those that apply to what is in a value.
    pub(super) fn into(&self) -> impl Iterator<Item = Index> {
        let by_pattern = self.by_pattern.iter().map(|(_, part)| part);
        let more = [
            &self.other_fields,
            &self.each_field,
            &self.field_names,
            &self.first,
            &self.each_item,
        ];
        let more = more.into_iter().flatten();
        self.fields.values().chain(by_pattern).chain(more).copied()
    }
}

/// Every part of `schema` that can be reached, the whole first, and where each stands.
pub(super) fn parts(schema: &Value) -> Result<(Vec<Part>, Vec<String>), Heavy> {
    let mut found = Found {
        root: Root::new(schema)?,
        known: HashMap::new(),
        all: Vec::new(),
        pointers: Vec::new(),
    };
    found.index(schema, String::new());
    let mut parts = Vec::new();
    while let Some(&part) = found.all.get(parts.len()) {
        parts.push(found.part(part, parts.len())?);
    }
    Ok((parts, found.pointers))
}

struct Found<'a> {
    root: Root<'a>,
    /// By where it is in memory: the schema does not move.
    known: HashMap<*const Value, Index>,
    all: Vec<&'a Value>,
    pointers: Vec<String>,
}

impl<'a> Found<'a> {
    fn index(&mut self, part: &'a Value, pointer: String) -> Index {
        *self.known.entry(part).or_insert_with(|| {
            self.all.push(part);
            self.pointers.push(pointer);
            self.all.len() - 1
        })
    }

    fn part(&mut self, part: &'a Value, at: Index) -> Result<Part, Heavy> {
        let Value::Object(schema) = part else {
            return Ok(Part::default());
        };
        let pointer = self.pointers[at].clone();
        let is_there = |key: &str| schema.contains_key(key);
        let mut part = Part {
            listed: listed(schema),
            again: is_there("unevaluatedProperties") || is_there("unevaluatedItems"),
            alike: match schema.get("enum") {
                Some(Value::Array(values)) => values.len() as u64,
                _ => u64::from(is_there("const") || is_there("uniqueItems")),
            },
            ..Part::default()
        };
        for (key, value) in schema {
            let at = below(&pointer, key);
            match key.as_str() {
                "$ref" => {
                    let Some(reference) = value.as_str() else {
                        continue;
                    };
                    let target = self.root.follow(reference);
                    let target = target.ok_or_else(|| self.root.lost(reference, &at))?;
                    part.here.push(self.index(target, at));
                }
                "$dynamicRef" | "$recursiveRef" => {
                    let what = format!("`{key}` is not followed; `$ref` is");
                    return Err(Heavy::new(what, &at));
                }
                "pattern" => part.pattern = value.as_str().map(Pattern::new),
                "allOf" | "then" | "else" => part.here.extend(self.listed(value, &at)),
                "anyOf" | "oneOf" | "not" | "if" => part.tried.extend(self.listed(value, &at)),
                "dependentSchemas" | "dependencies" => {
                    let named = self.named(value, &at);
                    part.here.extend(named.into_iter().map(|(_, part)| part));
                }
                "properties" => part.fields = self.named(value, &at).into_iter().collect(),
                "patternProperties" => {
                    let named = self.named(value, &at).into_iter();
                    let named = named.map(|(pattern, part)| (Pattern::new(&pattern), part));
                    part.by_pattern = named.collect();
                }
                "additionalProperties" => part.other_fields = self.listed(value, &at),
                "unevaluatedProperties" => part.each_field = self.listed(value, &at),
                "propertyNames" => part.field_names = self.listed(value, &at),
                "items" | "prefixItems" if value.is_array() => {
                    part.first.extend(self.listed(value, &at));
                }
                "items" | "additionalItems" | "contains" | "unevaluatedItems" => {
                    part.each_item.extend(self.listed(value, &at));
                }
                _ => {}
            }
        }
        Ok(part)
    }

    /// One part, or a list of them.
    fn listed(&mut self, value: &'a Value, pointer: &str) -> Vec<Index> {
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(at, item)| self.index(item, below(pointer, &at.to_string())))
                    .collect()
            }
            one => vec![self.index(one, pointer.to_owned())],
        }
    }

    fn named(&mut self, value: &'a Value, pointer: &str) -> Vec<(String, Index)> {
        let pairs = value.as_object().into_iter().flatten();
        pairs
            .map(|(name, part)| (name.clone(), self.index(part, below(pointer, name))))
            .collect()
    }
}

fn listed(schema: &Map<String, Value>) -> u64 {
    let lists = [
        "enum",
        "required",
        "properties",
        "type",
        "dependentRequired",
    ];
    let lengths = lists.iter().map(|&key| match schema.get(key) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(pairs)) => pairs.len(),
        _ => 0,
    });
    lengths.sum::<usize>() as u64
}
