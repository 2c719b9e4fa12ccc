//! A YAML document as a tree, every key and value with its position.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Number;
use serde_saphyr::Location;
use serde_saphyr::options::NonFiniteFloatPolicy;

use super::error::YamlError;
use super::position::{Located, TextPosition};

/// A value of a YAML document.
#[derive(Clone, Debug, PartialEq)]
pub enum YamlNode {
    /// Pairs in the order they are written; keys are unique.
    Map(Vec<(Located<String>, Located<YamlNode>)>),
    List(Vec<Located<YamlNode>>),
    /// Text, quoted or plain.
    Text(String),
    /// A number, and the text that it is written as.
    Number(Number, String),
    /// A truth value, and the text that it is written as.
    Bool(bool, String),
    /// `.nan` or `.inf`, which only a type that wants text accepts.
    NonFinite(String),
    /// Nothing: `~`, `null`, or an empty value.
    Null,
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        (&self.value, self.position) == (&other.value, other.position)
    }
}

/// Parses one YAML document.
///
/// # Errors
/// Fails at the first position that is not YAML.
pub fn parse(text: &str) -> Result<Located<YamlNode>, YamlError> {
    // `.nan` is a valid text; whether it is refused depends on the type that is read.
    let options = serde_saphyr::options! {
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        NodeSeed { source: text }.deserialize(yaml)
    })
    .map_err(|error| YamlError::syntax(text, &error))
}

/// The newtype name by which `serde_saphyr` gives a value with its two locations. Its own
/// `Spanned` is not used because it is compiled again for every type. Tests of positions fail if
/// the parser stops knowing the name.
const SPANNED: &str = "__yaml_spanned";

/// Reads a node; `source` is the document.
#[derive(Clone, Copy)]
struct NodeSeed<'t> {
    source: &'t str,
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Located<YamlNode>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let spanned = SpannedVisitor(ValueSeed(self));
        let (mut value, used, defined) =
            deserializer.deserialize_newtype_struct(SPANNED, spanned)?;
        if let YamlNode::Number(_, text) | YamlNode::Bool(_, text) | YamlNode::NonFinite(text) =
            &mut value
        {
            let span = defined.span();
            let bytes = span.byte_offset().zip(span.byte_len());
            let written = bytes.and_then(|(start, len)| {
                let start = usize::try_from(start).ok()?;
                self.source.get(start..start + usize::try_from(len).ok()?)
            });
            if let Some(written) = written {
                *text = written.to_owned();
            }
        }
        Ok(Located {
            value,
            position: TextPosition::from(used),
        })
    }
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Located<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let spanned = SpannedVisitor(std::marker::PhantomData::<String>);
        let (value, used, _) = deserializer.deserialize_newtype_struct(SPANNED, spanned)?;
        Ok(Located {
            value,
            position: TextPosition::from(used),
        })
    }
}

/// Reads a value with the location where it is used and the one where it is defined.
struct SpannedVisitor<S>(S);

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for SpannedVisitor<S> {
    type Value = (S::Value, Location, Location);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its location")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let (mut seed, mut value, mut used, mut defined) = (Some(self.0), None, None, None);
        while let Some(part) = parts.next_key::<String>()? {
            match (part.as_str(), seed.take()) {
                ("value", Some(seed)) => value = Some(parts.next_value_seed(seed)?),
                (other, unused) => {
                    seed = unused;
                    match other {
                        "referenced" => used = Some(parts.next_value::<Location>()?),
                        "defined" => defined = Some(parts.next_value::<Location>()?),
                        _ => drop(parts.next_value::<IgnoredAny>()?),
                    }
                }
            }
        }
        let missing = || A::Error::custom("the YAML parser gave no location");
        Ok((
            value.ok_or_else(missing)?,
            used.ok_or_else(missing)?,
            defined.ok_or_else(missing)?,
        ))
    }
}

/// Reads a node without its position.
struct ValueSeed<'t>(NodeSeed<'t>);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = YamlNode;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key_seed(KeySeed)? {
            pairs.push((key, map.next_value_seed(self.0)?));
        }
        Ok(YamlNode::Map(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.0)? {
            items.push(item);
        }
        Ok(YamlNode::List(items))
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Bool(value, value.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Number(number.into(), number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Number(number.into(), number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<YamlNode, E> {
        let number_text = number.to_string();
        Ok(match Number::from_f64(number) {
            Some(number) => YamlNode::Number(number, number_text),
            None => YamlNode::NonFinite(number_text),
        })
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Null)
    }
}

impl YamlNode {
    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&(Located<String>, Located<Self>)> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(name, _)| name.value == key),
            Self::List(_)
            | Self::Text(_)
            | Self::Number(..)
            | Self::Bool(..)
            | Self::NonFinite(_)
            | Self::Null => None,
        }
    }
}

impl Located<YamlNode> {
    /// The position of an entry of a map or a list.
    pub(crate) fn nth(&self, index: usize) -> Option<TextPosition> {
        match &self.value {
            YamlNode::Map(pairs) => Some(pairs.get(index)?.0.position),
            YamlNode::List(items) => Some(items.get(index)?.position),
            _ => None,
        }
    }

    /// The node that a step of a JSON pointer leads to: a key of a map or an index of a list.
    pub(crate) fn step(&self, step: &str) -> Option<&Self> {
        match &self.value {
            YamlNode::List(items) => items.get(step.parse::<usize>().ok()?),
            map => map.get(step).map(|(_, value)| value),
        }
    }
}
