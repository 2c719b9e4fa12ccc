//! Where a `$ref` leads. Only ways within the schema from its root are followed: `#` and `#/…`.

use std::borrow::Cow;

use serde_json::Value;

use super::Heavy;
use crate::finding::shown;

/// A schema in which every reference that is followed counts from the root.
#[derive(Clone, Copy)]
pub(super) struct Root<'a> {
    schema: &'a Value,
    id: &'a str,
}

impl<'a> Root<'a> {
    pub(super) fn new(schema: &'a Value) -> Self {
        let id = schema["$id"].as_str().unwrap_or_default();
        let id = id.split('#').next().unwrap_or_default();
        Self { schema, id }
    }

    /// Fails if a part of the schema has a name that references could count from.
    pub(super) fn is_one(&self) -> Result<(), Heavy> {
        let old = has_old(self.schema);
        let mut below: Vec<(&Value, String)> = children(self.schema, "").collect();
        while let Some((part, pointer)) = below.pop() {
            let name = ["$id", "id"].into_iter().find(|&key| {
                let counts = key == "$id" || old;
                counts && part.get(key).is_some_and(Value::is_string)
            });
            if let Some(name) = name {
                let what = format!("it has a `{name}` inside, and only its root may have one");
                return Err(Heavy::new(what, &pointer));
            }
            below.extend(children(part, &pointer));
        }
        Ok(())
    }

    /// What `reference` leads to.
    pub(super) fn follow(&self, reference: &str) -> Option<&'a Value> {
        let at = match reference.strip_prefix(self.id) {
            Some(rest) if rest.is_empty() || rest.starts_with('#') => rest,
            _ => reference,
        };
        match at.strip_prefix('#') {
            Some(pointer) => self.schema.pointer(&decoded(pointer)?),
            None => (at.is_empty() && !reference.is_empty()).then_some(self.schema),
        }
    }

    pub(super) fn lost(&self, reference: &str, pointer: &str) -> Heavy {
        let what = format!(
            "the `$ref` to `{}` is not followed: it must be `#` or `#/…` and lead to a part of the schema",
            shown(reference)
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

fn children<'a>(part: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a Value, String)> {
    let pairs = part.as_object().into_iter().flatten();
    let pairs = pairs.map(|(key, value)| (value, below(pointer, key)));
    let items = part.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(at, value)| (value, below(pointer, &at.to_string())));
    pairs.chain(items).collect::<Vec<_>>().into_iter()
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
