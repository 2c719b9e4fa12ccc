//! One direction of a stream: its frames as the messages of a channel, and their schemas as components.

use serde_json::{Map, Value, json};

/// Where definitions are in the schema of a frame, and in the document.
const DEFINITIONS: &str = "#/$defs/";
const SCHEMAS: &str = "#/components/schemas/";

/// The frames of one direction of a wire.
pub(super) struct FrameMessages {
    /// The names of the messages in the channel, in the order of the frames.
    pub(super) names: Vec<String>,
    /// The messages by name.
    pub(super) messages: Map<String, Value>,
    /// The schemas by name.
    pub(super) schemas: Map<String, Value>,
}

impl FrameMessages {
    /// The messages of the frames that `schema` describes, whose type is in the member `tag`. All names
    /// begin with `wire`: two wires may have frames of the same name.
    pub(super) fn new(wire: &str, tag: &str, schema: &Value) -> Self {
        let text = schema["$defs"].to_string();
        let text = text.replace(DEFINITIONS, &format!("{SCHEMAS}{wire}."));
        let definitions: Map<String, Value> =
            serde_json::from_str(&text).expect("definitions are JSON");
        let mut frames = Self {
            names: Vec::new(),
            messages: Map::new(),
            schemas: Map::new(),
        };
        for frame in schema["oneOf"].as_array().into_iter().flatten() {
            let name = frame["$ref"].as_str().expect("a frame has a definition");
            let name = name.trim_start_matches(DEFINITIONS);
            let definition = &definitions[name];
            let kind = &definition["properties"][tag]["const"];
            let message = format!("{wire}.{name}");
            let payload = json!({ "$ref": format!("{SCHEMAS}{message}") });
            frames.messages.insert(
                message.clone(),
                json!({
                    "name": kind,
                    "title": name,
                    "summary": definition["description"],
                    "contentType": "application/json",
                    "payload": payload,
                }),
            );
            frames.names.push(message);
        }
        for (name, definition) in definitions {
            frames.schemas.insert(format!("{wire}.{name}"), definition);
        }
        frames
    }

    /// References to the messages in the components.
    pub(super) fn in_components(&self) -> Map<String, Value> {
        let refs = self.names.iter().map(|name| {
            let reference = json!({ "$ref": format!("#/components/messages/{name}") });
            (name.clone(), reference)
        });
        refs.collect()
    }

    /// References to the messages of the channel `channel`, as operations have them.
    pub(super) fn in_channel(&self, channel: &str) -> Vec<Value> {
        let names = self.names.iter();
        let refs =
            names.map(|name| json!({ "$ref": format!("#/channels/{channel}/messages/{name}") }));
        refs.collect()
    }
}
