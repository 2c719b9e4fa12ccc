//! Where a `$ref` leads. Only ways within the schema from its root are followed: `#` and `#/…`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::Heavy;
use super::keyword::Under;
use crate::wording::one_line;

/// A schema in which every reference that is followed counts from the root.
pub(super) struct Root<'a> {
    schema: &'a Value,
    id: &'a str,
    /// All of it that is no data, by where it is in memory: only that is looked at for names.
    parts: HashSet<*const Value>,
}

impl<'a> Root<'a> {
    /// Fails if a part of `schema` has a name that references could count from.
    pub(super) fn new(schema: &'a Value) -> Result<Self, Heavy> {
        let id = schema["$id"].as_str().unwrap_or_default();
        let id = id.split('#').next().unwrap_or_default();
        let old = has_old(schema);
        let mut parts = HashSet::from([std::ptr::from_ref(schema)]);
        let mut below = children(schema, Under::Part, "");
        while let Some((part, under, pointer)) = below.pop() {
            let name = ["$id", "id"].into_iter().find(|&key| {
                let counts = key == "$id" || old;
                counts && part.get(key).is_some_and(Value::is_string)
            });
            if let Some(name) = name {
                let what = format!("it has a `{name}` inside, and only its root may have one");
                return Err(Heavy::new(what, &pointer));
            }
            parts.insert(part);
            below.extend(children(part, under, &pointer));
        }
        Ok(Self { schema, id, parts })
    }

    /// What `reference` leads to.
    pub(super) fn follow(&self, reference: &str) -> Option<&'a Value> {
        let at = match reference.strip_prefix(self.id) {
            Some(rest) if rest.is_empty() || rest.starts_with('#') => rest,
            _ => reference,
        };
        let target = match at.strip_prefix('#') {
            Some(pointer) => self.schema.pointer(&decoded(pointer)?),
            None => (at.is_empty() && !reference.is_empty()).then_some(self.schema),
        };
        target.filter(|&target| self.parts.contains(&std::ptr::from_ref(target)))
    }

    pub(super) fn lost(&self, reference: &str, pointer: &str) -> Heavy {
        let what = format!(
            "the `$ref` to `{}` is not followed: it must be `#` or `#/…` and lead to a part of the schema",
            one_line(reference)
        );
        Heavy::new(what, pointer)
    }
}

/// Whether any part is written in draft 4, where a name is an `id`.
fn has_old(schema: &Value) -> bool {
    let mut below = vec![schema];
    while let Some(part) = below.pop() {
        match part {
            Value::Object(pairs) => {
                let named = pairs.get("$schema").and_then(Value::as_str);
                if named.is_some_and(|draft| draft.contains("draft-04")) {
                    return true;
                }
                below.extend(pairs.values());
            }
            Value::Array(items) => below.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// What stands in a part and is no data.
fn children<'a>(part: &'a Value, under: Under, pointer: &str) -> Vec<(&'a Value, Under, String)> {
    match part {
        Value::Object(pairs) => {
            let pairs = pairs.iter();
            pairs
                .filter_map(|(key, value)| Some((value, under.key(key)?, below(pointer, key))))
                .collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(at, value)| (value, under, below(pointer, &at.to_string())))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The pointer of what `key` of the part at `pointer` holds.
pub(super) fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// A pointer in an address without its percent signs.
fn decoded(pointer: &str) -> Option<Cow<'_, str>> {
    if !pointer.contains('%') {
        return Some(Cow::Borrowed(pointer));
    }
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let hex = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
