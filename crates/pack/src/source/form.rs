//! Shapes that several files use: a map whose keys have positions, a value with a short form, and one
//! text or a list of texts. Values are read without buffering, which would lose their positions.

#[cfg(feature = "schema")]
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
#[cfg(feature = "schema")]
use serde_json::json;

use crate::yaml::Located;

/// The form of ids and names (S2-006).
pub(crate) const ID_PATTERN: &str = "^[a-z][a-z0-9_]{0,47}$";
pub(crate) const ID_RULE: &str =
    "a to z, 0 to 9 and _, beginning with a letter, at most 48 characters";

/// The form of a text that is not blank.
pub(crate) const NOT_BLANK: &str = r"\S";
/// The form of a language tag, such as `es-MX`, also with `_`.
#[cfg(feature = "schema")]
pub(crate) const TAG_PATTERN: &str = "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$";

/// Functions that return the schema of a text with a form of its own: the noun for messages, the
/// pattern, the rule in words.
macro_rules! text_forms {
    ($($function:ident: $noun:literal, $pattern:expr, $rule:expr;)*) => {$(
        #[cfg(feature = "schema")]
        pub(crate) fn $function() -> serde_json::Value {
            json!({ "type": "string", "title": $noun, "pattern": $pattern, "description": $rule })
        }
    )*};
}

text_forms! {
    model: "model", r"^[^:\s]+:\S+$", "`provider:model`, for example `scripted:market`.";
    header_names: "header name", "^[A-Za-z0-9._-]{1,64}$",
        "Letters, digits and `-`, for example `x-team`.";
    variable_names: "variable name", "^[A-Za-z_][A-Za-z0-9_]*$",
        "Letters, digits and `_`, for example `LANG`.";
    parameter_names: "parameter name", r"^[^{}\p{Cc}]*[^{}\p{Cc}\s][^{}\p{Cc}]*$",
        "A plain name; `{field}` only in its value.";
    vendor_model_names: "model name", r"^[^\s\p{Cc}]+$",
        "The vendor's name, without the provider and without spaces.";
    price_names: "model or beginning of one", r"^([*]|[^:\s*]+:([^\s*]+|[^\s*]*[*]))$",
        "`\"provider:model\"`, or `\"provider:*\"` for all of them.";
}

/// The schema of the keys of a map from ids.
#[cfg(feature = "schema")]
pub(crate) fn id_names() -> serde_json::Value {
    json!({ "pattern": ID_PATTERN })
}

/// `key: value` pairs, in the order they are written. Keys are unique.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(inline))]
pub(crate) struct Pairs<V>(
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, V>"))]
    pub(crate)  Vec<(Located<String>, V)>,
);

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

/// A value in its short form, or as a map.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(untagged, inline))]
pub(crate) enum ShortOrLong<S, L> {
    Short(S),
    Long(L),
}

impl<'de, S: Deserialize<'de>, L: Deserialize<'de>> Deserialize<'de> for ShortOrLong<S, L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Both<S, L>(PhantomData<(S, L)>);

        impl<'de, S: Deserialize<'de>, L: Deserialize<'de>> Visitor<'de> for Both<S, L> {
            type Value = ShortOrLong<S, L>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the short form or `key: value` pairs")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                S::deserialize(text.into_deserializer()).map(ShortOrLong::Short)
            }

            fn visit_bool<E: Error>(self, boolean: bool) -> Result<Self::Value, E> {
                S::deserialize(boolean.into_deserializer()).map(ShortOrLong::Short)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                L::deserialize(MapAccessDeserializer::new(map)).map(ShortOrLong::Long)
            }
        }

        deserializer.deserialize_any(Both(PhantomData))
    }
}

/// One text, or a list of them.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(untagged, inline))]
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

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrMany, A::Error> {
                let list = SeqAccessDeserializer::new(list);
                Vec::deserialize(list).map(OneOrMany::List)
            }
        }

        // What looks like a number or a truth value is text here: `no` is a language.
        deserializer.deserialize_str(Texts)
    }
}
