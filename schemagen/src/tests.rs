//! The committed files are those of the types, what the server writes satisfies its schema, and the
//! OpenAPI document is in the form that generators of clients read.

mod plain;
mod event;
mod document;
mod frames;
mod pages;

use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;

use super::{texts, write};

/// The JSON of a committed file.
fn read_json(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let text = std::fs::read_to_string(path).expect("the file is committed");
    serde_json::from_str(&text).expect("the file is JSON")
}

/// Judges values by `schema`, with the formats of its texts.
fn validator(schema: &Value) -> Validator {
    let options = jsonschema::draft202012::options().should_validate_formats(true);
    options.build(schema).expect("a valid schema")
}

/// Why a value does not satisfy a schema.
fn refusal(validator: &Validator, value: &Value) -> Option<String> {
    let refused = validator.validate(value).err()?;
    Some(format!("{}: {refused}", refused.instance_path()))
}

/// The events of every golden log, one for each line.
fn golden_events() -> Vec<Value> {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/wire/tests/golden");
    let mut events = Vec::new();
    for scenario in std::fs::read_dir(logs).expect("golden logs") {
        let log = scenario.expect("a folder").path().join("events.jsonl");
        let log = std::fs::read_to_string(log).expect("a log");
        let lines = log.lines().map(serde_json::from_str);
        events.extend(lines.map(|event: Result<Value, _>| event.expect("JSON")));
    }
    events
}

/// The generated files below `root` that are missing or differ from the types.
fn outdated(root: &Path) -> Vec<String> {
    let current = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let texts = texts().into_iter();
    let outdated = texts.filter(|(path, text)| current(path) != *text);
    outdated.map(|(path, _)| path).collect()
}

#[test]
fn committed_schemas_match_the_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    assert_eq!(outdated(&root), [""; 0], "run `cargo xtask schema`");
}

#[test]
fn changed_and_missing_files_are_outdated() {
    let dir = std::env::temp_dir().join(format!("turnwire-schema-{}", std::process::id()));
    write(&dir).expect("a temporary folder can be written");
    assert_eq!(outdated(&dir), [""; 0]);
    std::fs::write(dir.join("schema/event.json"), "{}\n").expect("written before");
    std::fs::remove_file(dir.join("schema/openapi.json")).expect("written before");
    assert_eq!(outdated(&dir), ["schema/event.json", "schema/openapi.json"]);
    std::fs::remove_dir_all(&dir).expect("no one else uses it");
}
