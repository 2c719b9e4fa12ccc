//! A schema without the patterns that cannot be used, for a tool whose server checks its input
//! again. What the result refuses the whole schema refuses too; the result may accept more.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::keyword::{Meaning, patterns};
use super::pattern::{Pattern, is_supported};
use super::weight::STEPS_MAX;

/// Keywords that refuse more when a part inside them accepts more.
const NEGATING: [&str; 4] = ["not", "oneOf", "if", "contains"];
/// Keywords that refuse more when a part beside them is gone.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// `schema` without the patterns that are not supported.
pub fn without_unsupported_patterns(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let mut unsupported = HashSet::new();
    collect(&schema, &mut unsupported);
    if !unsupported.is_empty() {
        remove(&mut schema, Meaning::Part, &unsupported);
    }
    schema
}

/// Collects the patterns that are not supported. Stops where there is more to compile than a schema
/// may have: [`super::SchemaCost`] refuses that.
fn collect(schema: &Value, unsupported: &mut HashSet<String>) {
    let (mut seen, mut steps) = (HashSet::new(), 0_u64);
    let mut below = vec![(schema, Meaning::Part)];
    while let Some((value, meaning)) = below.pop() {
        match value {
            Value::Array(items) => below.extend(items.iter().map(|item| (item, meaning))),
            Value::Object(pairs) => {
                for text in patterns(pairs).filter(|_| meaning == Meaning::Part) {
                    if !seen.insert(text) {
                        continue;
                    }
                    // A pattern that cannot be parsed is short work, but not none.
                    steps = steps.saturating_add(Pattern::new(text).weight.max(text.len() as u64));
                    if steps > STEPS_MAX {
                        return;
                    }
                    if !is_supported(text) {
                        unsupported.insert(text.to_owned());
                    }
                }
                let pairs = pairs.iter();
                below.extend(pairs.filter_map(|(key, value)| Some((value, meaning.under(key)?))));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Removes patterns from a value; true if it may accept more than before.
fn remove(value: &mut Value, meaning: Meaning, unsupported: &HashSet<String>) -> bool {
    match (value, meaning) {
        (Value::Array(items), meaning) => {
            let items = items.iter_mut();
            items.fold(false, |more, item| {
                remove(item, meaning, unsupported) | more
            })
        }
        (Value::Object(part), Meaning::Part) => remove_from_part(part, unsupported),
        (Value::Object(parts), Meaning::PartsByName) => {
            let parts = parts.values_mut();
            parts.fold(false, |more, part| {
                remove(part, Meaning::Part, unsupported) | more
            })
        }
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => false,
    }
}

fn remove_from_part(part: &mut Map<String, Value>, unsupported: &HashSet<String>) -> bool {
    // The part that a reference leads to may accept more.
    let mut accepts_more = part.contains_key("$ref");
    let own = part.get("pattern").and_then(Value::as_str);
    if own.is_some_and(|own| unsupported.contains(own)) {
        part.remove("pattern");
        accepts_more = true;
    }
    if let Some(Value::Object(by_pattern)) = part.get_mut("patternProperties") {
        let before = by_pattern.len();
        by_pattern.retain(|pattern, _| !unsupported.contains(pattern));
        if by_pattern.len() < before {
            // Or it would apply to the properties of the removed patterns.
            part.remove("additionalProperties");
            accepts_more = true;
        }
    }
    for key in UNEVALUATED {
        accepts_more |= part.remove(key).is_some();
    }
    let mut negating = Vec::new();
    for (key, value) in part.iter_mut() {
        let Some(meaning) = Meaning::Part.under(key) else {
            continue;
        };
        if remove(value, meaning, unsupported) {
            accepts_more = true;
            negating.extend(NEGATING.into_iter().find(|negating| negating == key));
        }
    }
    for key in negating {
        let removed = part.remove(key);
        if let (Some(choices), "oneOf", false) = (removed, key, part.contains_key("anyOf")) {
            part.insert("anyOf".to_owned(), choices);
        }
    }
    accepts_more
}
