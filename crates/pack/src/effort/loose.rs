//! A schema without the patterns that are not tried here, for a tool whose server checks its input
//! itself. What it refuses the whole schema refuses too; it may take more.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::keyword::{Under, patterns};
use super::weigh::PARTS_MAX;
use super::{Steps, engine, pattern};

/// These refuse more where a part inside them takes more.
const TURNED: [&str; 4] = ["not", "oneOf", "if", "contains"];
/// These refuse more where a part beside them takes less into account.
const LEFT_OVER: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// `schema` without the patterns that cannot be used.
pub fn loose(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let mut left_out = HashSet::new();
    faulty(&schema, &mut left_out);
    if !left_out.is_empty() {
        Loose { left_out }.value(&mut schema, Under::Part);
    }
    schema
}

/// Puts the patterns that cannot be used into `found`. Ends where there is more to compile than a
/// schema may have: that is refused whole.
fn faulty(schema: &Value, found: &mut HashSet<String>) {
    let (mut seen, mut left) = (HashSet::new(), Steps(PARTS_MAX));
    let mut below = vec![(schema, Under::Part)];
    while let Some((value, under)) = below.pop() {
        match value {
            Value::Array(items) => below.extend(items.iter().map(|item| (item, under))),
            Value::Object(pairs) => {
                let own = patterns(pairs).filter(|_| under == Under::Part);
                for text in own {
                    if !seen.insert(text) {
                        continue;
                    }
                    if left.spend(pattern::work(text)).is_err() {
                        return;
                    }
                    if engine::bytes(text).is_none() {
                        found.insert(text.to_owned());
                    }
                }
                let inside = pairs.iter();
                below.extend(inside.filter_map(|(key, value)| Some((value, under.key(key)?))));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

struct Loose {
    left_out: HashSet<String>,
}

impl Loose {
    /// Whether `value` may now take more than it did.
    fn value(&self, value: &mut Value, under: Under) -> bool {
        match value {
            Value::Array(items) => {
                let items = items.iter_mut();
                items.fold(false, |more, item| self.value(item, under) | more)
            }
            Value::Object(pairs) => match under {
                Under::Part => self.part(pairs),
                Under::Names => {
                    let values = pairs.values_mut();
                    values.fold(false, |more, value| self.value(value, Under::Part) | more)
                }
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn part(&self, part: &mut Map<String, Value>) -> bool {
        // Where a reference leads there may be less than there was.
        let mut more = part.contains_key("$ref");
        let own = part.get("pattern").and_then(Value::as_str);
        if own.is_some_and(|own| self.left_out.contains(own)) {
            part.remove("pattern");
            more = true;
        }
        if let Some(Value::Object(by_pattern)) = part.get_mut("patternProperties") {
            let all = by_pattern.len();
            by_pattern.retain(|pattern, _| !self.left_out.contains(pattern));
            if by_pattern.len() < all {
                // Or it would be for the fields of those that are gone.
                part.remove("additionalProperties");
                more = true;
            }
        }
        for key in LEFT_OVER {
            more |= part.remove(key).is_some();
        }
        let mut turned = Vec::new();
        for (key, value) in part.iter_mut() {
            let Some(under) = Under::Part.key(key) else {
                continue;
            };
            if self.value(value, under) {
                more = true;
                turned.extend(TURNED.into_iter().find(|turned| turned == key));
            }
        }
        for key in turned {
            let gone = part.remove(key);
            if let (Some(some), "oneOf", false) = (gone, key, part.contains_key("anyOf")) {
                part.insert("anyOf".to_owned(), some);
            }
        }
        more
    }
}
