//! Schemas are rewritten into the plain form, and what is no schema stays as it is.

use serde_json::json;
use turnwire_event::schema::plain::make_plain;

#[test]
fn texts_become_an_enum_with_their_meaning() {
    let mut schema = json!({
        "description": "How it ended.",
        "oneOf": [
            { "type": "string", "const": "ok", "description": "It\nworked." },
            { "type": "string", "enum": ["late", "lost"] },
        ],
    });
    make_plain(&mut schema);
    let expected = json!({
        "description": "How it ended.\n\n- `ok`: It worked.",
        "type": "string",
        "enum": ["ok", "late", "lost"],
    });
    assert_eq!(schema, expected);
}

#[test]
fn choices_of_objects_and_values_of_properties_stay() {
    let mut schema = json!({
        "oneOf": [{ "type": "object", "properties": { "format": { "const": "uint64" } } }],
        "default": { "format": "uint64", "items": true },
    });
    let before = schema.clone();
    make_plain(&mut schema);
    assert_eq!(schema, before);
}

#[test]
fn descriptions_speak_of_json() {
    let mut schema = json!({ "description": "The turn; `None` without [`Turn`]." });
    make_plain(&mut schema);
    assert_eq!(
        schema,
        json!({ "description": "The turn; null without `Turn`." })
    );
}

#[test]
fn any_value_is_an_object_and_sizes_of_integers_go() {
    let mut schema = json!({ "$defs": { "A": {
        "type": "object",
        "properties": {
            "any": true,
            "list": { "type": "array", "items": true },
            "count": { "type": "integer", "format": "uint64", "minimum": 0 },
            "at": { "type": "string", "format": "date-time" },
        },
        "additionalProperties": true,
    } } });
    make_plain(&mut schema);
    let expected = json!({ "$defs": { "A": {
        "type": "object",
        "properties": {
            "any": {},
            "list": { "type": "array", "items": {} },
            "count": { "type": "integer", "minimum": 0 },
            "at": { "type": "string", "format": "date-time" },
        },
        "additionalProperties": true,
    } } });
    assert_eq!(schema, expected);
}
