//! Nodes, positions, and types that are read from nodes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

fn error<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
    from_str::<T>(text).expect_err(text).to_string()
}

#[test]
fn scalar_becomes_the_kind_its_type_asks_for() {
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Scalars {
        version: String,
        name: String,
        country: String,
        count: u32,
        hex: u64,
        quoted: u64,
        share: f64,
        on: bool,
        quoted_bool: bool,
        below: i64,
        empty: Option<String>,
        list: Vec<String>,
        map: BTreeMap<String, String>,
    }
    let text = "version: 1.0\nname: 0x10\ncountry: no\ncount: 7\nhex: 0x10\nquoted: \"12\"\nshare: 1\non: yes\nquoted_bool: \"true\"\nbelow: -3\nempty:\nlist:\nmap: ~\n";
    let expected = Scalars {
        version: "1.0".to_owned(),
        name: "0x10".to_owned(),
        country: "no".to_owned(),
        count: 7,
        hex: 16,
        quoted: 12,
        share: 1.0,
        on: true,
        quoted_bool: true,
        below: -3,
        empty: None,
        list: Vec::new(),
        map: BTreeMap::new(),
    };
    assert_eq!(from_str::<Scalars>(text), Ok(expected));
    let text = text
        .replace("1.0", "&v 1.0")
        .replace("name: 0x10", "name: *v");
    assert_eq!(
        from_str::<Scalars>(&text).map(|read| read.name),
        Ok("1.0".to_owned())
    );
}

#[test]
fn value_without_a_type_is_read_as_it_is_written() {
    let text = "a: [1, -2, 1.5, yes, \"7\", ~, text]\nb: {c: {}}\n";
    let expected = json!({"a": [1, -2, 1.5, true, "7", null, "text"], "b": {"c": {}}});
    assert_eq!(from_str::<Value>(text), Ok(expected));
    assert_eq!(from_str::<Value>(""), Ok(Value::Null));
    assert_eq!(
        error::<Value>("a: .nan"),
        "1:4: this should be a number; write: for example 0.25"
    );
    assert_eq!(from_str::<String>(".nan"), Ok(".nan".to_owned()));
}

#[test]
fn positions_are_those_of_keys_values_and_aliases() {
    let text = "one: &a [x, {k: 1}]\ntwo: *a\n";
    let node = parse(text).expect("YAML");
    let at = |node: &Located<YamlNode>| (node.position.line, node.position.column);
    let (key, one) = node.value.get("one").expect("a key");
    assert_eq!((key.position.column, at(one)), (1, (1, 9)));
    let inner = one.step("1").and_then(|map| map.step("k")).expect("a path");
    assert_eq!(at(inner), (1, 17));
    let (_, two) = node.value.get("two").expect("a key");
    assert_eq!(at(two), (2, 6));
    let read: BTreeMap<String, Located<Value>> = from_str(text).expect("a map");
    assert_eq!(read["two"].position, TextPosition { line: 2, column: 6 });
    assert_eq!(read["one"].value, read["two"].value);
}

#[test]
fn error_names_the_position_and_the_remedy() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Shape {
        count: Option<Located<u32>>,
        list: Option<Vec<String>>,
        text: Option<String>,
        kind: Option<Kind>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        First,
        Second,
    }
    let cases = [
        (
            "cuont: 3",
            "1:1: unknown field `cuont`, did you mean `count`?",
        ),
        (
            "count: x",
            "1:8: this should be a whole number; write: 0 or more",
        ),
        (
            "count: -1",
            "1:8: this should be a whole number; write: 0 or more",
        ),
        (
            "count: 1.0",
            "1:8: this should be a whole number; write: 0 or more",
        ),
        (
            "list: [a, [b]]",
            "1:11: this should be text; write: it in quotes if need be",
        ),
        (
            "list: a",
            "1:7: this should be a list; write: `[a, b]`, or a line `- a` for each",
        ),
        (
            "text: {a: b}",
            "1:7: this should be text; write: it in quotes if need be",
        ),
        (
            "[a]",
            "1:1: this should be `key: value` pairs; write: `key: value`, a line for each",
        ),
        (
            "kind: third",
            "1:7: unknown value `third`; write: one of `first`, `second`",
        ),
        (
            "count: 1\ncount: 2",
            "2:1: the key `count` is there twice; write: each key once",
        ),
        (
            "text: [",
            "1:7: the `[` here is not closed; write: `]` where the list ends",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error::<Shape>(text), expected, "{text}");
    }
    assert!(from_str::<Shape>("kind: first").is_ok());
}

#[test]
fn text_after_the_document_is_refused() {
    assert!(error::<Value>("a: 1\n---\nb: 2\n").contains("second document"));
}

#[test]
fn written_value_reads_the_same() {
    let long: Vec<String> = (0..60).map(|n| format!(" word {n}")).collect();
    let odd = "a: b # c\n\t\"q\" \\ {{x}} \u{0} \u{7f} \u{85} \u{2028} \u{feff} \u{fffd} 😀 é '";
    for value in [
        json!({}),
        json!([]),
        json!("true"),
        json!({"a": odd, "no": "no", "": "", "1": "1.0", "-": "- x", "~": "~"}),
        json!([{"when": {"agent": "shop", "call": 1, "says": odd}, "steps": [
            {"said": long}, {"tool": {"name": "x", "input": {"deep": [[{"a": [1, 2.5, null, true]}]]}}},
            {"stop": "end_turn", "usage": {"input_tokens": 18446744073709551615_u64}},
        ]}]),
        json!({"list": [[], {}, [[]], long, "x"], "map": {"inner": {"long": long, "text": odd.repeat(9)}}}),
        json!([[["a"], {"b": long}]]),
        json!([
            "a\n", "\n", " a", "a ", "a\nb\n\n", "0x10", "yes", "NULL", ".inf", "1e3", "- a", "a:",
            "#a"
        ]),
    ] {
        let text = to_string(&value).expect("YAML");
        assert_eq!(from_str(&text), Ok(value), "{text}");
    }
}
