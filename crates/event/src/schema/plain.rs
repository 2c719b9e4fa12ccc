//! Rewrites generated schemas into the plain subset of JSON Schema that code generators and strict
//! validators read: closed lists as `enum`, `{}` for any value, formats that are registered.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::{Map, Value};

/// The formats that strict validators know. Sizes of integers are not among them: the bounds of an
/// integer are its `minimum` and `maximum`.
const FORMATS: [&str; 4] = ["date", "date-time", "double", "uuid"];

/// The keywords whose value is one schema that may be `true`.
const SCHEMA_KEYWORDS: [&str; 2] = ["items", "propertyNames"];

/// Rewrites `schema` and everything below it.
pub fn make_plain(schema: &mut Value) {
    for_each_schema(schema, &|keywords| {
        drop_format(keywords);
        list_values(keywords);
        open_any(keywords);
        translate(keywords);
    });
}

/// Removes the formats that strict validators refuse from `schema` and everything below it.
pub fn drop_unknown_formats(schema: &mut Value) {
    for_each_schema(schema, &drop_format);
}

/// Removes `additionalProperties: false`, for what the server writes: it may gain members.
pub fn allow_new_members(schema: &mut Value) {
    for_each_schema(schema, &|keywords| {
        if keywords.get("additionalProperties") == Some(&Value::Bool(false)) {
            keywords.shift_remove("additionalProperties");
        }
    });
}

fn for_each_schema(schema: &mut Value, rewrite: &impl Fn(&mut Map<String, Value>)) {
    fn visit(schema: &mut Schema, rewrite: &impl Fn(&mut Map<String, Value>)) {
        if let Some(keywords) = schema.as_object_mut() {
            rewrite(keywords);
        }
        transform_subschemas(&mut |schema: &mut Schema| visit(schema, rewrite), schema);
    }
    if let Ok(schema) = <&mut Schema>::try_from(schema) {
        visit(schema, rewrite);
    }
}

fn drop_format(keywords: &mut Map<String, Value>) {
    let is_unknown = |format: &Value| !FORMATS.iter().any(|known| format == known);
    if keywords.get("format").is_some_and(is_unknown) {
        keywords.shift_remove("format");
    }
}

/// Replaces a `oneOf` of texts by an `enum`, with what each text means in the description.
fn list_values(keywords: &mut Map<String, Value>) {
    let Some(choices) = keywords.get("oneOf").and_then(Value::as_array) else {
        return;
    };
    let (mut values, mut meanings) = (Vec::new(), String::new());
    for choice in choices {
        let texts: Vec<&Value> = match (&choice["const"], &choice["enum"]) {
            (text @ Value::String(_), Value::Null) => vec![text],
            (Value::Null, Value::Array(texts)) if texts.iter().all(Value::is_string) => {
                texts.iter().collect()
            }
            _ => return,
        };
        if let ([text], Some(meaning)) = (&texts[..], choice["description"].as_str()) {
            let text = text.as_str().unwrap_or_default();
            let meaning = meaning.replace('\n', " ");
            meanings.push_str(&format!("\n- `{text}`: {meaning}"));
        }
        values.extend(texts.into_iter().cloned());
    }
    let about = keywords.get("description").and_then(Value::as_str);
    let about = format!("{}\n{meanings}", about.unwrap_or_default());
    keywords.shift_remove("oneOf");
    keywords.insert("type".to_owned(), "string".into());
    keywords.insert("enum".to_owned(), values.into());
    keywords.insert("description".to_owned(), about.trim().into());
}

/// Replaces the schema `true` by `{}`, which means the same and is an object like all others.
fn open_any(keywords: &mut Map<String, Value>) {
    let open = |schema: &mut Value| {
        if *schema == Value::Bool(true) {
            *schema = Value::Object(Map::new());
        }
    };
    for keyword in SCHEMA_KEYWORDS {
        keywords.get_mut(keyword).into_iter().for_each(open);
    }
    let properties = keywords
        .get_mut("properties")
        .and_then(Value::as_object_mut);
    properties
        .into_iter()
        .flat_map(Map::values_mut)
        .for_each(open);
}

/// Changes the words of Rust in a description into those of JSON.
fn translate(keywords: &mut Map<String, Value>) {
    if let Some(Value::String(about)) = keywords.get_mut("description") {
        let text = about.replace("`None`", "null");
        *about = text.replace("[`", "`").replace("`]", "`");
    }
}
