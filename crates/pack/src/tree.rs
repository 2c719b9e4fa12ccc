//! A YAML file as a tree with places, and the keys in it that its schema does not know.
//!
//! The parser stops at the first key that a shape does not have. This finds the others, so that
//! three misspelt fields of one file are told at once.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::place::{At, Place};

/// What a file holds, with the places of its keys.
#[derive(Debug)]
pub(crate) enum Tree {
    Map(Vec<(At<String>, Tree)>),
    List(Vec<Tree>),
    Leaf,
}

/// A key that does not belong where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stray<'a> {
    pub(crate) key: &'a str,
    pub(crate) place: Place,
    /// The keys that do.
    pub(crate) allowed: Vec<&'a str>,
}

impl Tree {
    /// The keys that a schema does not know.
    pub(crate) fn strays<'a>(&'a self, schema: &'a Value) -> Vec<Stray<'a>> {
        let mut found = Vec::new();
        self.walk(schema, schema, &mut found);
        found
    }

    fn walk<'a>(&'a self, schema: &'a Value, root: &'a Value, found: &mut Vec<Stray<'a>>) {
        let schema = self.branch(schema, root);
        match self {
            Self::Map(pairs) => {
                let properties = schema["properties"].as_object();
                for (key, below) in pairs {
                    let known = properties.and_then(|known| known.get(&key.value));
                    match (known, &schema["additionalProperties"]) {
                        (Some(known), _) => below.walk(known, root, found),
                        (None, Value::Bool(false)) => found.push(Stray {
                            key: &key.value,
                            place: key.place,
                            allowed: properties.map(allowed).unwrap_or_default(),
                        }),
                        (None, others) => below.walk(others, root, found),
                    }
                }
            }
            Self::List(items) => {
                for item in items {
                    item.walk(&schema["items"], root, found);
                }
            }
            Self::Leaf => {}
        }
    }

    /// The part of a schema that speaks about a value of this kind.
    fn branch<'a>(&self, schema: &'a Value, root: &'a Value) -> &'a Value {
        if let Some(name) = schema["$ref"].as_str() {
            let target = name.strip_prefix('#').and_then(|at| root.pointer(at));
            // A definition that is only a reference again is not made by the generator.
            return target.map_or(&Value::Null, |target| self.branch(target, root));
        }
        let Some(choices) = schema["anyOf"].as_array() else {
            return schema;
        };
        let wanted = match self {
            Self::Map(_) => "object",
            Self::List(_) => "array",
            Self::Leaf => return &Value::Null,
        };
        let mut choices = choices.iter().map(|choice| self.branch(choice, root));
        choices
            .find(|choice| choice["type"] == wanted)
            .unwrap_or(&Value::Null)
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
        Ok(Tree::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use crate::source::manifest::ManifestSource;
    use crate::source::tool::ToolsSource;

    fn strays(schema: &Value, text: &str) -> Vec<String> {
        let tree: Tree = serde_saphyr::from_str(text).expect("YAML");
        let strays = tree.strays(schema);
        let shown = strays
            .iter()
            .map(|stray| format!("{} {}:{}", stray.key, stray.place.line, stray.place.column));
        shown.collect()
    }

    #[test]
    fn strays_are_found_at_every_depth() {
        let manifest = schema::of::<ManifestSource>("pack.yaml");
        let text = "nam: a\nfan_out: {kap: 3}\nlimits:\n  calls: 1\nflags:\n  ai_assistant_a: {shre: 1}\n  ai_assistant_b: true\nmodels: {any: thing}\n";
        assert_eq!(
            strays(&manifest, text),
            ["nam 1:1", "kap 2:11", "calls 4:3", "shre 6:20"]
        );
        let tools = schema::of::<ToolsSource>("tools.yaml");
        let text = "tools:\n  - {name: a, input_schema: {any: thing}}\n  - {nme: b}\n";
        assert_eq!(strays(&tools, text), ["nme 3:6"]);
    }

    #[test]
    fn a_tree_of_another_shape_has_no_strays() {
        let manifest = schema::of::<ManifestSource>("pack.yaml");
        for text in [
            "- a\n- {b: c}\n",
            "text\n",
            "fan_out: [1, {a: b}]\nlimits: 3\n",
            "",
        ] {
            assert_eq!(strays(&manifest, text), [""; 0], "{text}");
        }
    }
}
