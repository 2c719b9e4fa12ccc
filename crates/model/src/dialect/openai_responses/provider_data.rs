//! Provider data of an item for the next request: the item's JSON without the fields that the
//! message's blocks hold anyway.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Largest provider data of one item in bytes. Encrypted reasoning has tens of thousands; an image
/// in a hosted tool's item has millions and is dropped.
const DATA_BYTES_MAX: usize = 256 << 10;

/// Key of the item id in the provider data of a call.
pub(super) const ITEM_ID: &str = "item_id";

/// Marks a part of a message that is a refusal. Items have no field of this name.
pub(super) const REFUSAL: &str = "refusal";

/// Provider data of a message, without its text.
pub(super) fn message(raw: &RawValue) -> Option<Value> {
    fields(raw, &["content", "role", "status"]).filter(|data| data["type"] == "message")
}

/// Marks provider data of a message as a refusal.
pub(super) fn with_refusal(mut data: Value) -> Value {
    data[REFUSAL] = Value::Bool(true);
    data
}

/// Provider data of a call, without its name and arguments. Its `id` is the call id, as in every
/// dialect; the item id has its own key.
pub(super) fn call(raw: &RawValue) -> Option<Value> {
    let mut data = fields(raw, &["name", "arguments", "status"])?;
    let call = data.as_object_mut()?;
    let (item_id, call_id) = (call.shift_remove("id"), call.shift_remove("call_id"));
    call.extend(item_id.map(|id| (ITEM_ID.to_owned(), id)));
    call.extend(call_id.map(|id| ("id".to_owned(), id)));
    Some(data)
}

/// Provider data of a call of which only the call id is known.
pub(super) fn call_by_id(call_id: &str) -> Value {
    json!({"type": "function_call", "id": call_id})
}

/// Provider data of reasoning; `None` without encrypted or raw reasoning or a summary.
pub(super) fn reasoning(raw: &RawValue) -> Option<Value> {
    let data = fields(raw, &["status"])?;
    let has_value = |field: &str| match &data[field] {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    let has_reasoning = data["type"] == "reasoning"
        && (has_value("encrypted_content") || has_value("content") || has_value("summary"));
    has_reasoning.then_some(data)
}

/// Provider data of an item of another kind: all its fields.
pub(super) fn item(raw: &RawValue) -> Option<Value> {
    fields(raw, &[]).filter(|data| data["type"].is_string())
}

/// The fields of an item that are not null and not in `omitted`; `None` if they are too large.
fn fields(raw: &RawValue, omitted: &[&str]) -> Option<Value> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
    let mut bytes = 0_usize;
    let mut map = Map::new();
    for (name, value) in fields {
        if omitted.contains(&&*name) || value.get() == "null" {
            continue;
        }
        bytes = bytes.saturating_add(name.len() + value.get().len());
        if bytes > DATA_BYTES_MAX {
            return None;
        }
        map.insert(name, serde_json::from_str(value.get()).ok()?);
    }
    Some(Value::Object(map))
}
