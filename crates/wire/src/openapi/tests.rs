//! The document says what the table says, and refers to nothing that it does not have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::operation::Method;
use super::table::operations;
use super::{Limits, generate};

fn refs<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(map) => {
            for (key, inside) in map {
                match inside.as_str() {
                    Some(text) if key == "$ref" => drop(found.insert(text)),
                    Some(_) | None => refs(inside, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| refs(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_schema_that_is_named_is_there_and_every_one_there_is_named() {
    let document = generate(Limits::default());
    let mut named = BTreeSet::new();
    refs(&document, &mut named);
    let there: BTreeSet<String> = document["components"]["schemas"]
        .as_object()
        .expect("schemas")
        .keys()
        .map(|name| format!("#/components/schemas/{name}"))
        .collect();
    let there: BTreeSet<&str> = there.iter().map(String::as_str).collect();
    assert_eq!(named, there);
}

#[test]
fn every_operation_is_in_the_document_once_with_its_path_parameters() {
    let document = generate(Limits::default());
    let mut ids = BTreeSet::new();
    let mut count = 0;
    for operation in operations() {
        let method = operation.method.name().to_ascii_lowercase();
        let written = &document["paths"][operation.path][&method];
        assert_eq!(written["operationId"], operation.id);
        assert!(ids.insert(operation.id), "{} twice", operation.id);
        let inside = operation.path.split(['{', '}']).skip(1).step_by(2);
        let in_path: Vec<&str> = inside.collect();
        let said: Vec<&str> = written["parameters"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        assert_eq!(said, in_path, "{}", operation.path);
        assert_eq!(
            operation.method == Method::Post,
            written["requestBody"].is_object()
        );
        count += 1;
    }
    let paths = document["paths"].as_object().expect("paths");
    let written: usize = paths
        .values()
        .map(|path| path.as_object().map_or(0, |p| p.len()))
        .sum();
    assert_eq!(written, count);
}

#[test]
fn links_name_operations_and_parameters_that_exist() {
    let document = generate(Limits::default());
    let mut parameters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for operation in operations() {
        let names = operation.parameters.iter().map(|p| p.name).collect();
        parameters.insert(operation.id, names);
    }
    let mut links = 0;
    for link in operations().flat_map(|o| o.answers).flat_map(|a| a.links) {
        assert!(
            parameters[link.operation].contains(&link.parameter),
            "{}",
            link.operation
        );
        links += 1;
    }
    assert_eq!(document.to_string().matches("\"links\":{").count(), 3);
    assert_eq!(links, 12);
}

#[test]
fn the_served_document_is_the_generated_one() {
    let limits = Limits {
        list_page: (3, 4),
        messages_page: (5, 6),
        events_page: (7, 8),
    };
    assert_eq!(super::document(limits), generate(limits));
}

#[test]
fn members_that_are_always_there_are_required_in_answers_and_not_in_requests() {
    let document = generate(Limits::default());
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
