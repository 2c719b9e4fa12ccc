//! The OpenAPI document in the form that generators of clients and strict validators read, and the
//! same as the other schemas where both describe a value.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{golden_events, read_json, refusal, validator};

const PREFIX: &str = "#/components/schemas/";

fn document() -> Value {
    read_json("schema/openapi.json")
}

/// A schema that refers to a component of the document.
fn component(document: &Value, name: &str) -> Value {
    json!({ "$ref": format!("{PREFIX}{name}"), "components": document["components"] })
}

/// Calls `see` with every object of a JSON value and its pointer.
fn each_object(
    value: &Value,
    at: &str,
    see: &mut impl FnMut(&str, &serde_json::Map<String, Value>),
) {
    if let Value::Object(map) = value {
        see(at, map);
        for (key, inner) in map {
            each_object(inner, &format!("{at}/{key}"), see);
        }
    }
    for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
        each_object(inner, &format!("{at}/{index}"), see);
    }
}

//
#[test]
fn golden_events_satisfy_both_schemas() {
    let document = document();
    let schemas = [
        validator(&component(&document, "Event")),
        validator(&read_json("schema/event.json")),
    ];
    let mut types = BTreeSet::new();
    for event in golden_events() {
        for schema in &schemas {
            assert_eq!(refusal(schema, &event), None, "{event}");
        }
        types.insert(event["type"].as_str().expect("a type").to_owned());
    }
    assert!(
        types.contains("component.rendered") && types.len() >= 40,
        "{types:?}"
    );
}

#[test]
fn events_and_messages_are_described_once() {
    let document = document();
    for path in ["schema/event.json", "schema/message.json"] {
        let schema = read_json(path);
        let text = schema["$defs"].to_string().replace("#/$defs/", PREFIX);
        let definitions: Value = serde_json::from_str(&text).expect("JSON");
        for (name, definition) in definitions.as_object().expect("definitions") {
            assert_eq!(
                &document["components"]["schemas"][name], definition,
                "{path} {name}"
            );
        }
    }
}

#[test]
fn document_is_plain() {
    let document = document();
    let names = document["components"]["schemas"].as_object();
    for name in names.expect("schemas").keys() {
        let is_numbered = name.ends_with(|last: char| last.is_ascii_digit());
        assert!(!is_numbered, "two types share a name: {name}");
    }
    let known = ["date", "date-time", "double", "uuid"];
    each_object(&document, "", &mut |at, object| {
        assert!(object.get("items") != Some(&json!(true)), "{at}: any item");
        if let Some(Value::String(format)) = object.get("format") {
            assert!(known.contains(&format.as_str()), "{at}: {format}");
        }
        for choice in object
            .get("oneOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            assert!(choice.get("const").is_none(), "{at}: an enum as oneOf");
        }
        if let (Some(Value::Object(_)), Some(_)) = (object.get("properties"), object.get("oneOf")) {
            panic!("{at}: members beside a choice, which generators leave out");
        }
    });
}

#[test]
fn switches_are_booleans() {
    let document = document();
    let mut switches = BTreeSet::new();
    each_object(&document["paths"], "", &mut |_, object| {
        if let (Some("query"), Some(name)) =
            (object.get("in").and_then(Value::as_str), object.get("name"))
            && object["schema"]["type"] == "boolean"
        {
            switches.insert(name.as_str().expect("a name").to_owned());
        }
    });
    assert!(switches.iter().eq(["hashes", "wait"]), "{switches:?}");
}

#[test]
fn answers_to_approvals_are_one_or_several() {
    let document = document();
    let schema = validator(&component(&document, "ApprovalAnswers"));
    let operation = &document["paths"]["/turns/{id}/approvals"]["post"];
    let examples = &operation["requestBody"]["content"]["application/json"]["examples"];
    for (name, example) in examples.as_object().expect("examples") {
        assert_eq!(refusal(&schema, &example["value"]), None, "{name}");
    }
    let one = &examples["yes"]["value"];
    for wrong in [
        json!({}),
        json!({ "answers": [] }),
        json!({ "answers": [{ "decision": "approve" }] }),
        json!({ "answers": [one], "decision": "approve" }),
        json!({ "approval_id": one["approval_id"] }),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn end_of_a_turn_is_typed() {
    let document = document();
    let schema = validator(&component(&document, "TurnTerminal"));
    let events = golden_events();
    let terminal = |kind: &str| {
        let event = events.iter().find(|event| event["type"] == kind);
        let event = event.expect("a golden turn ends so");
        json!({ "id": event["id"], "type": event["type"], "payload": event["payload"] })
    };
    let (completed, cancelled) = (terminal("turn.completed"), terminal("turn.cancelled"));
    assert_eq!(refusal(&schema, &completed), None);
    assert_eq!(refusal(&schema, &cancelled), None);
    let mut mixed = completed;
    mixed["payload"] = cancelled["payload"].clone();
    assert!(!schema.is_valid(&mixed));
}

#[test]
fn invalid_identity_is_documented_for_all_but_probes() {
    let document = document();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let is_probe = ["/healthz", "/readyz", "/metrics"].contains(&path.as_str());
        for (method, operation) in operations.as_object().expect("operations") {
            let codes = |status: &str| {
                let response = &operation["responses"][status]["content"];
                let schema = &response["application/problem+json"]["schema"];
                schema["properties"]["code"]["enum"].clone()
            };
            let lists = |status: &str, code: &str| {
                let codes = codes(status);
                codes
                    .as_array()
                    .is_some_and(|codes| codes.contains(&json!(code)))
            };
            let is_documented = [
                lists("400", "tenant_invalid"),
                lists("422", "invalid_request"),
            ];
            assert_eq!(is_documented, [!is_probe; 2], "{method} {path}");
        }
    }
}

#[test]
fn chat_streams_are_documented_as_text_with_a_turn_name() {
    let document = document();
    for pointer in [
        "/paths/~1chat~1stream/post",
        "/paths/~1chat~1{response_id}~1stream/get",
    ] {
        let answer = document.pointer(&format!("{pointer}/responses/200"));
        let answer = answer.expect("an answer");
        assert_eq!(
            answer["content"]["text/event-stream"]["schema"]["type"],
            "string"
        );
        let headers = answer["headers"].as_object().expect("headers");
        let names: BTreeSet<&str> = headers.keys().map(String::as_str).collect();
        assert_eq!(names, BTreeSet::from(["X-Response-Id", "X-Session-Id"]));
        let response = &answer["headers"]["X-Response-Id"]["schema"];
        let judge =
            validator(&json!({ "allOf": [response], "components": document["components"] }));
        assert_eq!(
            refusal(&judge, &json!("resp_01KA5T7C3P0A2B4C6D8E0F1G3H")),
            None
        );
        assert!(!judge.is_valid(&json!("01KA5T7C3P0A2B4C6D8E0F1G3H")));
    }
}

#[test]
fn descriptions_name_nothing_that_only_the_code_has() {
    // The schemas of packs are read by authors, who know variables of the environment too.
    let of_wires = crate::files().into_iter();
    for (path, schema) in of_wires.filter(|(path, _)| !path.starts_with("schema/pack/")) {
        let text = schema.to_string();
        each_object(&schema, "", &mut |at, map| {
            let about = map.get("description").and_then(Value::as_str);
            for word in about.unwrap_or_default().split('`').skip(1).step_by(2) {
                let is_name = word.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
                let capitals = word.chars().filter(char::is_ascii_uppercase).count();
                // A code, or a definition of the same file.
                let is_known = text.contains(&format!("\"{word}\""));
                let is_of_code =
                    word.starts_with(|c: char| c.is_ascii_uppercase()) && is_name && capitals > 1;
                assert!(!is_of_code || is_known, "{path}{at}: {word}");
            }
        });
    }
}
