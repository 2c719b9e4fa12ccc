//! JSON Schemas of the pack: those in `schemas/*.json`, and those written inside other files. A
//! schema that cannot be used is found here and not at the first call.

use std::collections::BTreeMap;

use serde_json::Value;

use super::folder;
use super::page::Page;
use crate::files::Files;
use crate::finding::{Findings, Known, shown};
use crate::nearest::nearest;
use crate::place::{At, Place};

/// The schema files: path → schema; none if it is broken.
pub(crate) struct Schemas<'a> {
    files: BTreeMap<&'a str, Option<Value>>,
}

impl<'a> Schemas<'a> {
    /// Reads and checks all of them.
    pub(crate) fn read(files: &'a Files, found: &mut Findings) -> Self {
        let paths = files.iter().map(|(path, _)| path);
        let paths = paths.filter(|path| path.starts_with("schemas/") && path.ends_with(".json"));
        Self {
            files: paths.map(|path| (path, file(files, path, found))).collect(),
        }
    }

    /// What a field that holds a schema, or the path of one, means.
    pub(crate) fn value(
        &self,
        page: &mut Page<'_>,
        field: &At<Value>,
        name: &str,
    ) -> Option<Value> {
        match &field.value {
            Value::Object(_) => {
                if let Err(what) = usable(&field.value) {
                    page.error(
                        field.place,
                        format!("`{name}` is not a JSON Schema: {what}"),
                    )
                    .write("for example `{type: object, properties: {…}}`");
                }
                Some(field.value.clone())
            }
            Value::String(path) => match self.files.get(path.as_str()) {
                Some(schema) => schema.clone(),
                None => {
                    self.absent(page, field.place, path);
                    None
                }
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                page.error(field.place, format!("`{name}` is not a JSON Schema"))
                    .write("`{type: object, …}`, or a path such as `schemas/offer_list.json`");
                None
            }
        }
    }

    fn absent(&self, page: &mut Page<'_>, place: Place, path: &str) {
        let known = Known {
            names: self.files.keys().map(|path| (*path).to_owned()).collect(),
            hidden: false,
        };
        let what = format!("there is no file `{}` in the pack", shown(path));
        match nearest(path, known.names.iter().map(String::as_str)) {
            Some(meant) => {
                page.error(place, format!("{what}, did you mean `{meant}`?"));
            }
            None => page
                .error(place, what)
                .write("the path of a file in `schemas/`, ending in `.json`"),
        }
    }
}

fn file(files: &Files, path: &str, found: &mut Findings) -> Option<Value> {
    let text = folder::text(files, path, found)?;
    let schema: Value = match serde_json::from_str(text) {
        Ok(schema) => schema,
        Err(error) => {
            let place = Place {
                line: error.line().max(1) as u64,
                column: error.column().max(1) as u64,
            };
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default();
            found.error(path, place, format!("this is not JSON: {}", shown(what)));
            return None;
        }
    };
    match usable(&schema) {
        Ok(()) => Some(schema),
        Err(what) => {
            found
                .error(
                    path,
                    Place::TOP,
                    format!("this is not a JSON Schema: {what}"),
                )
                .write("for example `{\"type\": \"object\", \"properties\": {…}}`");
            None
        }
    }
}

/// Whether data can be checked against a schema; else the reason.
fn usable(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err("it is not an object".to_owned());
    }
    if let Err(error) = jsonschema::meta::validate(schema) {
        let at = error.instance_path().to_string();
        let value = shown(&error.instance().to_string());
        return Err(match at.as_str() {
            "" => format!("`{value}` does not fit"),
            at => format!("`{value}` does not fit at {}", shown(at)),
        });
    }
    // References to elsewhere are not followed, and fail here.
    match jsonschema::validator_for(schema) {
        Ok(_) => Ok(()),
        Err(_) => Err("a `$ref` leads out of it, or a `pattern` is not one".to_owned()),
    }
}
