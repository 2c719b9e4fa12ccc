//! Shapes that several files use: a map whose keys have positions, a value with a short form, and one
//! text or a list of texts. Values are read without buffering, which would lose their positions.

#[cfg(feature = "schema")]
use std::borrow::Cow;
#[cfg(feature = "schema")]
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::yaml::Located;

/// The form of ids and names (S2-006).
pub(crate) const ID_PATTERN: &str = "^[a-z][a-z0-9_]{0,47}$";
pub(crate) const ID_RULE: &str =
    "a to z, 0 to 9 and _, beginning with a letter, at most 48 characters";

/// The schema of the keys of a map from ids.
#[cfg(feature = "schema")]
pub(crate) fn id_names() -> serde_json::Value {
    serde_json::json!({ "pattern": ID_PATTERN })
}

/// A map in the order it is written. Keys are unique: the parser refuses others.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<V>(pub(crate) Vec<(Located<String>, V)>);

impl<V> Default for Pairs<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for InOrder<V> {
            type Value = Pairs<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`key: value` pairs")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Pairs::default())
            }
        }

        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl<V: JsonSchema> JsonSchema for Pairs<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        BTreeMap::<String, V>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, V>::json_schema(generator)
    }
}

/// The short form of a value: text or a truth value.
pub(crate) trait ShortForm: Sized {
    /// What is expected, for messages.
    const WANTED: &'static str;

    fn text(text: &str) -> Option<Self>;

    fn boolean(boolean: bool) -> Option<Self>;
}

impl ShortForm for String {
    const WANTED: &'static str = "text";

    fn text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn boolean(_: bool) -> Option<Self> {
        None
    }
}

impl ShortForm for bool {
    const WANTED: &'static str = "true, false";

    fn text(_: &str) -> Option<Self> {
        None
    }

    fn boolean(boolean: bool) -> Option<Self> {
        Some(boolean)
    }
}

/// A value in its short form, or as a map.
#[derive(Clone, Debug)]
pub(crate) enum ShortOrLong<S, L> {
    Short(S),
    Long(L),
}

impl<'de, S: ShortForm, L: Deserialize<'de>> Deserialize<'de> for ShortOrLong<S, L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Both<S, L>(PhantomData<(S, L)>);

        impl<'de, S: ShortForm, L: Deserialize<'de>> Visitor<'de> for Both<S, L> {
            type Value = ShortOrLong<S, L>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} or `key: value` pairs", S::WANTED)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let mismatch = || E::invalid_type(serde::de::Unexpected::Str(text), &self);
                S::text(text).map(ShortOrLong::Short).ok_or_else(mismatch)
            }

            fn visit_bool<E: serde::de::Error>(self, boolean: bool) -> Result<Self::Value, E> {
                let mismatch = || E::invalid_type(serde::de::Unexpected::Bool(boolean), &self);
                S::boolean(boolean)
                    .map(ShortOrLong::Short)
                    .ok_or_else(mismatch)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                L::deserialize(MapAccessDeserializer::new(map)).map(ShortOrLong::Long)
            }
        }

        deserializer.deserialize_any(Both(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl<S: ShortForm + JsonSchema, L: JsonSchema> JsonSchema for ShortOrLong<S, L> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}_or_{}", S::schema_name(), L::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (short, long) = (
            generator.subschema_for::<S>(),
            generator.subschema_for::<L>(),
        );
        json_schema!({ "anyOf": [short, long] })
    }
}

/// One text, or a list of them.
#[derive(Clone, Debug)]
pub(crate) enum OneOrMany {
    One(String),
    List(Vec<Located<String>>),
}

impl Located<OneOrMany> {
    /// The texts; a single one has the position of the field.
    pub(crate) fn texts(&self) -> Vec<Located<String>> {
        match &self.value {
            OneOrMany::List(list) => list.clone(),
            OneOrMany::One(text) => vec![Located {
                value: text.clone(),
                position: self.position,
            }],
        }
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list")
            }

            fn visit_str<E>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(text.to_owned()))
            }

            // What looks like a number is text where text is wanted.
            fn visit_u64<E>(self, number: u64) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(number.to_string()))
            }

            // `no` is a language here, and a truth to YAML.
            fn visit_bool<E>(self, boolean: bool) -> Result<OneOrMany, E> {
                let word = if boolean { "yes" } else { "no" };
                Ok(OneOrMany::One(word.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMany::List(texts))
            }
        }

        deserializer.deserialize_any(Texts)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for OneOrMany {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "text_or_list".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (one, list) = (
            generator.subschema_for::<String>(),
            generator.subschema_for::<Vec<String>>(),
        );
        json_schema!({ "anyOf": [one, list] })
    }
}
