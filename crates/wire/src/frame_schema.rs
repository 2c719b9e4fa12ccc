//! The schema of a wire: a definition for each type of frame, and one of them for a frame.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use turnwire_event::schema::{self, plain};

/// The definitions of the frames of one direction of a wire.
pub(crate) struct FrameSchemas {
    pub(crate) generator: SchemaGenerator,
    contract: Contract,
    /// The member that has the type of a frame.
    tag: &'static str,
    /// The members of every frame.
    envelope: Map<String, Value>,
    frames: Vec<(String, Value)>,
}

impl FrameSchemas {
    /// Frames whose type is in the member `tag`, as they are written or read.
    pub(crate) fn new(tag: &'static str, contract: Contract) -> Self {
        let settings =
            SchemaSettings::draft2020_12().with(|settings| settings.contract = contract.clone());
        Self {
            generator: SchemaGenerator::new(settings),
            contract,
            tag,
            envelope: Map::new(),
            frames: Vec::new(),
        }
    }

    /// Adds a member that every frame has.
    pub(crate) fn envelope(&mut self, name: &str, schema: Value) {
        self.envelope.insert(name.to_owned(), schema);
    }

    /// The schema of a type, or a reference to it.
    pub(crate) fn of<T: JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().to_value()
    }

    /// Adds a frame of the type `kind` with the members of `T`.
    pub(crate) fn add<T: JsonSchema>(&mut self, kind: &str, about: &str) {
        let fields = T::json_schema(&mut self.generator).to_value();
        self.add_object(kind, about, &fields);
    }

    /// Adds a frame of the type `kind` with `required` and `optional` members.
    pub(crate) fn add_fields(
        &mut self,
        kind: &str,
        about: &str,
        required: &[(&str, Value)],
        optional: &[(&str, Value)],
    ) {
        let pairs = required.iter().chain(optional);
        let properties: Map<String, Value> = pairs
            .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
            .collect();
        let required: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
        let fields = json!({ "properties": properties, "required": required });
        self.add_object(kind, about, &fields);
    }

    /// Adds a frame of the type `kind` with the members of the schema `fields`.
    pub(crate) fn add_object(&mut self, kind: &str, about: &str, fields: &Value) {
        let mut properties = Map::new();
        properties.insert(
            self.tag.to_owned(),
            json!({ "type": "string", "const": kind }),
        );
        properties.extend(self.envelope.clone());
        let mut required: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
        properties.extend(
            fields["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
        );
        required.extend(fields["required"].as_array().cloned().unwrap_or_default());
        let mut frame = json!({
            "description": about,
            "type": "object",
            "required": required,
            "properties": properties,
        });
        if let Some(additional) = fields.get("additionalProperties") {
            frame["additionalProperties"] = additional.clone();
        }
        let words = kind.split('_').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        });
        let name = format!("{}Frame", words.collect::<String>());
        self.frames.push((name, frame));
    }

    /// The schema of a frame, with all definitions.
    pub(crate) fn finish(mut self, title: &str, about: &str) -> Value {
        let mut definitions = self.generator.take_definitions(true);
        let mut refs = Vec::new();
        for (name, frame) in self.frames {
            refs.push(json!({ "$ref": format!("#/$defs/{name}") }));
            let replaced = definitions.insert(name.clone(), frame);
            assert!(replaced.is_none(), "two schemas are named {name}");
        }
        definitions.sort_keys();
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": title,
            "description": about,
            "oneOf": refs,
            "$defs": definitions,
        });
        if self.contract.is_serialize() {
            schema::finish(&mut schema);
        } else {
            plain::make_plain(&mut schema);
        }
        schema
    }
}
