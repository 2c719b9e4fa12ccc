//! The document agrees with the table and has no dangling references.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::operation::OperationSpec;
use super::table::tags;
use super::{DocumentLimits, generate};

fn operations() -> impl Iterator<Item = OperationSpec> {
    tags().into_iter().flat_map(|tag| tag.operations)
}

fn refs<'a>(value: &'a Value, references: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(map) => {
            for (key, inside) in map {
                match inside.as_str() {
                    Some(text) if key == "$ref" => drop(references.insert(text)),
                    Some(_) | None => refs(inside, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| refs(item, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn references_and_schemas_match() {
    let document = generate(DocumentLimits::default());
    let mut named = BTreeSet::new();
    refs(&document, &mut named);
    let defined: BTreeSet<String> = document["components"]["schemas"]
        .as_object()
        .expect("schemas")
        .keys()
        .map(|name| format!("#/components/schemas/{name}"))
        .collect();
    let defined: BTreeSet<&str> = defined.iter().map(String::as_str).collect();
    assert_eq!(named, defined);
}

/// Operations with POST whose path says everything.
const WITHOUT_BODY: [&str; 2] = ["pauseJob", "resumeJob"];

#[test]
fn operations_are_documented_with_path_parameters() {
    let document = generate(DocumentLimits::default());
    let mut ids = BTreeSet::new();
    let mut count = 0;
    for operation in operations() {
        let operation_json = &document["paths"][operation.path][operation.method];
        assert_eq!(operation_json["operationId"], operation.id);
        assert!(ids.insert(operation.id), "{} twice", operation.id);
        let inside = operation.path.split(['{', '}']).skip(1).step_by(2);
        let in_path: Vec<&str> = inside.collect();
        let parameter_names: Vec<&str> = operation_json["parameters"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        assert_eq!(parameter_names, in_path, "{}", operation.path);
        let has_body = operation.method == "post" && !WITHOUT_BODY.contains(&operation.id);
        assert_eq!(
            has_body,
            operation_json["requestBody"].is_object(),
            "{}",
            operation.id
        );
        count += 1;
    }
    let paths = document["paths"].as_object().expect("paths");
    let operation_json: usize = paths
        .values()
        .map(|path| path.as_object().map_or(0, |p| p.len()))
        .sum();
    assert_eq!(operation_json, count);
}

#[test]
fn links_refer_to_existing_operations() {
    let document = generate(DocumentLimits::default());
    let mut parameters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for operation in operations() {
        let names = operation.parameters.iter().map(|p| p.name).collect();
        parameters.insert(operation.id, names);
    }
    let mut links = 0;
    for link in operations().flat_map(|o| o.responses).flat_map(|a| a.links) {
        assert!(
            parameters[link.operation].contains(&"id"),
            "{}",
            link.operation
        );
        links += 1;
    }
    assert_eq!(document.to_string().matches("\"links\":{").count(), 3);
    assert_eq!(links, 12);
}

#[test]
fn served_document_equals_generated_document() {
    let limits = DocumentLimits {
        list_page: (3, 4),
        messages_page: (5, 6),
        events_page: (7, 8),
        message_blocks: 9,
    };
    assert_eq!(super::document(limits), generate(limits));
}

#[test]
fn always_present_members_are_required_in_responses_only() {
    let document = generate(DocumentLimits::default());
    let schemas = &document["components"]["schemas"];
    let required = |name: &str| schemas[name]["required"].clone();
    assert_eq!(required("TurnSubmit"), serde_json::json!(["message"]));
    assert_eq!(required("SessionCreate"), Value::Null);
    let turn = required("Turn");
    assert!(
        turn.as_array()
            .is_some_and(|all| all.contains(&"ended_at".into())),
        "{turn}"
    );
    assert_eq!(schemas["Chat"]["additionalProperties"], false);
    assert_eq!(schemas["Turn"]["additionalProperties"], Value::Null);
}
