//! JSON Schemas of what is emitted, generated from the types so that they cannot drift.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::actor::Actor;
use crate::body::Body;
use crate::clock::Timestamp;
use crate::envelope::{RenderDecision, TraceContext};
use crate::id::{ResponseId, SessionId, TurnId};
use crate::message::Message;
use crate::position::Position;

/// The schema of an event: the envelope, and for each type that is emitted its payload.
pub fn event() -> Value {
    let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let mut properties = Map::new();
    let mut property = |name: &str, schema: schemars::Schema| {
        properties.insert(name.to_owned(), schema.to_value());
    };
    property("id", generator.subschema_for::<Position>());
    property("session_id", generator.subschema_for::<SessionId>());
    property("turn_id", generator.subschema_for::<Option<TurnId>>());
    property(
        "response_id",
        generator.subschema_for::<Option<ResponseId>>(),
    );
    property("actor", generator.subschema_for::<Actor>());
    property("timestamp", generator.subschema_for::<Timestamp>());
    property("persisted", generator.subschema_for::<bool>());
    property("trace", generator.subschema_for::<Option<TraceContext>>());
    property("render", generator.subschema_for::<RenderDecision>());
    let variants: Vec<Value> = Body::schemas(&mut generator)
        .into_iter()
        .map(|(name, payload)| json!({ "properties": { "type": { "const": name }, "payload": payload } }))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "type": "object",
        "required": ["id", "type", "session_id", "turn_id", "response_id", "actor", "timestamp",
                     "persisted", "trace", "payload"],
        "properties": properties,
        "oneOf": variants,
        "$defs": generator.definitions(),
    })
}

/// The schema of a message.
pub fn message() -> Value {
    SchemaGenerator::new(SchemaSettings::draft2020_12())
        .into_root_schema_for::<Message>()
        .to_value()
}
