//! A schema without the patterns that cannot be used, for a tool whose server checks its input
//! again. What the result refuses the whole schema refuses too; the result may accept more.

use serde_json::{Map, Value};

use super::keyword::{Meaning, patterns};
use super::pattern::Patterns;

/// Keywords that refuse more when a part inside them accepts more.
const NEGATING: [&str; 4] = ["not", "oneOf", "if", "contains"];
/// Keywords that refuse more when a part beside them is gone.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// `schema` without the patterns that are not supported. Patterns after those that together are
/// larger than a schema may have stay: [`super::SchemaCost`] refuses them.
pub fn without_unsupported_patterns(schema: &Value) -> Value {
    let mut lenient = schema.clone();
    let mut remover = PatternRemover::default();
    remover.value(&mut lenient, Meaning::Part);
    match remover.removed {
        true => lenient,
        false => schema.clone(),
    }
}

#[derive(Default)]
struct PatternRemover {
    patterns: Patterns,
    /// True once a pattern was removed.
    removed: bool,
}

impl PatternRemover {
    fn is_unsupported(&mut self, pattern: &str) -> bool {
        let is_unsupported = self.patterns.measure(pattern).is_err() && !self.patterns.is_full();
        self.removed |= is_unsupported;
        is_unsupported
    }

    /// Removes patterns from a value; true if it may accept more than before.
    fn value(&mut self, value: &mut Value, meaning: Meaning) -> bool {
        match (value, meaning) {
            (Value::Object(part), Meaning::Part) => self.part(part),
            (Value::Object(parts), Meaning::PartsByName) => {
                let parts = parts.values_mut();
                parts.fold(false, |more, part| self.value(part, Meaning::Part) | more)
            }
            (Value::Array(items), meaning) => {
                let items = items.iter_mut();
                items.fold(false, |more, item| self.value(item, meaning) | more)
            }
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => false,
        }
    }

    fn part(&mut self, part: &mut Map<String, Value>) -> bool {
        let texts = patterns(part, "").map(|(text, at)| (text.to_owned(), at));
        let mut unsupported: Vec<(String, String)> = texts.collect();
        unsupported.retain(|(text, _)| self.is_unsupported(text));
        // The part that a reference leads to may accept more.
        let mut accepts_more = part.contains_key("$ref") || !unsupported.is_empty();
        for (text, at) in unsupported {
            if at == "/pattern" {
                part.remove("pattern");
            } else if let Some(Value::Object(by_pattern)) = part.get_mut("patternProperties") {
                by_pattern.remove(&text);
                // Or it would apply to the properties of the removed pattern.
                part.remove("additionalProperties");
            }
        }
        for key in UNEVALUATED {
            accepts_more |= part.remove(key).is_some();
        }
        let mut negating = Vec::new();
        for (key, value) in part.iter_mut() {
            let meaning = Meaning::Part.under(key);
            if meaning.is_some_and(|meaning| self.value(value, meaning)) {
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
}
