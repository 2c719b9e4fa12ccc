//! Schemas without the patterns that are not tried here.

use super::*;

#[test]
fn only_unsupported_patterns_are_removed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "mail": {"type": "string", "pattern": "^(?!x)a", "maxLength": 5},
            "word": {"type": "string", "pattern": "^a+$"},
            "pattern": {"type": "string", "default": {"pattern": "(?=a)"}},
            "odd": {"pattern": r"\A\Z"},
            "list": {"items": {"anyOf": [{"pattern": r"(a)\1"}, {"type": "null"}]}},
        },
        "additionalProperties": false,
    });
    let mut expected = schema.clone();
    let fields = &mut expected["properties"];
    fields["mail"] = json!({"type": "string", "maxLength": 5});
    fields["odd"] = json!({});
    fields["list"] = json!({"items": {"anyOf": [{}, {"type": "null"}]}});
    assert_eq!(without_unsupported_patterns(&schema), expected);
    assert_eq!(without_unsupported_patterns(&expected), expected);
    assert_eq!(
        checked(&expected, &json!({"mail": "yy", "word": "aa"})),
        Some(true)
    );
    assert_eq!(checked(&expected, &json!({"word": "b"})), Some(false));
}

#[test]
fn lenient_schema_refuses_nothing_more() {
    for (schema, expected) in [
        (
            json!({"patternProperties": {"^(?!a)": {"type": "null"}, "^a": {"type": "null"}}, "additionalProperties": false}),
            json!({"patternProperties": {"^a": {"type": "null"}}}),
        ),
        (
            json!({"allOf": [{"patternProperties": {"^(?!a)": {}}}], "unevaluatedProperties": false}),
            json!({"allOf": [{"patternProperties": {}}]}),
        ),
        (
            json!({"properties": {"a": {"not": {"pattern": "(?=a)"}, "type": "string"}}}),
            json!({"properties": {"a": {"type": "string"}}}),
        ),
        (
            json!({"oneOf": [{"pattern": "(?=a)"}, {"pattern": "b"}]}),
            json!({"anyOf": [{}, {"pattern": "b"}]}),
        ),
        (
            json!({"$defs": {"a": {"pattern": "(?=a)"}}, "if": {"$ref": "#/$defs/a"}, "then": {"minLength": 5}, "not": {"type": "null"}}),
            json!({"$defs": {"a": {}}, "then": {"minLength": 5}, "not": {"type": "null"}}),
        ),
    ] {
        assert_eq!(without_unsupported_patterns(&schema), expected);
        assert_eq!(weigh(&expected), Ok(()));
    }
    // As it is, where all is tried.
    let full = json!({"oneOf": [{"pattern": "a"}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"pattern": "b"}}, "unevaluatedProperties": false});
    assert_eq!(without_unsupported_patterns(&full), full);
}

#[test]
fn number_of_compiled_patterns_is_bounded() {
    let fields: serde_json::Map<String, Value> = (0..2_000)
        .map(|at| {
            (
                at.to_string(),
                json!({"pattern": format!("a{{900}}{at}(?=a)")}),
            )
        })
        .collect();
    let many = without_unsupported_patterns(&json!({"properties": fields}));
    assert_eq!(refused(&many).limit, ComplexityLimit::Backtracking);
}
