//! JSON Schemas of what is emitted, generated from the types so that they cannot drift. They describe
//! what the server writes: a member that every event has is required.

pub mod plain;

use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::actor::Actor;
use crate::body::Body;
use crate::clock::Timestamp;
use crate::envelope::RenderDecision;
use crate::id::{SessionId, TurnId, TurnResponseId};
use crate::kind::EventType;
use crate::message::Message;
use crate::position::Position;
use crate::trace::TraceContext;

/// The schema of the payload of a type that no release emits yet.
pub const RESERVED: &str = "ReservedPayload";

/// The schema of an event: one of those of [`events`].
pub fn event() -> Value {
    let mut generator = generator();
    let variants = events(&mut generator);
    let names = variants.iter().map(|(_, name, _)| name.clone());
    let refs: Vec<Value> = names
        .map(|name| json!({ "$ref": format!("#/$defs/{name}") }))
        .collect();
    let mut definitions = generator.take_definitions(true);
    let schemas = variants.into_iter().map(|(_, name, schema)| (name, schema));
    definitions.extend(schemas);
    definitions.sort_keys();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "An event, by its `type`.",
        "oneOf": refs,
        "$defs": definitions,
    });
    finish(&mut schema);
    schema
}

/// The schema of each type of event: the type, the name of the schema, the envelope with its payload.
pub fn events(generator: &mut SchemaGenerator) -> Vec<(EventType, String, Value)> {
    let prefix = format!("#{}/", generator.settings().definitions_path);
    let envelope = envelope(generator);
    let payloads = Body::schemas(generator);
    let mut schemas = Vec::new();
    for &kind in EventType::ALL {
        let emitted = payloads.iter().find(|(name, _)| *name == kind.name());
        let payload = match emitted {
            Some((_, payload)) => payload.clone().to_value(),
            None => json!({ "$ref": format!("{prefix}{RESERVED}") }),
        };
        let mut properties = envelope.clone();
        properties["type"] = json!({ "type": "string", "const": kind.name() });
        properties.insert("payload".to_owned(), payload);
        let optional = |key: &str| ["render", "sub_agent_id"].contains(&key);
        let required: Vec<&String> = properties.keys().filter(|key| !optional(key)).collect();
        let schema = json!({
            "description": format!("An event of the type `{}`.", kind.name()),
            "type": "object",
            "required": required,
            "properties": properties,
        });
        schemas.push((kind, format!("{kind:?}Event"), schema));
    }
    let reserved = json!({
        "description": "A type that filters may name and that this release does not emit.",
        "type": "object",
        "additionalProperties": true,
    });
    let definitions = generator.definitions_mut();
    definitions.insert(RESERVED.to_owned(), reserved);
    schemas
}

/// The fields around the payload, in the order in which they are written.
fn envelope(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let fields = [
        ("id", generator.subschema_for::<Position>()),
        ("type", generator.subschema_for::<String>()),
        ("session_id", generator.subschema_for::<SessionId>()),
        ("turn_id", generator.subschema_for::<Option<TurnId>>()),
        (
            "response_id",
            generator.subschema_for::<Option<TurnResponseId>>(),
        ),
        ("actor", generator.subschema_for::<Actor>()),
        ("timestamp", generator.subschema_for::<Timestamp>()),
        ("persisted", generator.subschema_for::<bool>()),
        ("trace", generator.subschema_for::<Option<TraceContext>>()),
        ("render", generator.subschema_for::<RenderDecision>()),
        ("sub_agent_id", generator.subschema_for::<String>()),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(name, schema)| (name.to_owned(), schema.to_value()))
        .collect()
}

/// The schema of a message.
pub fn message() -> Value {
    of::<Message>()
}

/// The schema of something that the server writes.
pub fn of<T: schemars::JsonSchema>() -> Value {
    let mut schema = generator().into_root_schema_for::<T>().to_value();
    finish(&mut schema);
    schema
}

/// Makes the schema of what the server writes plain, and open to new members.
pub fn finish(schema: &mut Value) {
    plain::make_plain(schema);
    plain::allow_new_members(schema);
}

/// A generator of schemas of what the server writes.
fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12();
    SchemaGenerator::new(settings.with(|settings| settings.contract = Contract::Serialize))
}
