//! A YAML node as the JSON that a schema is applied to, and the part of a schema that describes
//! a node.

use serde_json::{Map, Number, Value};

use crate::yaml::{Located, YamlNode};

/// A part of a schema, with the whole schema that its references lead into.
#[derive(Clone, Copy)]
pub(super) struct SubSchema<'s> {
    pub(super) part: &'s Value,
    root: &'s Value,
}

impl<'s> SubSchema<'s> {
    pub(super) fn root(root: &'s Value) -> Self {
        Self { part: root, root }
    }

    fn with(self, part: &'s Value) -> Self {
        Self { part, ..self }
    }

    /// The part that a `$ref` leads to, and the choices of `anyOf` and `oneOf`.
    fn below(self) -> impl Iterator<Item = Self> {
        let target = self.part["$ref"].as_str().and_then(|name| {
            let pointer = name.strip_prefix('#')?;
            self.root.pointer(pointer)
        });
        let lists = [&self.part["anyOf"], &self.part["oneOf"]];
        let choices = lists.into_iter().filter_map(Value::as_array).flatten();
        target
            .into_iter()
            .chain(choices)
            .map(move |part| self.with(part))
    }

    /// The kinds of value that the part accepts, in the words of JSON Schema; empty for any.
    pub(super) fn kinds(self) -> Vec<&'s str> {
        let mut kinds = Vec::new();
        let list = self.part["type"].as_array().into_iter().flatten();
        let own = list.chain([&self.part["type"]]).filter_map(Value::as_str);
        for kind in own.chain(self.below().flat_map(Self::kinds)) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The words that the part accepts: its `const` and `enum` values.
    pub(super) fn choices(self) -> Vec<&'s str> {
        let list = self.part["enum"].as_array().into_iter().flatten();
        let own = list.chain([&self.part["const"]]).filter_map(Value::as_str);
        own.chain(self.below().flat_map(Self::choices)).collect()
    }

    /// The part that describes values of the kind of `node`.
    pub(super) fn of(self, node: &YamlNode) -> Self {
        let kind = match node {
            YamlNode::Map(_) => "object",
            YamlNode::List(_) => "array",
            _ => return self,
        };
        let is_own = self.part["type"] == kind;
        let mut below = self.below().filter(|_| !is_own).map(|part| part.of(node));
        below.find(|part| part.part["type"] == kind).unwrap_or(self)
    }

    /// The part that describes what is under a key or an index of `node`.
    pub(super) fn step(self, node: &YamlNode, step: &str) -> Self {
        let part = self.of(node).part;
        self.with(match node {
            YamlNode::List(_) => &part["items"],
            _ => match part["properties"].get(step) {
                Some(property) => property,
                None => &part["additionalProperties"],
            },
        })
    }

    /// The JSON of a node. A scalar becomes the kind that the schema wants where its text can be
    /// read so, as when a type is read from the node. A property without a value is left out.
    pub(super) fn instance(self, node: &Located<YamlNode>) -> Value {
        let kinds = self.kinds();
        let wants = |kind: &str| kinds.contains(&kind);
        // Where text is one of two ways to write something, only text is taken for it.
        let is_either = wants("object") && (wants("string") || wants("boolean"));
        let as_text = wants("string") && !is_either;
        match &node.value {
            YamlNode::Map(pairs) => Value::Object(self.object(&node.value, pairs)),
            YamlNode::List(items) => {
                let below = self.step(&node.value, "");
                items.iter().map(|item| below.instance(item)).collect()
            }
            YamlNode::Text(text) if wants("string") || is_either || kinds.is_empty() => {
                text.as_str().into()
            }
            YamlNode::Text(text) => scalar(text, &kinds).unwrap_or_else(|| text.as_str().into()),
            YamlNode::Number(number, text) => match number {
                _ if as_text => text.as_str().into(),
                // To JSON Schema 1.0 is an integer; to the types it is not.
                number if wants("integer") && !number.is_u64() => text.as_str().into(),
                // A hexadecimal number is an integer and no floating-point number.
                _ if wants("number") && serde_saphyr::from_str::<f64>(text).is_err() => {
                    text.as_str().into()
                }
                number => number.clone().into(),
            },
            YamlNode::NonFinite(text) => text.as_str().into(),
            YamlNode::Bool(_, text) if as_text => text.as_str().into(),
            YamlNode::Bool(value, _) => (*value).into(),
            YamlNode::Null if wants("object") && !is_either => Map::new().into(),
            YamlNode::Null if wants("array") && !wants("string") => Vec::<Value>::new().into(),
            YamlNode::Null => Value::Null,
        }
    }

    fn object(
        self,
        node: &YamlNode,
        pairs: &[(Located<String>, Located<YamlNode>)],
    ) -> Map<String, Value> {
        let properties = &self.of(node).part["properties"];
        let mut object = Map::new();
        for (key, value) in pairs {
            let is_property = properties.get(&key.value).is_some();
            if value.value != YamlNode::Null || !is_property {
                let below = self.step(node, &key.value);
                object.insert(key.value.clone(), below.instance(value));
            }
        }
        object
    }
}

/// Quoted text as one of the kinds that are wanted.
fn scalar(text: &str, kinds: &[&str]) -> Option<Value> {
    let integer = || serde_saphyr::from_str::<u64>(text).ok().map(Value::from);
    let number = || {
        serde_saphyr::from_str::<f64>(text)
            .ok()
            .and_then(Number::from_f64)
    };
    let boolean = || serde_saphyr::from_str::<bool>(text).ok().map(Value::from);
    kinds.iter().find_map(|kind| match *kind {
        "integer" => integer(),
        "number" => number().map(Value::from),
        "boolean" => boolean(),
        _ => None,
    })
}
