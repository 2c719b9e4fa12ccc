//! A YAML file as a tree with places, and what in it does not fit its schema: keys that the schema
//! does not know, and values of the wrong kind.
//!
//! The parser stops at the first mistake of a shape. This finds the others, so that three misspelt
//! fields and two numbers that are none are told at once.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::place::{At, Place};

/// What a file holds, with places.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Map(Vec<(At<String>, At<Tree>)>),
    List(Vec<At<Tree>>),
    Text(String),
    /// A whole number, 0 or more.
    Whole,
    /// Any other number.
    Number,
    Truth,
    Null,
}

/// What does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misfit<'a> {
    /// A key that does not belong where it stands.
    Stray {
        key: &'a str,
        place: Place,
        /// The keys that do.
        allowed: Vec<&'a str>,
    },
    /// A value of the wrong kind.
    Kind {
        place: Place,
        /// The kinds that fit, in the words of JSON Schema, and the bounds of a number.
        wanted: Vec<&'a str>,
        bounds: Option<(u64, u64)>,
    },
}

impl At<Tree> {
    /// What does not fit a schema.
    pub(crate) fn misfits<'a>(&'a self, schema: &'a Value) -> Vec<Misfit<'a>> {
        let mut found = Vec::new();
        self.walk(schema, schema, &mut found);
        found
    }

    fn walk<'a>(&'a self, schema: &'a Value, root: &'a Value, found: &mut Vec<Misfit<'a>>) {
        let mut wanted = Vec::new();
        kinds(schema, root, &mut wanted);
        if !self.value.fits(&wanted) {
            wanted.retain(|kind| *kind != "null");
            found.push(Misfit::Kind {
                place: self.place,
                bounds: schema["minimum"].as_u64().zip(schema["maximum"].as_u64()),
                wanted,
            });
            return;
        }
        let schema = self.value.branch(schema, root);
        match &self.value {
            Tree::Map(pairs) => {
                let properties = schema["properties"].as_object();
                for (key, below) in pairs {
                    let known = properties.and_then(|known| known.get(&key.value));
                    match (known, &schema["additionalProperties"]) {
                        (Some(known), _) => below.walk(known, root, found),
                        (None, Value::Bool(false)) => found.push(Misfit::Stray {
                            key: &key.value,
                            place: key.place,
                            allowed: properties.map(allowed).unwrap_or_default(),
                        }),
                        (None, others) => below.walk(others, root, found),
                    }
                }
            }
            Tree::List(items) => {
                for item in items {
                    item.walk(&schema["items"], root, found);
                }
            }
            Tree::Text(_) | Tree::Whole | Tree::Number | Tree::Truth | Tree::Null => {}
        }
    }
}

impl Tree {
    /// Whether a value of one of these kinds can be made of it, as the parser does: a number is
    /// text too where text is wanted. No kinds are any kind.
    fn fits(&self, wanted: &[&str]) -> bool {
        let has = |kind: &str| wanted.contains(&kind);
        // Where text is one of two ways to write something, only text is taken for it.
        let is_either = has("object") && (has("string") || has("boolean"));
        wanted.is_empty()
            || match self {
                Self::Map(_) => has("object"),
                Self::List(_) => has("array"),
                Self::Text(text) => {
                    has("string")
                        || has("integer") && text.parse::<u64>().is_ok()
                        || has("number") && text.parse::<f64>().is_ok()
                }
                Self::Whole => has("integer") || has("number") || has("string") && !is_either,
                Self::Number => has("number") || has("string") && !is_either,
                Self::Truth => has("boolean") || has("string") && !is_either,
                // What is left empty is left out.
                Self::Null => true,
            }
    }

    /// The part of a schema that speaks about a value of this kind.
    fn branch<'a>(&self, schema: &'a Value, root: &'a Value) -> &'a Value {
        if let Some(target) = referred(schema, root) {
            // A definition that is only a reference again is not made by the generator.
            return self.branch(target, root);
        }
        let Some(choices) = schema["anyOf"].as_array() else {
            return schema;
        };
        let wanted = match self {
            Self::Map(_) => "object",
            Self::List(_) => "array",
            Self::Text(_) | Self::Whole | Self::Number | Self::Truth | Self::Null => {
                return &Value::Null;
            }
        };
        let mut choices = choices.iter().map(|choice| self.branch(choice, root));
        choices
            .find(|choice| choice["type"] == wanted)
            .unwrap_or(&Value::Null)
    }
}

fn referred<'a>(schema: &Value, root: &'a Value) -> Option<&'a Value> {
    let name = schema["$ref"].as_str()?;
    Some(
        name.strip_prefix('#')
            .and_then(|at| root.pointer(at))
            .unwrap_or(&Value::Null),
    )
}

/// The kinds of value that a schema takes; none if it does not say.
fn kinds<'a>(schema: &'a Value, root: &'a Value, found: &mut Vec<&'a str>) {
    if let Some(target) = referred(schema, root) {
        return kinds(target, root, found);
    }
    for choices in [&schema["anyOf"], &schema["oneOf"]] {
        for choice in choices.as_array().into_iter().flatten() {
            kinds(choice, root, found);
        }
    }
    let listed = schema["type"].as_array().into_iter().flatten();
    let one = std::iter::once(&schema["type"]);
    for kind in listed.chain(one).filter_map(Value::as_str) {
        if !found.contains(&kind) {
            found.push(kind);
        }
    }
}

/// The keys that may be written: those that are known only to be refused are left out.
fn allowed(properties: &Map<String, Value>) -> Vec<&str> {
    let allowed = properties
        .iter()
        .filter(|(_, schema)| schema["not"].is_null());
    allowed.map(|(key, _)| key.as_str()).collect()
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Tree::Map(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Truth)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(if number < 0 {
            Tree::Number
        } else {
            Tree::Whole
        })
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Whole)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use crate::source::manifest::ManifestSource;
    use crate::source::tool::ToolsSource;

    fn misfits(schema: &Value, text: &str) -> Vec<String> {
        let tree: At<Tree> = serde_saphyr::from_str(text).expect("YAML");
        let shown = tree.misfits(schema).into_iter().map(|misfit| match misfit {
            Misfit::Stray { key, place, .. } => format!("{key} {}:{}", place.line, place.column),
            Misfit::Kind { place, wanted, .. } => {
                format!("{} {}:{}", wanted.join("|"), place.line, place.column)
            }
        });
        shown.collect()
    }

    #[test]
    fn strays_are_found_at_every_depth() {
        let manifest = schema::of::<ManifestSource>();
        let text = "nam: a\nfan_out: {kap: 3}\nlimits:\n  calls: 1\nflags:\n  ai_assistant_a: {shre: 1}\n  ai_assistant_b: true\nmodels: {any: thing}\n";
        assert_eq!(
            misfits(&manifest, text),
            ["nam 1:1", "kap 2:11", "calls 4:3", "shre 6:20"]
        );
        let tools = schema::of::<ToolsSource>();
        let text = "tools:\n  - {name: a, input_schema: {any: thing}}\n  - {nme: b}\n";
        assert_eq!(misfits(&tools, text), ["nme 3:6"]);
    }

    #[test]
    fn values_of_the_wrong_kind_are_found_at_every_depth() {
        let manifest = schema::of::<ManifestSource>();
        let cases: [(&str, &[&str]); 6] = [
            ("- a\n- {b: c}\n", &["object 1:1"]),
            ("text\n", &["object 1:1"]),
            (
                "fan_out: [1, {a: b}]\nlimits: 3\n",
                &["object 1:10", "object 2:9"],
            ),
            ("name: 7\nversion: 1.0\nfan_out:\n", &[]),
            (
                "name: [a]\nfan_out: {cap: x}\nflags: {ai_assistant_a: 7, ai_assistant_b: {share: y}}\n",
                &[
                    "string 1:7",
                    "integer 2:16",
                    "boolean|object 3:25",
                    "number 3:52",
                ],
            ),
            (
                "limits: {calls_max: -1, watchdog_ms: 1.5, status_window_ms: true}\n",
                &["integer 1:21", "integer 1:38", "integer 1:61"],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(misfits(&manifest, text), expected, "{text}");
        }
    }
}
