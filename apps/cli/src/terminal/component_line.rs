//! Collections and components as one short line: what kind, and what the things are called.
//!
//! ```text
//! ▪ offer_list: Oat milk, Granola
//! ```
//! What they hold is somebody else's JSON: names are looked for, and nothing of it is trusted.

use serde_json::Value;
use turnwire_event::ContentBlock;

use crate::terminal::sanitize::line;

/// How many things are named.
const NAMES_MAX: usize = 5;
/// The longest name: a title has fewer, a paragraph is no name.
const NAME_CHARS_MAX: usize = 60;

pub(crate) fn collection(kind: &str, items: &[Value]) -> String {
    let names: Vec<String> = items.iter().take(NAMES_MAX).filter_map(name).collect();
    let unnamed = items.len() - names.len();
    let text = match (names.is_empty(), unnamed) {
        (true, 0) => "nothing".to_owned(),
        (true, 1) => "1 item".to_owned(),
        (true, more) => format!("{more} items"),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    };
    format!("▪ {}: {text}", line(kind, NAME_CHARS_MAX))
}

/// A single component, made by a tool.
pub(crate) fn component(component: &Value, tool: &str) -> String {
    let kind = component["type"].as_str();
    let kind = kind.unwrap_or(tool.strip_prefix("render_").unwrap_or(tool));
    let kind = line(kind, NAME_CHARS_MAX);
    match name(component) {
        None => format!("▪ {kind}"),
        Some(name) => format!("▪ {kind}: {name}"),
    }
}

/// What a stored message shows.
pub(crate) fn shown(content: &[ContentBlock]) -> Vec<String> {
    let line = |block: &ContentBlock| match block {
        ContentBlock::Data {
            data_type, items, ..
        } => {
            let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
            Some(collection(data_type, items))
        }
        ContentBlock::Component { component: it, .. } => Some(component(it, "component")),
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. } => None,
    };
    content.iter().filter_map(line).collect()
}

/// What a thing is called.
fn name(thing: &Value) -> Option<String> {
    let fields = ["title", "name", "label", "id"];
    let text = fields.iter().find_map(|field| match &thing[*field] {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })?;
    Some(line(&text, NAME_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_collection_is_its_kind_and_the_names_of_its_items() {
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
        for (thing, called) in [
            (
                json!({"id": "a", "label": "L", "name": "N", "title": "T"}),
                "T",
            ),
            (json!({"id": "a", "label": "L", "name": "N"}), "N"),
            (json!({"id": "a", "label": "L", "title": ["x"]}), "L"),
            (json!({"id": "a"}), "a"),
        ] {
            assert_eq!(name(&thing).as_deref(), Some(called));
        }
        let long = name(&json!({"title": "é".repeat(90)})).expect("a name");
        assert_eq!(long.chars().count(), NAME_CHARS_MAX + 1);
    }

    #[test]
    fn a_component_says_what_it_is_or_which_tool_made_it() {
        let card = json!({"type": "card", "title": "Oat milk"});
        assert_eq!(component(&card, "render_card"), "▪ card: Oat milk");
        let plain = json!({"price": 1});
        assert_eq!(component(&plain, "render_price"), "▪ price");
        assert_eq!(component(&json!([1]), "paint"), "▪ paint");
    }
}
