//! Schemas that are refused, and inputs that are not checked.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

mod lenient;
mod pattern;

/// `d1` to `d<n>`, each of the one before twice, as `twice` puts it.
fn doubled(n: usize, twice: impl Fn(Value) -> Value) -> Value {
    let mut defs = serde_json::Map::new();
    defs.insert("d0".to_owned(), json!({"type": "object"}));
    for at in 1..=n {
        let before = json!({"$ref": format!("#/$defs/d{}", at - 1)});
        defs.insert(format!("d{at}"), twice(before));
    }
    json!({"type": "object", "$defs": defs, "$ref": format!("#/$defs/d{n}")})
}

/// An object in an object, `depth` times.
fn nested(field: &str, depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({ field: inner }))
}

/// Checks `input` if it may be checked, and never for long.
fn checked(schema: &Value, input: &Value) -> Option<bool> {
    let from = Instant::now();
    let cost = SchemaCost::new(schema).unwrap_or_else(|error| panic!("{error}: {schema}"));
    let is_valid = cost.allows(input).then(|| {
        let validator = validator(schema).unwrap_or_else(|error| panic!("{error}: {schema}"));
        validator.validate(input).is_ok()
    });
    let took = from.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
    is_valid
}

fn weigh(schema: &Value) -> Result<(), TooComplex> {
    SchemaCost::new(schema).map(|_| ())
}

fn refused(schema: &Value) -> TooComplex {
    weigh(schema).expect_err("too much")
}

#[test]
fn schema_that_doubles_for_one_value_is_refused() {
    for twice in ["allOf", "anyOf", "oneOf"] {
        let error = refused(&doubled(20, |before| json!({ twice: [before, before] })));
        assert!(error.message.contains("more than 20000 steps"), "{error}");
    }
    let both = refused(&doubled(20, |before| json!({"if": before, "then": before})));
    assert!(both.message.contains("steps"), "{both}");
    let by_field = |before| json!({"dependentSchemas": {"a": before, "b": before}});
    assert!(refused(&doubled(20, by_field)).message.contains("steps"));
    // Each takes what is below it again for what is left over.
    let unevaluated = |before| json!({"allOf": [before], "unevaluatedProperties": false});
    assert!(refused(&doubled(20, unevaluated)).message.contains("steps"));
    let good = doubled(6, |before| json!({"allOf": [before, before]}));
    assert_eq!(checked(&good, &json!({})), Some(true));
}

#[test]
fn circular_reference_is_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
            "properties": {"x": {"$ref": "#/$defs/a"}}}),
        json!({"$id": "http://a/b", "allOf": [{"$ref": "http://a/b#"}]}),
    ] {
        let error = refused(&schema);
        assert!(error.message.contains("leads back"), "{schema}: {error}");
    }
    let error = refused(&doubled(100, |before| before));
    assert!(error.message.contains("inside each other"), "{error}");
}

#[test]
fn recursive_tree_schema_is_accepted() {
    let tree = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
    });
    let leaf = json!({"name": "leaf"});
    let input = (0..20).fold(
        leaf,
        |inner, _| json!({"name": "a", "children": [inner, inner.get("x")]}),
    );
    assert_eq!(checked(&tree, &input), Some(false), "null is no child");
    let leaf = json!({"name": "leaf"});
    let input = (0..20).fold(leaf, |inner, _| json!({"name": "a", "children": [inner]}));
    assert_eq!(checked(&tree, &input), Some(true));
    // Two kinds with the same field, as people write expressions.
    let kinds = json!({
        "$defs": {"e": {"anyOf": [
            {"type": "object", "properties": {"op": {"const": "and"}, "of": {"$ref": "#/$defs/e"}}},
            {"type": "object", "properties": {"op": {"const": "or"}, "of": {"$ref": "#/$defs/e"}}},
        ]}},
        "type": "object",
        "$ref": "#/$defs/e",
    });
    assert_eq!(checked(&kinds, &nested("of", 5)), Some(true));
}

#[test]
fn exponential_input_is_not_checked() {
    let both = json!({
        "type": "object",
        "additionalProperties": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    });
    assert_eq!(checked(&both, &nested("a", 5)), Some(true));
    assert_eq!(checked(&both, &nested("a", 60)), None);
    let list = json!({"type": ["object", "array"], "additionalProperties": {"$ref": "#"},
        "items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}});
    let deep = (0..60).fold(json!([]), |inner, _| json!([inner]));
    assert_eq!(checked(&list, &json!({"a": deep})), None);
    // A way that doubles with the depth of the schema and not of the data.
    let wide = doubled(
        40,
        |before| json!({"properties": {"a": before, "b": before}}),
    );
    assert_eq!(checked(&wide, &nested("a", 30)), Some(true));
}

#[test]
fn heaviest_accepted_schema_is_checked_quickly() {
    let parts: Vec<Value> = (0..3_000)
        .map(|at| json!({"maxLength": 5, "title": at.to_string()}))
        .collect();
    let many = json!({"type": "object", "additionalProperties": {"anyOf": parts}});
    let fields: serde_json::Map<String, Value> = (0..100)
        .map(|at| (at.to_string(), json!("longer than five")))
        .collect();
    assert_eq!(checked(&many, &Value::Object(fields.clone())), Some(false));
    let extra: serde_json::Map<String, Value> = (0..3_000)
        .map(|at| (at.to_string(), json!("longer than five")))
        .collect();
    assert_eq!(checked(&many, &Value::Object(extra)), None);
    // A stack that is used as deep as it may be.
    let chain = doubled(60, |before| json!({"allOf": [before]}));
    assert!(refused(&chain).message.contains("inside each other"));
    let mut deep = doubled(28, |before| json!({"anyOf": [before]}));
    deep["$defs"]["d0"] = json!({"type": "object", "additionalProperties": {"$ref": "#"}});
    assert_eq!(checked(&deep, &nested("a", 3)), Some(true));
    assert_eq!(checked(&deep, &nested("a", 30)), None);
}

#[test]
fn unsupported_reference_is_refused() {
    for (schema, reported, pointer) in [
        (json!({"$ref": "#a"}), "`#a` is not followed", "/$ref"),
        (
            json!({"properties": {"x": {"$ref": "#/none"}}}),
            "`#/none`",
            "/properties/x/$ref",
        ),
        (json!({"$ref": "http://a/b"}), "`http://a/b`", "/$ref"),
        (json!({"$dynamicRef": "#"}), "`$dynamicRef`", "/$dynamicRef"),
        (
            json!({"$defs": {"a": {"$id": "b"}}}),
            "a `$id` inside",
            "/$defs/a",
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "items": [{"id": "b"}]}),
            "an `id` inside",
            "/items/0",
        ),
    ] {
        let error = refused(&schema);
        let reported = reported.replace("an `id`", "a `id`");
        assert!(error.message.contains(&reported), "{error}");
        assert_eq!(error.pointer, pointer);
    }
    for good in [
        json!({"$id": "http://a/b", "properties": {"$id": {"$ref": "http://a/b#/$defs/c d"}, "id": {"$ref": "#/$defs/c%20d"}}, "$defs": {"c d": {"id": "x"}}}),
        json!({"$defs": {"a/b~c": {}}, "items": {"$ref": "#/$defs/a~1b~0c"}}),
    ] {
        assert_eq!(weigh(&good), Ok(()), "{good}");
    }
}

#[test]
fn id_inside_data_is_accepted() {
    let file = json!({"$id": "a", "id": "b"});
    for good in [
        json!({"properties": {"x": {"default": file}}}),
        json!({"examples": [file], "const": file}),
        json!({"properties": {"x": {"enum": [file, {"y": file}]}}}),
    ] {
        assert_eq!(weigh(&good), Ok(()), "{good}");
    }
    // A field may be called as a keyword is, and data is not a part that is referred to.
    for (bad, reported, pointer) in [
        (
            json!({"properties": {"default": {"$id": "a"}}}),
            "a `$id` inside",
            "/properties/default",
        ),
        (
            json!({"default": {"x": {"$id": "a"}}, "items": {"$ref": "#/default/x"}}),
            "is not followed",
            "/items/$ref",
        ),
    ] {
        let error = refused(&bad);
        assert!(error.message.contains(reported), "{error}");
        assert_eq!(error.pointer, pointer);
    }
}

/// Schemas and inputs whose count or check takes long if a cost is not charged where it arises.
fn hostile_schemas() -> Vec<(Value, Value)> {
    let nested_list = (0..20).fold(json!(vec![1; 30_000]), |inner, _| json!([inner]));
    let wide = json!({"allOf": vec![json!({}); 6_400], "items": {"$ref": "#/$defs/a"}});
    let key = "k".repeat(30_000);
    let many = |name: &str| json!({"allOf": vec![json!({"$ref": format!("#/$defs/{name}")}); 14]});
    let long_reference = json!({
        "$defs": {&key: {}, "a": {"$ref": format!("#/$defs/{key}")}, "b": many("a"), "c": many("b")},
        "properties": {"x": {"items": {"$ref": "#/$defs/c"}}},
    });
    let hidden_pattern = json!({
        "properties": {"patternProperties": {"(x?[xy]){2000}z": {}}},
        "allOf": [{"$ref": "#/properties"}],
    });
    let names = (0..30).map(|at| (format!("{at}{}", "x".repeat(2_000)), json!(1)));
    let formats = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"allOf": vec![json!({"format": "uri"}); 1_600]}},
        "properties": {"x": {"allOf": vec![json!({"$ref": "#/definitions/a"}); 8]}},
    });
    let unknown = (0..5_000).map(|at| (format!("x{at}"), json!(1)));
    let unknown_keywords =
        json!({"properties": {"x": {"items": Value::Object(unknown.collect())}}});
    vec![
        (
            json!({"$defs": {"a": wide}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
            json!({ "x": nested_list }),
        ),
        (long_reference, json!({"x": vec![1; 700]})),
        (hidden_pattern, Value::Object(names.collect())),
        (formats, json!({"x": "x".repeat(60_000)})),
        (unknown_keywords, json!({"x": vec![1; 30_000]})),
    ]
}

#[test]
fn cost_of_hostile_schemas_is_charged_where_it_arises() {
    let verdicts = hostile_schemas().into_iter().map(|(schema, input)| {
        let cost = SchemaCost::new(&schema);
        cost.map(|cost| cost.allows(&input)).ok()
    });
    let verdicts: Vec<Option<bool>> = verdicts.collect();
    // The long reference is resolved once, and unknown keywords are never looked at: both are cheap.
    let (refused, cheap) = (Some(false), Some(true));
    assert_eq!(verdicts, [refused, cheap, refused, refused, cheap]);
}
