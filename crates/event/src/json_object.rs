//! A JSON object that is held as its compact text.
//!
//! Parsed values take many times the bytes of their text (16 KiB of small objects are 1.1 MB), so
//! data that the server only stores and returns stays text. The text is rewritten token by token
//! while it is read: without white space, with the escapes and numbers of `serde_json`. No tree of
//! values is built, and the depth is bounded by the parser.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::Arc;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A JSON object as compact text, shared between its copies.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JsonObject(Option<Arc<str>>);

/// A JSON object that exceeds the bound of [`JsonObject::read_up_to`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OversizedObject {
    /// The size of the compact text.
    pub bytes: usize,
}

impl JsonObject {
    /// The compact text of the object.
    pub fn as_json(&self) -> &str {
        self.0.as_deref().unwrap_or("{}")
    }

    /// True if the object has no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The parsed value of a field.
    pub fn get(&self, name: &str) -> Option<Value> {
        let mut value = None;
        self.for_each_field(|field, json| {
            if field == name {
                value = serde_json::from_str(json).ok();
            }
        });
        value
    }

    /// The text of a field that is a string.
    pub fn get_str(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::String(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        }
    }

    /// Adds a field, or replaces its value.
    pub fn set(&mut self, name: &str, value: &Value) {
        let mut text = ObjectText::default();
        let mut is_replaced = false;
        self.for_each_field(|field, json| {
            if field == name {
                is_replaced = true;
                text.push(field, &value.to_string());
            } else {
                text.push(field, json);
            }
        });
        if !is_replaced {
            text.push(name, &value.to_string());
        }
        *self = text.finish();
    }

    /// Removes a field and returns its parsed value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let removed = self.get(name)?;
        let mut text = ObjectText::default();
        self.for_each_field(|field, json| {
            if field != name {
                text.push(field, json);
            }
        });
        *self = text.finish();
        Some(removed)
    }

    /// The object as parsed values.
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(self.as_json()).expect("the text is a JSON object")
    }

    /// Reads an object whose compact text has at most `bytes_max`. The text of a larger one is
    /// counted and not kept. Of a field that is repeated, the last value counts.
    pub fn read_up_to<'de, D: Deserializer<'de>>(
        deserializer: D,
        bytes_max: usize,
    ) -> Result<Result<Self, OversizedObject>, D::Error> {
        let mut text = BoundedText::new(bytes_max);
        deserializer.deserialize_map(ObjectVisitor(&mut text))?;
        if text.bytes > bytes_max {
            return Ok(Err(OversizedObject { bytes: text.bytes }));
        }
        let object = Self::from_text(text.into_string());
        let repeats = serde_json::from_str::<UniqueFields>(object.as_json()).is_err();
        Ok(Ok(if repeats {
            object.to_map().into()
        } else {
            object
        }))
    }

    fn from_text(text: String) -> Self {
        Self((text != "{}").then(|| text.into()))
    }

    /// Calls `visit` with the name and the JSON of each field, in order.
    fn for_each_field(&self, visit: impl FnMut(&str, &str)) {
        if let Some(text) = &self.0 {
            let mut deserializer = serde_json::Deserializer::from_str(text);
            deserializer
                .deserialize_map(FieldVisitor(visit))
                .expect("the text is a JSON object");
        }
    }
}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl From<Map<String, Value>> for JsonObject {
    fn from(map: Map<String, Value>) -> Self {
        Self::from_text(Value::Object(map).to_string())
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.as_json()).expect("the text is JSON");
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    /// Reads an object of any size that a server has written; see [`JsonObject::read_up_to`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = BoundedText::new(usize::MAX);
        deserializer.deserialize_map(ObjectVisitor(&mut text))?;
        Ok(Self::from_text(text.into_string()))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for JsonObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JsonObject".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Map::<String, Value>::json_schema(generator)
    }
}

/// Builds the text of a [`JsonObject`] from its fields.
#[derive(Default)]
struct ObjectText(String);

impl ObjectText {
    fn push(&mut self, field: &str, json: &str) {
        let name = Value::from(field).to_string();
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&name);
        self.0.push(':');
        self.0.push_str(json);
    }

    fn finish(mut self) -> JsonObject {
        if self.0.is_empty() {
            return JsonObject::default();
        }
        self.0.push('}');
        JsonObject::from_text(self.0)
    }
}

/// JSON text up to a bound. Beyond the bound, bytes are counted and nothing is kept.
struct BoundedText {
    text: Vec<u8>,
    bytes: usize,
    bytes_max: usize,
}

impl BoundedText {
    fn new(bytes_max: usize) -> Self {
        Self {
            text: Vec::new(),
            bytes: 0,
            bytes_max,
        }
    }

    fn into_string(self) -> String {
        String::from_utf8(self.text).expect("JSON is UTF-8")
    }

    fn push<E: de::Error, T: Serialize + ?Sized>(&mut self, scalar: &T) -> Result<(), E> {
        serde_json::to_writer(self, scalar).map_err(E::custom)
    }

    fn push_byte(&mut self, byte: u8) {
        self.push_bytes(&[byte]);
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes <= self.bytes_max {
            self.text.extend_from_slice(bytes);
        } else {
            self.text = Vec::new();
        }
    }
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push_bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes an object; other values are errors.
struct ObjectVisitor<'a>(&'a mut BoundedText);

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        ValueVisitor(self.0).visit_map(map)
    }
}

/// Writes any JSON value.
struct ValueVisitor<'a>(&'a mut BoundedText);

impl<'de> DeserializeSeed<'de> for ValueVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.push(&())
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.0.push(&())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.0.push(&value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.0.push(&value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.0.push(&value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.0.push(&value)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.0.push(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let text = self.0;
        text.push_byte(b'[');
        let mut is_first = true;
        loop {
            let element = ElementWriter { text, is_first };
            if seq.next_element_seed(element)?.is_none() {
                break;
            }
            is_first = false;
        }
        text.push_byte(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let text = self.0;
        text.push_byte(b'{');
        let mut is_first = true;
        loop {
            let name = ElementWriter { text, is_first };
            if map.next_key_seed(name)?.is_none() {
                break;
            }
            text.push_byte(b':');
            map.next_value_seed(ValueVisitor(text))?;
            is_first = false;
        }
        text.push_byte(b'}');
        Ok(())
    }
}

/// Writes an element of a list or the name of a field, after a comma unless it is the first.
struct ElementWriter<'a> {
    text: &'a mut BoundedText,
    is_first: bool,
}

impl<'de> DeserializeSeed<'de> for ElementWriter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.is_first {
            self.text.push_byte(b',');
        }
        deserializer.deserialize_any(ValueVisitor(self.text))
    }
}

/// Calls the function with the name and the JSON of each field.
struct FieldVisitor<F>(F);

impl<'de, F: FnMut(&str, &str)> Visitor<'de> for FieldVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, json)) = map.next_entry::<String, &'de RawValue>()? {
            (self.0)(&name, json.get());
        }
        Ok(())
    }
}

/// Any JSON value; reading it fails if an object in it repeats a field.
struct UniqueFields;

impl<'de> Deserialize<'de> for UniqueFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueFieldsVisitor)
    }
}

struct UniqueFieldsVisitor;

impl<'de> Visitor<'de> for UniqueFieldsVisitor {
    type Value = UniqueFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<UniqueFields, E> {
        Ok(UniqueFields)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<UniqueFields, A::Error> {
        while seq.next_element::<UniqueFields>()?.is_some() {}
        Ok(UniqueFields)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueFields, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name) {
                return Err(de::Error::custom("a field is repeated"));
            }
            map.next_value::<UniqueFields>()?;
        }
        Ok(UniqueFields)
    }
}

#[cfg(test)]
mod tests;
