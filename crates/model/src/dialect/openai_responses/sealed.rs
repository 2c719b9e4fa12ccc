//! What is kept of an item for the next request: the item as it came, without what the blocks of
//! the message hold anyway.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::chunk::Fields;

/// Bytes kept of one item. Encrypted reasoning has tens of thousands; an image in an item of a
/// hosted tool has millions and is not kept.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// Where the id of a call's item stands.
pub(super) const ITEM_ID: &str = "item_id";

/// Marks a part of a message that refuses. Items have no such field of their own.
pub(super) const REFUSAL: &str = "refusal";

/// A message without its words.
pub(super) fn message(raw: &RawValue) -> Option<Value> {
    fields(raw, &["content", "role", "status"]).filter(|kept| kept["type"] == "message")
}

/// The same message, where it refuses.
pub(super) fn refusing(mut kept: Value) -> Value {
    kept[REFUSAL] = Value::Bool(true);
    kept
}

/// A call without its function and arguments. What its output refers to is its `id`, as in every
/// dialect; the id of the item stands aside.
pub(super) fn call(raw: &RawValue) -> Option<Value> {
    let mut kept = fields(raw, &["name", "arguments", "status"])?;
    let call = kept.as_object_mut()?;
    let (item_id, call_id) = (call.shift_remove("id"), call.shift_remove("call_id"));
    call.extend(item_id.map(|id| (ITEM_ID.to_owned(), id)));
    call.extend(call_id.map(|id| ("id".to_owned(), id)));
    Some(kept)
}

/// A call of which only that is known.
pub(super) fn call_by_id(call_id: &str) -> Value {
    json!({"type": "function_call", "id": call_id})
}

/// Reasoning, if there is something in it to send back: encrypted or open reasoning, or a summary.
pub(super) fn reasoning(raw: &RawValue) -> Option<Value> {
    let kept = fields(raw, &["status"])?;
    let says = |field: &str| match &kept[field] {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    let is_worth_it = kept["type"] == "reasoning"
        && (says("encrypted_content") || says("content") || says("summary"));
    is_worth_it.then_some(kept)
}

/// An item of another kind, whole.
pub(super) fn item(raw: &RawValue) -> Option<Value> {
    fields(raw, &[]).filter(|kept| kept["type"].is_string())
}

/// The item's fields but those left out and those that are null; nothing if they are too many.
fn fields(raw: &RawValue, left_out: &[&str]) -> Option<Value> {
    let fields: Fields = serde_json::from_str(raw.get()).ok()?;
    let is_kept = |name: &str, value: &RawValue| !left_out.contains(&name) && value.get() != "null";
    let kept = fields
        .into_iter()
        .filter(|(name, value)| is_kept(name, value));
    let mut bytes = 0_usize;
    let mut map = Map::new();
    for (name, value) in kept {
        bytes = bytes.saturating_add(name.len() + value.get().len());
        if bytes > KEPT_BYTES_MAX {
            return None;
        }
        map.insert(name, serde_json::from_str(value.get()).ok()?);
    }
    Some(Value::Object(map))
}
