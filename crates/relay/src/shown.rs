//! What the result of an upstream's `render_*` tool shows: a list of items as `data.loading` and
//! `data.loaded`, anything else as `component.rendered` (S1 5.8). Fields of a data service's envelope
//! are left out, and data of another principal is not shown.

use serde_json::{Map, Value, json};
use turnwire_event::body::component::{ComponentRendered, RenderingToolCall};
use turnwire_event::body::data::{CollectionKey, DataLoaded, DataLoading, ItemKey};
use turnwire_event::metric;
use turnwire_event::port::Emission;
use turnwire_event::row::NewMessage;
use turnwire_event::{Actor, Body, ContentBlock, IdGenerator, MessageId, Role};

/// The most items of one list: more than a person reads, and what native render tools show.
const ITEMS_MAX: usize = 500;
/// Fields that only an envelope of a data service has.
const ENVELOPE_FIELDS: [&str; 2] = ["enricher_id", "principal"];

/// The emissions that show `content`, the result of `tool`, which returns data of `data_type`.
pub(crate) fn shown(
    content: Value,
    (tool, data_type): (RenderingToolCall, &str),
    principal: &str,
    ids: &dyn IdGenerator,
) -> Vec<Emission> {
    // Frameworks hand on results as text.
    let content = match content {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::Null),
        content => content,
    };
    let Value::Object(fields) = content else {
        return Vec::new();
    };
    let Some(mut fields) = payload(fields, principal) else {
        return Vec::new();
    };
    let actor = Actor::tool(&tool.name);
    if let Some(Value::Array(items)) = fields.get_mut("items") {
        let mut items = std::mem::take(items);
        items.truncate(ITEMS_MAX);
        let data_type = match fields.get("type") {
            Some(Value::String(given)) => given.clone(),
            _ => data_type.to_owned(),
        };
        return list(items, data_type, actor, ids);
    }
    let component = match fields.get_mut("component") {
        Some(component @ Value::Object(_)) => component.take(),
        Some(_) | None => Value::Object(fields),
    };
    let block = ContentBlock::Component {
        tool_use_id: tool.id,
        component: component.clone(),
    };
    let rendered = Body::ComponentRendered(ComponentRendered {
        component,
        tool_call: tool,
    });
    vec![Emission {
        message: Some(stored(block, ids)),
        ..Emission::new(actor, rendered)
    }]
}

/// The payload of an envelope, or the fields themselves; `None` for data of another principal.
fn payload(mut fields: Map<String, Value>, principal: &str) -> Option<Map<String, Value>> {
    let is_envelope = ENVELOPE_FIELDS
        .iter()
        .all(|name| fields.contains_key(*name));
    let is_own = !is_envelope || fields["principal"] == principal;
    let nested = |name| fields.get(name).and_then(Value::as_object);
    let objects = [Some(&fields), nested("payload"), nested("component")];
    let names_another = |object| names_another(object, principal);
    if !is_own || objects.into_iter().flatten().any(names_another) {
        metrics::counter!(metric::PS6_PRINCIPAL_MISMATCH_TOTAL, "consumer" => "relay").increment(1);
        tracing::error!(
            security = true,
            "an upstream returned data of another principal: it is not shown"
        );
        return None;
    }
    if !is_envelope {
        return Some(fields);
    }
    match fields.remove("payload") {
        Some(Value::Object(payload)) => Some(payload),
        Some(_) | None => None,
    }
}

/// True if an object, or one of its items, is of another principal. Anything may have a number of this
/// name; a text names a person.
fn names_another(object: &Map<String, Value>, principal: &str) -> bool {
    let is_anothers = |object: &Map<String, Value>| {
        let named = object.get("principal").and_then(Value::as_str);
        named.is_some_and(|named| named != principal)
    };
    let items = object.get("items").and_then(Value::as_array);
    let mut items = items.into_iter().flatten().filter_map(Value::as_object);
    is_anothers(object) || items.any(is_anothers)
}

fn list(
    items: Vec<Value>,
    data_type: String,
    actor: Actor,
    ids: &dyn IdGenerator,
) -> Vec<Emission> {
    let item_ids = items.iter().filter_map(|item| item.get("id")?.as_str());
    let key = CollectionKey {
        ids: item_ids.map(|id| ItemKey { id: id.to_owned() }).collect(),
    };
    let id = format!("data_{}", ids.ulid());
    let loading = Body::DataLoading(DataLoading {
        id: id.clone(),
        data_type: data_type.clone(),
        key: key.clone(),
    });
    let block = ContentBlock::Data {
        data_id: id.clone(),
        data_type: data_type.clone(),
        key: json!(key),
        items: Value::Array(items.clone()),
    };
    let loaded = Body::DataLoaded(DataLoaded {
        id,
        data_type,
        key,
        items,
    });
    vec![
        Emission::new(actor.clone(), loading),
        Emission {
            message: Some(stored(block, ids)),
            ..Emission::new(actor, loaded)
        },
    ]
}

/// The message that keeps what was shown (S1-088).
fn stored(block: ContentBlock, ids: &dyn IdGenerator) -> NewMessage {
    NewMessage::new(MessageId(ids.ulid()), Role::Tool, vec![block])
}
