//! The schemas of bodies, collected under `components` by name.
//!
//! Request bodies are described as the server parses them, response bodies as the server writes
//! them: a member that every response has is required.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use turnwire_event::schema::{self, plain};

use super::served::DocumentLimits;
use crate::rest::event::EVENT_SCHEMA;

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
    let mut schema = schemas.request_schema.subschema_for::<T>().to_value();
    plain::make_plain(&mut schema);
    schema
}

/// The schema of a type in responses.
pub(super) fn response_schema<T: JsonSchema>(schemas: &mut DocumentSchemas) -> Value {
    let mut schema = schemas.response_schema.subschema_for::<T>().to_value();
    schema::finish(&mut schema);
    schema
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
        let events = schema::events(&mut self.response_schema);
        let mut all = self.response_schema.take_definitions(true);
        let refs: Vec<Value> = events
            .iter()
            .map(|(_, name, _)| json!({ "$ref": format!("#/components/schemas/{name}") }))
            .collect();
        let (_, event_name) = EVENT_SCHEMA.rsplit_once('/').expect("a reference");
        let event = json!({ "description": "An event, by its `type`.", "oneOf": refs });
        let events = events.into_iter().map(|(_, name, schema)| (name, schema));
        for (name, schema) in events.chain([(event_name.to_owned(), event)]) {
            let replaced = all.insert(name.clone(), schema);
            assert!(replaced.is_none(), "two schemas are named {name}");
        }
        all.values_mut().for_each(schema::finish);
        for (name, mut schema) in self.request_schema.take_definitions(true) {
            plain::make_plain(&mut schema);
            let response = all.entry(name.clone()).or_insert_with(|| schema.clone());
            assert!(
                *response == schema,
                "{name} differs in requests and responses: describe it the same way, or give it two names"
            );
        }
        all.sort_keys();
        all
    }
}
