//! A vendor as the tests know it: the conversation in the vendor's format, and how the vendor
//! streams it.

use serde_json::Value;
use turnwire_model::VendorDialect;

/// A tool result in a request: id of the call, content, and whether it is an error.
pub(crate) type ToolResult = (String, Value, bool);

/// One vendor's format of the conversation.
pub(crate) trait Vendor {
    /// Name of the provider.
    fn name(&self) -> &'static str;

    fn dialect(&self) -> &'static dyn VendorDialect;

    /// The model's turns of the conversation, in the vendor's format.
    fn turns(&self) -> Vec<Value>;

    /// Strings in the turns that only the vendor may see.
    fn private_data(&self) -> &'static [&'static str];

    /// The turn as the next request must contain it.
    fn expected_turn(&self, turn: &Value) -> Value {
        turn.clone()
    }

    /// The turn as a server-sent event stream.
    fn stream(&self, turn: &Value) -> String;

    /// The model's turns in a request.
    fn turns_in(&self, body: &Value) -> Vec<Value>;

    /// The tools' results in a request.
    fn results_in(&self, body: &Value) -> Vec<ToolResult>;

    /// The calls of a turn, as results refer to them.
    fn calls(&self, turn: &Value) -> Vec<String>;
}

/// Frames with event names.
pub(crate) fn named(events: &[Value]) -> String {
    let frame = |event: &Value| {
        let name = event["type"].as_str().expect("a type");
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(frame).collect()
}

/// Frames without event names.
pub(crate) fn unnamed(chunks: &[Value]) -> String {
    let frame = |chunk: &Value| format!("data: {chunk}\n\n");
    chunks.iter().map(frame).collect()
}

/// The items of a list; empty if the value is not a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a string value.
pub(crate) fn string(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

/// The text in two pieces, split in the middle.
pub(crate) fn halves(text: &str) -> [&str; 2] {
    let middle = text.len() / 2;
    let boundary = (middle..=text.len()).find(|index| text.is_char_boundary(*index));
    let (first, second) = text.split_at(boundary.unwrap_or(text.len()));
    [first, second]
}

/// A tool result from a format without an error field.
pub(crate) fn parse_result(output: &str) -> (Value, bool) {
    let value: Value = serde_json::from_str(output).expect("JSON");
    match value.get("error") {
        Some(error) => (error.clone(), true),
        None => (value, false),
    }
}
