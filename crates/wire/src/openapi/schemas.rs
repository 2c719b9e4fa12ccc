//! The schemas of bodies, collected under `components` by name.
//!
//! Request bodies are described as the server parses them, response bodies as the server writes
//! them: a member that every response has is required.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use super::served::DocumentLimits;
use crate::rest::event::EVENT_SCHEMA;

/// The prefix of references to the schemas of the document.
const SCHEMA_PREFIX: &str = "#/components/schemas/";

/// The schemas that were referenced so far.
pub(super) struct DocumentSchemas {
    pub(super) limits: DocumentLimits,
    request_schema: SchemaGenerator,
    response_schema: SchemaGenerator,
}

/// Returns the schema of one type and registers the types it refers to.
pub(super) type SchemaFn = fn(&mut DocumentSchemas) -> Value;

/// The schema of a type in requests.
pub(super) fn request_schema<T: JsonSchema>(schemas: &mut DocumentSchemas) -> Value {
    schemas.request_schema.subschema_for::<T>().to_value()
}

/// The schema of a type in responses.
pub(super) fn response_schema<T: JsonSchema>(schemas: &mut DocumentSchemas) -> Value {
    schemas.response_schema.subschema_for::<T>().to_value()
}

impl DocumentSchemas {
    pub(super) fn new(limits: DocumentLimits) -> Self {
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
            request_schema: generator(Contract::Deserialize),
            response_schema: generator(Contract::Serialize),
        }
    }

    /// All registered schemas and those of events, by name.
    pub(super) fn into_components(mut self) -> Map<String, Value> {
        let mut all = self.response_schema.take_definitions(true);
        let mut event = turnwire_event::schema::event();
        rename_refs(&mut event);
        if let Some(event) = event.as_object_mut() {
            event.remove("$schema");
            if let Some(Value::Object(parts)) = event.remove("$defs") {
                merge(&mut all, parts);
            }
        }
        let request_schema = self.request_schema.take_definitions(true);
        debug_assert!(
            request_schema
                .iter()
                .all(|(name, schema)| all.get(name).is_none_or(|existing| existing == schema)),
            "what is both sent and given must be described the same way, or have two names"
        );
        merge(&mut all, request_schema);
        let name = EVENT_SCHEMA.trim_start_matches(SCHEMA_PREFIX);
        all.insert(name.to_owned(), event);
        all.sort_keys();
        all
    }
}

/// Adds the schemas that are not present yet. Parts of events have a schema for parsing in events and
/// one for writing in responses. The second is stricter, and true for all that the server writes.
fn merge(all: &mut Map<String, Value>, additional: Map<String, Value>) {
    for (name, schema) in additional {
        all.entry(name).or_insert(schema);
    }
}

/// Changes references to `$defs` into references to the schemas of the document.
fn rename_refs(value: &mut Value) {
    if let Value::Object(map) = value {
        for (key, inner) in map {
            if let (true, Value::String(text)) = (key == "$ref", &mut *inner) {
                *text = text.replace("#/$defs/", SCHEMA_PREFIX);
            }
            rename_refs(inner);
        }
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(rename_refs);
    }
}
