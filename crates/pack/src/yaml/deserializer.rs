//! Types out of [`YamlNode`]s. A scalar becomes what the type asks for where its text can be read
//! so: `7` is text where text is wanted, and `"7"` is a number where a number is.

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};

use super::error::YamlError;
use super::node::YamlNode;
use super::position::{LOCATED, Located, TextPosition};

/// Reads a type from a node.
#[derive(Clone, Copy)]
pub(super) struct NodeDeserializer<'de>(pub(super) &'de Located<YamlNode>);

impl<'de> NodeDeserializer<'de> {
    /// The text of a scalar.
    fn text(self) -> Option<&'de str> {
        match &self.0.value {
            YamlNode::Text(text)
            | YamlNode::Number(_, text)
            | YamlNode::Bool(_, text)
            | YamlNode::NonFinite(text) => Some(text),
            YamlNode::Map(_) | YamlNode::List(_) | YamlNode::Null => None,
        }
    }

    fn at<T>(self, result: Result<T, YamlError>) -> Result<T, YamlError> {
        result.map_err(|error| error.or_at(self.0.position))
    }

    /// The node as it is written.
    fn plain<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.0.value {
            YamlNode::Map(pairs) => visitor.visit_map(Pairs(pairs.iter(), None)),
            YamlNode::List(items) => visitor.visit_seq(Items(items.iter())),
            YamlNode::Text(text) => visitor.visit_borrowed_str(text),
            YamlNode::Bool(value, _) => visitor.visit_bool(*value),
            YamlNode::NonFinite(_) => {
                Err(YamlError::invalid_type(Unexpected::Other(""), &"number"))
            }
            YamlNode::Null => visitor.visit_unit(),
            YamlNode::Number(number, _) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
        }
    }

    fn mismatch<V: Visitor<'de>>(self, visitor: &V) -> YamlError {
        YamlError::invalid_type(Unexpected::Other("another kind of value"), visitor)
    }
}

/// Methods that read a scalar which may be quoted: as it is, or from its text.
macro_rules! quoted {
    ($($method:ident, $parsed:ty, $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
            let parsed = match &self.0.value {
                YamlNode::Text(text) => serde_saphyr::from_str::<$parsed>(text).ok(),
                _ => None,
            };
            self.at(match parsed {
                Some(value) => visitor.$visit(value),
                None => self.plain(visitor),
            })
        }
    )*};
}

impl<'de> Deserializer<'de> for NodeDeserializer<'de> {
    type Error = YamlError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.at(self.plain(visitor))
    }

    quoted! {
        deserialize_bool, bool, visit_bool;
        deserialize_u8, u64, visit_u64;
        deserialize_u16, u64, visit_u64;
        deserialize_u32, u64, visit_u64;
        deserialize_u64, u64, visit_u64;
        deserialize_i8, i64, visit_i64;
        deserialize_i16, i64, visit_i64;
        deserialize_i32, i64, visit_i64;
        deserialize_i64, i64, visit_i64;
        deserialize_f32, f64, visit_f64;
        deserialize_f64, f64, visit_f64;
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.at(match (self.text(), &self.0.value) {
            (Some(text), _) => visitor.visit_borrowed_str(text),
            (None, YamlNode::List(_)) => self.plain(visitor),
            (None, _) => Err(self.mismatch(&visitor)),
        })
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match &self.0.value {
            YamlNode::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        match name {
            LOCATED => visitor.visit_seq(LocatedParts::new(self, self.0.position)),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    /// A list; nothing is an empty one.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.at(match &self.0.value {
            YamlNode::Null => visitor.visit_seq(Items([].iter())),
            YamlNode::List(_) | YamlNode::Map(_) => self.plain(visitor),
            _ => Err(self.mismatch(&visitor)),
        })
    }

    /// A map; nothing is an empty one.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.at(match &self.0.value {
            YamlNode::Null => visitor.visit_map(Pairs([].iter(), None)),
            YamlNode::List(_) | YamlNode::Map(_) => self.plain(visitor),
            _ => Err(self.mismatch(&visitor)),
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        // A derived struct can also be read from a list, which no file means.
        match &self.0.value {
            YamlNode::List(_) => self.at(Err(self.mismatch(&visitor))),
            _ => self.deserialize_map(visitor),
        }
    }

    /// A variant without content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.at(match self.text() {
            Some(text) => visitor.visit_enum(text.into_deserializer()),
            None => Err(self.mismatch(&visitor)),
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct Items<'de>(std::slice::Iter<'de, Located<YamlNode>>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = YamlError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, YamlError> {
        let item = self.0.next();
        item.map(|item| seed.deserialize(NodeDeserializer(item)))
            .transpose()
    }
}

/// The pairs of a map, and the value of the key that was read last.
struct Pairs<'de>(
    std::slice::Iter<'de, (Located<String>, Located<YamlNode>)>,
    Option<&'de Located<YamlNode>>,
);

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = YamlError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, YamlError> {
        let Some((key, value)) = self.0.next() else {
            return Ok(None);
        };
        self.1 = Some(value);
        seed.deserialize(KeyDeserializer(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, YamlError> {
        let value = self.1.take();
        let value = value.ok_or_else(|| YamlError::custom("a value was read before its key"))?;
        seed.deserialize(NodeDeserializer(value))
    }
}

/// Reads a key of a map, also as a [`Located`].
#[derive(Clone, Copy)]
struct KeyDeserializer<'de>(&'de Located<String>);

impl<'de> Deserializer<'de> for KeyDeserializer<'de> {
    type Error = YamlError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let key = visitor.visit_borrowed_str(&self.0.value);
        key.map_err(|error: YamlError| error.or_at(self.0.position))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        match name {
            LOCATED => visitor.visit_seq(LocatedParts::new(self, self.0.position)),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// What a [`Located`] is read from: the value, its line, its column.
struct LocatedParts<D> {
    value: Option<D>,
    position: std::array::IntoIter<u64, 2>,
}

impl<D> LocatedParts<D> {
    fn new(value: D, position: TextPosition) -> Self {
        Self {
            value: Some(value),
            position: [position.line, position.column].into_iter(),
        }
    }
}

impl<'de, D: Deserializer<'de, Error = YamlError>> SeqAccess<'de> for LocatedParts<D> {
    type Error = YamlError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, YamlError> {
        match (self.value.take(), self.position.as_slice()) {
            (Some(value), _) => seed.deserialize(value).map(Some),
            (None, []) => Ok(None),
            (None, [_, ..]) => {
                let number = self.position.next().unwrap_or_default();
                seed.deserialize(number.into_deserializer()).map(Some)
            }
        }
    }
}
