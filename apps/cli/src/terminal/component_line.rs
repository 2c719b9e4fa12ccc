//! Collections and components as one short line: the kind, and the names of the items.
//!
//! ```text
//! ▪ offer_list: Oat milk, Granola
//! ```
//! Their JSON comes from tools and data services: names are searched in known fields and sanitized.

use serde_json::Value;
use turnwire_event::ContentBlock;

use crate::terminal::sanitize::sanitized_line;
use crate::terminal::wording::counted;

/// The largest number of items that are named.
const NAMES_MAX: usize = 5;
/// The longest name: a title is shorter, a paragraph is no name.
const NAME_CHARS_MAX: usize = 60;

/// The line of a collection, as in `data.loaded`.
pub(crate) fn collection(kind: &str, items: &[Value]) -> String {
    let names: Vec<String> = items.iter().take(NAMES_MAX).filter_map(name).collect();
    let unnamed = items.len() - names.len();
    let text = match (names.is_empty(), unnamed) {
        (true, 0) => "nothing".to_owned(),
        (true, more) => counted(more as u64, "item"),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    };
    format!("▪ {}: {text}", sanitized_line(kind, NAME_CHARS_MAX))
}

/// The line of a component that `tool` rendered.
pub(crate) fn component(component: &Value, tool: &str) -> String {
    let default = tool.strip_prefix("render_").unwrap_or(tool);
    let kind = sanitized_line(
        component["type"].as_str().unwrap_or(default),
        NAME_CHARS_MAX,
    );
    match name(component) {
        None => format!("▪ {kind}"),
        Some(name) => format!("▪ {kind}: {name}"),
    }
}

/// The lines of the collections ([`ContentBlock::Data`]) and components of a stored message.
pub(crate) fn lines(content: &[ContentBlock]) -> Vec<String> {
    let line = |block: &ContentBlock| match block {
        ContentBlock::Data {
            data_type, items, ..
        } => {
            let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
            Some(collection(data_type, items))
        }
        ContentBlock::Component { component: it, .. } => Some(component(it, "component")),
        _ => None,
    };
    content.iter().filter_map(line).collect()
}

/// The name of an item, from the first field that has one.
fn name(item: &Value) -> Option<String> {
    let fields = ["title", "name", "label", "id"];
    let name = fields.iter().find_map(|field| match &item[*field] {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })?;
    Some(sanitized_line(&name, NAME_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn collection_line_has_kind_and_item_names() {
        let items = |n: usize| -> Vec<Value> {
            let item = |at| json!({"id": at, "title": format!("T{at}")});
            (1..=n).map(item).collect()
        };
        assert_eq!(collection("offer_list", &items(2)), "▪ offer_list: T1, T2");
        assert_eq!(
            collection("offer_list", &items(7)),
            "▪ offer_list: T1, T2, T3, T4, T5 and 2 more"
        );
        assert_eq!(collection("offer_list", &[]), "▪ offer_list: nothing");
        let odd = [json!(7), json!({"title": " "}), json!({"id": {"a": 1}})];
        assert_eq!(collection("x", &odd), "▪ x: 3 items");
        assert_eq!(collection("x", &odd[..1]), "▪ x: 1 item");
        let mixed = [json!({"id": 9}), json!(null)];
        assert_eq!(collection("x", &mixed), "▪ x: 9 and 1 more");
    }

    #[test]
    fn item_name_is_title_name_label_or_id_and_short() {
        for (item, expected) in [
            (
                json!({"id": "a", "label": "L", "name": "N", "title": "T"}),
                "T",
            ),
            (json!({"id": "a", "label": "L", "name": "N"}), "N"),
            (json!({"id": "a", "label": "L", "title": ["x"]}), "L"),
            (json!({"id": "a"}), "a"),
        ] {
            assert_eq!(name(&item).as_deref(), Some(expected));
        }
        let long = name(&json!({"title": "é".repeat(90)})).expect("a name");
        assert_eq!(long.chars().count(), NAME_CHARS_MAX + 1);
    }

    #[test]
    fn component_line_has_its_type_or_its_tool() {
        let card = json!({"type": "card", "title": "Oat milk"});
        assert_eq!(component(&card, "render_card"), "▪ card: Oat milk");
        let plain = json!({"price": 1});
        assert_eq!(component(&plain, "render_price"), "▪ price");
        assert_eq!(component(&json!([1]), "paint"), "▪ paint");
    }
}
