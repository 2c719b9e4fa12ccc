//! The JSON Schemas of a pack: files in `schemas/`, and schemas inside other files. A schema that
//! cannot be used is refused here and not at the first call.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::folder;
use crate::check::report::FileReport;
use crate::complexity::{self, ComplexityLimit, SchemaCost};
use crate::files::PackFiles;
use crate::finding::Findings;
use crate::text::wording::{did_you_mean, one_line};
use crate::yaml::{self, Located, TextPosition};

/// The schema files: path → schema, `None` if it is broken.
pub(crate) struct SchemaFiles<'a> {
    files: BTreeMap<&'a str, Option<Value>>,
}

impl<'a> SchemaFiles<'a> {
    /// Reads and checks all schema files.
    pub(crate) fn read(files: &'a PackFiles, findings: &mut Findings) -> Self {
        let paths = files.iter().map(|(path, _)| path);
        let paths = paths.filter(|path| path.starts_with("schemas/") && path.ends_with(".json"));
        Self {
            files: paths
                .map(|path| (path, file(files, path, findings)))
                .collect(),
        }
    }

    /// The schema of a field that has a schema or the path of one.
    pub(crate) fn value(
        &self,
        report: &mut FileReport<'_>,
        field: &Located<Value>,
        name: &str,
    ) -> Option<Value> {
        match &field.value {
            Value::Object(_) => {
                if let Err(error) = usable(&field.value) {
                    let example = "for example `{type: object, properties: {…}}`";
                    let message = format!("`{name}` {}", error.message);
                    let instead = error.instead.unwrap_or(example);
                    report.error(field.position, message, instead);
                    return None;
                }
                Some(field.value.clone())
            }
            Value::String(path) => match self.files.get(path.as_str()) {
                Some(schema) => schema.clone(),
                None => {
                    let message = format!("there is no file `{}` in the pack", one_line(path));
                    let instead = "the path of a file in `schemas/`, ending in `.json`";
                    let paths = self.files.keys().copied();
                    let (message, instead) = did_you_mean(message, path, paths, instead);
                    report.error(field.position, message, instead);
                    None
                }
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let message = format!("`{name}` is not a JSON Schema");
                let instead = "`{type: object, …}`, or a path such as `schemas/offer_list.json`";
                report.error(field.position, message, instead);
                None
            }
        }
    }
}

fn file(files: &PackFiles, path: &str, findings: &mut Findings) -> Option<Value> {
    let text = folder::text(files, path, findings)?;
    let schema: Value = match serde_json::from_str(text) {
        Ok(schema) => schema,
        Err(error) => {
            let position = TextPosition {
                line: error.line().max(1) as u64,
                column: error.column().max(1) as u64,
            };
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            let message = format!("this is not JSON: {}", one_line(message));
            findings.error(path, position, message, "");
            return None;
        }
    };
    if let Err(error) = usable(&schema) {
        let example = "for example `{\"type\": \"object\", \"properties\": {…}}`";
        let message = format!("this {}", error.message);
        let instead = error.instead.unwrap_or(example);
        findings.error(path, position(text, &error.pointer), message, instead);
        return None;
    }
    Some(schema)
}

/// Why a schema cannot be used.
struct SchemaError {
    message: String,
    /// The JSON pointer of the part that is wrong.
    pointer: String,
    /// What to write instead; `None` for an example of a schema.
    instead: Option<&'static str>,
}

/// Fails if data cannot be checked against `schema`.
fn usable(schema: &Value) -> Result<(), SchemaError> {
    let invalid = |reason: String, pointer: String| SchemaError {
        message: format!("is not a JSON Schema: {reason}"),
        pointer,
        instead: None,
    };
    if !schema.is_object() {
        return Err(invalid("it is not an object".to_owned(), String::new()));
    }
    jsonschema::meta::validate(schema).map_err(|error| {
        let pointer = error.instance_path().to_string();
        let value = one_line(&error.instance().to_string());
        let at = match pointer.as_str() {
            "" => String::new(),
            pointer => format!(" at {}", one_line(pointer)),
        };
        invalid(format!("`{value}` does not fit{at}"), pointer)
    })?;
    SchemaCost::new(schema).map_err(|error| {
        use ComplexityLimit as L;
        let instead = match error.limit {
            L::PatternSyntax | L::Reference => return invalid(error.message, error.pointer),
            L::Backtracking => "a pattern without look-around and back-reference",
            L::PatternSize => "a pattern with smaller repeats, or `maxLength`",
            L::Steps => "fewer parts, and `$ref` as `#` or `#/…` from inside the data it describes",
        };
        SchemaError {
            message: format!("cannot be checked in bounded time: {}", error.message),
            pointer: error.pointer,
            instead: Some(instead),
        }
    })?;
    // A reference that no data reaches fails here.
    let compiled = complexity::validator(schema).map(|_| ());
    compiled.map_err(|error| invalid(one_line(&error.masked().to_string()), String::new()))
}

/// The position of a part of a JSON file. JSON is YAML, so its nodes have positions.
fn position(text: &str, pointer: &str) -> TextPosition {
    let Ok(root) = yaml::parse(text) else {
        return TextPosition::TOP;
    };
    let mut node = &root;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        match node.step(&step) {
            Some(below) => node = below,
            None => break,
        }
    }
    node.position
}
