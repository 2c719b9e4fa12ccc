//! JSON Schemas of the pack: those in `schemas/*.json`, and those written inside other files. A
//! schema that cannot be used is found here and not at the first call.

use std::collections::BTreeMap;

use serde_json::Value;

use super::folder;
use super::page::Page;
use crate::complexity::{self, ComplexityLimit, SchemaCost, TooComplex};
use crate::files::Files;
use crate::finding::{Findings, Known};
use crate::wording::closest_name;
use crate::wording::one_line;
use crate::yaml::{self, Located, TextPosition};

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
        field: &Located<Value>,
        name: &str,
    ) -> Option<Value> {
        match &field.value {
            Value::Object(_) => {
                if let Err(why) = usable(&field.value) {
                    let told = format!("`{name}` {}", why.told());
                    let example = "for example `{type: object, properties: {…}}`";
                    page.error(field.position, told).write(why.write(example));
                    return None;
                }
                Some(field.value.clone())
            }
            Value::String(path) => match self.files.get(path.as_str()) {
                Some(schema) => schema.clone(),
                None => {
                    self.absent(page, field.position, path);
                    None
                }
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                page.error(field.position, format!("`{name}` is not a JSON Schema"))
                    .write("`{type: object, …}`, or a path such as `schemas/offer_list.json`");
                None
            }
        }
    }

    fn absent(&self, page: &mut Page<'_>, position: TextPosition, path: &str) {
        let known = Known {
            names: self.files.keys().map(|path| (*path).to_owned()).collect(),
            hidden: false,
        };
        let what = format!("there is no file `{}` in the pack", one_line(path));
        match closest_name(path, known.names.iter().map(String::as_str)) {
            Some(meant) => {
                page.error(position, format!("{what}, did you mean `{meant}`?"));
            }
            None => page
                .error(position, what)
                .write("the path of a file in `schemas/`, ending in `.json`"),
        }
    }
}

fn file(files: &Files, path: &str, found: &mut Findings) -> Option<Value> {
    let text = folder::text(files, path, found)?;
    let schema: Value = match serde_json::from_str(text) {
        Ok(schema) => schema,
        Err(error) => {
            let position = TextPosition {
                line: error.line().max(1) as u64,
                column: error.column().max(1) as u64,
            };
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default();
            found.error(
                path,
                position,
                format!("this is not JSON: {}", one_line(what)),
            );
            return None;
        }
    };
    match usable(&schema) {
        Ok(()) => Some(schema),
        Err(why) => {
            let told = format!("this {}", why.told());
            let example = "for example `{\"type\": \"object\", \"properties\": {…}}`";
            let found = found.error(path, position(text, &why.pointer), told);
            found.write(why.write(example));
            None
        }
    }
}

/// Why a schema cannot be used, and the JSON pointer of the part that is wrong.
struct Unusable {
    what: String,
    pointer: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is no schema.
    None,
    /// It is one that takes too long, or leads where nobody follows.
    TooComplex(ComplexityLimit),
}

impl Unusable {
    fn told(&self) -> String {
        let told = match self.kind {
            Kind::None => "is not a JSON Schema",
            Kind::TooComplex(_) => "cannot be checked in bounded time",
        };
        format!("{told}: {}", self.what)
    }

    /// What to write instead; `example` for one that is none.
    fn write(&self, example: &'static str) -> &'static str {
        match self.kind {
            Kind::None => example,
            Kind::TooComplex(ComplexityLimit::Backtracking) => {
                "a pattern without look-around and back-reference"
            }
            Kind::TooComplex(ComplexityLimit::PatternSize) => {
                "a pattern with smaller repeats, or `maxLength`"
            }
            Kind::TooComplex(ComplexityLimit::Steps | ComplexityLimit::PatternSyntax) => {
                "fewer parts, and `$ref` as `#` or `#/…` from inside the data it describes"
            }
        }
    }
}

/// Whether data can be checked against a schema; else the reason.
fn usable(schema: &Value) -> Result<(), Unusable> {
    let wrong = |what: String, pointer: String| {
        Err(Unusable {
            what,
            pointer,
            kind: Kind::None,
        })
    };
    if !schema.is_object() {
        return wrong("it is not an object".to_owned(), String::new());
    }
    if let Err(error) = jsonschema::meta::validate(schema) {
        let at = error.instance_path().to_string();
        let value = one_line(&error.instance().to_string());
        let what = match at.as_str() {
            "" => format!("`{value}` does not fit"),
            at => format!("`{value}` does not fit at {}", one_line(at)),
        };
        return wrong(what, at);
    }
    if let Err(TooComplex {
        message,
        pointer,
        limit,
    }) = SchemaCost::new(schema)
    {
        let kind = match limit {
            ComplexityLimit::PatternSyntax => Kind::None,
            limit => Kind::TooComplex(limit),
        };
        let heavy = Unusable {
            what: message,
            pointer,
            kind,
        };
        let same = |found: &Unusable| found.pointer == heavy.pointer;
        return Err(culprit(schema, schema, "").filter(same).unwrap_or(heavy));
    }
    // References to elsewhere are not followed, and fail here.
    if complexity::validator(schema).is_ok() {
        return Ok(());
    }
    Err(culprit(schema, schema, "").unwrap_or_else(|| Unusable {
        what: "a `$ref` leads out of it".to_owned(),
        pointer: String::new(),
        kind: Kind::None,
    }))
}

/// The `$ref` that makes a schema unusable.
fn culprit(part: &Value, root: &Value, pointer: &str) -> Option<Unusable> {
    if let Value::Array(items) = part {
        let mut items = items.iter().enumerate();
        return items.find_map(|(at, item)| culprit(item, root, &format!("{pointer}/{at}")));
    }
    for (key, below) in part.as_object()? {
        let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
        let what = match (key.as_str(), below.as_str()) {
            ("$ref", Some(target)) => match target.strip_prefix('#') {
                None => Some(format!(
                    "the `$ref` to `{}` leads out of it",
                    one_line(target)
                )),
                Some(at) if at.starts_with('/') && root.pointer(at).is_none() => Some(format!(
                    "the `$ref` to `{}` leads to nothing in it",
                    one_line(target)
                )),
                Some(_) => None,
            },
            _ => None,
        };
        if let Some(what) = what {
            return Some(Unusable {
                what,
                pointer,
                kind: Kind::None,
            });
        }
        if let Some(found) = culprit(below, root, &pointer) {
            return Some(found);
        }
    }
    None
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
