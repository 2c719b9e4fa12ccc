//! Schemas of bodies, collected under `components` as they are named.
//!
//! What clients send is described as it is read, what they are given as it is written: a member
//! that is always there in an answer is required there.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use super::served::Limits;
use crate::rest::event::EVENT_SCHEMA;

/// Where the document keeps its schemas.
const PLACE: &str = "#/components/schemas/";

/// The schemas that were named so far.
pub(super) struct Schemas {
    pub(super) limits: Limits,
    sent: SchemaGenerator,
    given: SchemaGenerator,
}

/// Gives the schema of one thing, noting those it is made of.
pub(super) type Shape = fn(&mut Schemas) -> Value;

/// What clients send.
pub(super) fn sent<T: JsonSchema>(schemas: &mut Schemas) -> Value {
    schemas.sent.subschema_for::<T>().to_value()
}

/// What clients are given.
pub(super) fn given<T: JsonSchema>(schemas: &mut Schemas) -> Value {
    schemas.given.subschema_for::<T>().to_value()
}

impl Schemas {
    pub(super) fn new(limits: Limits) -> Self {
        let generator = |contract| {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.contract = contract;
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            });
            SchemaGenerator::new(settings)
        };
        Self {
            limits,
            sent: generator(Contract::Deserialize),
            given: generator(Contract::Serialize),
        }
    }

    /// All of them, and those of events, by name.
    pub(super) fn named(mut self) -> Map<String, Value> {
        let mut all = self.given.take_definitions(true);
        let mut event = turnwire_event::schema::event();
        rename(&mut event);
        let parts = event.as_object_mut();
        let parts = parts.and_then(|event| {
            event.remove("$schema");
            event.remove("$defs")
        });
        if let Some(Value::Object(parts)) = parts {
            merge(&mut all, parts);
        }
        let sent = self.sent.take_definitions(true);
        debug_assert!(
            sent.iter()
                .all(|(name, schema)| all.get(name).is_none_or(|known| known == schema)),
            "what is both sent and given must be described the same way, or have two names"
        );
        merge(&mut all, sent);
        let name = EVENT_SCHEMA.trim_start_matches(PLACE);
        all.insert(name.to_owned(), event);
        all.sort_keys();
        all
    }
}

/// Adds what is not there yet. Parts of events are described for reading where they come from and
/// for writing in other answers: the second is stricter, and true of all that the server writes.
fn merge(all: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, schema) in more {
        all.entry(name).or_insert(schema);
    }
}

/// Turns references to `$defs` into references to the document's schemas.
fn rename(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, inside) in map {
                match inside {
                    Value::String(text) if key == "$ref" => {
                        *text = text.replace("#/$defs/", PLACE);
                    }
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => rename(inside),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
