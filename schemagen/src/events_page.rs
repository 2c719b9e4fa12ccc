//! The page `docs/events.md`: the payload of every event type, written from its schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use turnwire_event::{Body, EventLane, EventType};

const PREFIX: &str = "#/$defs/";

const INTRODUCTION: &str = "\
# Events

`cargo xtask schema` writes this page from the types; [`schema/event.json`](../schema/event.json) is the same as JSON Schema.
An event has these members, in this order:

| member | value |
|---|---|
| `id` | the [position](wires/session.md#positions-and-cursors) in the log of its session |
| `type` | one of the types below |
| `session_id` | the session |
| `turn_id`, `response_id` | the turn, by its id and by the id of its response; null outside of any turn |
| `actor` | `user`, `orchestrator`, `subagent:<id>`, `tool:<name>`, `worker:<session_id>`, `system` or `relay` |
| `timestamp` | UTC, with milliseconds |
| `persisted` | true if the event is in the log, false if it was only sent |
| `trace` | the W3C trace of the request that started the turn, or null |
| `render` | the decision of the rendering policy; absent without one |
| `sub_agent_id` | the sub-agent that called the tool which is the `actor`; absent for all other actors |
| `payload` | the members below, by type |

A client ignores types and members that it does not know: releases add some. A member with a `?` may be absent.
";

/// The text of the page, from the schema of an event.
pub fn page(schema: &Value) -> String {
    let definitions = schema["$defs"].as_object().expect("definitions");
    let mut page = Page {
        definitions,
        text: INTRODUCTION.to_owned(),
        parts: Vec::new(),
    };
    for (lane, title) in [
        (
            EventLane::Persisted,
            "Persisted: in the log before any client sees them",
        ),
        (
            EventLane::Streaming,
            "Streaming: live only, joined in a replay",
        ),
        (EventLane::Lifecycle, "Live on the chat wire only"),
        (EventLane::Internal, "Internal: on no wire"),
    ] {
        let kinds = EventType::ALL.iter().filter(|kind| kind.lane() == lane);
        let (emitted, reserved): (Vec<&EventType>, Vec<&EventType>) =
            kinds.partition(|kind| Body::KINDS.contains(kind));
        page.line(&format!("\n## {title}"));
        for kind in emitted {
            page.event(*kind);
        }
        if !reserved.is_empty() {
            let names: Vec<String> = reserved.iter().map(|kind| format!("`{kind}`")).collect();
            page.line("\n### Reserved");
            page.line(&format!(
                "\nFilters may name {}. This release does not emit them; their payload is any object.",
                names.join(", ")
            ));
        }
    }
    page.line("\n## Parts");
    let mut next = 0;
    while let Some(name) = page.parts.get(next).cloned() {
        page.part(&name);
        next += 1;
    }
    page.text
}

struct Page<'a> {
    definitions: &'a Map<String, Value>,
    text: String,
    /// The definitions that the text refers to, in the order of their first use.
    parts: Vec<String>,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn event(&mut self, kind: EventType) {
        let event = &self.definitions[&format!("{kind:?}Event")];
        let payload = event["properties"]["payload"]["$ref"].as_str();
        let name = payload.expect("a payload").trim_start_matches(PREFIX);
        let payload = self.definitions[name].clone();
        self.line(&format!("\n### `{}`", kind.name()));
        self.described(&payload);
        self.members(&payload);
    }

    /// A definition that others refer to: a closed list, an object, or a choice of objects.
    fn part(&mut self, name: &str) {
        let schema = self.definitions[name].clone();
        self.line(&format!("\n### {name}"));
        self.described(&schema);
        for choice in schema["oneOf"].as_array().into_iter().flatten() {
            let kind = choice["properties"]["type"]["const"].as_str();
            self.line(&format!("\n`{}`:", kind.unwrap_or_default()));
            self.members(choice);
        }
        self.members(&schema);
    }

    fn described(&mut self, schema: &Value) {
        if let Some(about) = schema["description"].as_str() {
            self.line(&format!("\n{about}"));
        }
    }

    fn members(&mut self, schema: &Value) {
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        self.line("\n| member | value | meaning |\n|---|---|---|");
        for (name, member) in properties {
            let mark = match required.contains(&name.as_str().into()) {
                true => "",
                false => "?",
            };
            let value = self.value(member);
            let about = member["description"].as_str().unwrap_or_default();
            let about = about.replace('\n', " ").replace('|', "\\|");
            let mut row = String::new();
            let _ = write!(row, "| `{name}`{mark} | {value} | {about} |");
            self.line(&row);
        }
    }

    /// The value of a member in words.
    fn value(&mut self, schema: &Value) -> String {
        if let Some(name) = schema["$ref"].as_str() {
            return self.reference(name.trim_start_matches(PREFIX));
        }
        if let Some(word) = schema["const"].as_str() {
            return format!("`{word}`");
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            let choices: Vec<String> = choices.iter().map(|choice| self.value(choice)).collect();
            return choices.join(" or ");
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            Value::Null => return "any JSON".to_owned(),
            kind => vec![kind.clone()],
        };
        let words: Vec<String> = kinds
            .iter()
            .map(|kind| match kind.as_str().unwrap_or_default() {
                "array" => format!("list of {}", self.value(&schema["items"])),
                kind => kind.to_owned(),
            })
            .collect();
        words.join(" or ")
    }

    /// A link to a part, or the kind of text that an id is.
    fn reference(&mut self, name: &str) -> String {
        let schema = &self.definitions[name];
        if schema["type"] == "string" && schema["enum"].is_null() {
            return match schema["format"].as_str() {
                Some("date-time") => "time".to_owned(),
                _ => format!("string ({name})"),
            };
        }
        if !self.parts.iter().any(|part| part == name) {
            self.parts.push(name.to_owned());
        }
        format!("[{name}](#{})", name.to_ascii_lowercase())
    }
}
