//! Tests of the text that a JSON object is held as.

use serde_json::json;

use super::*;

fn read(json: &str) -> Result<JsonObject, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn read_up_to(json: &str, bytes_max: usize) -> Result<JsonObject, OversizedObject> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    JsonObject::read_up_to(&mut deserializer, bytes_max).expect("JSON")
}

#[test]
fn text_is_what_a_map_would_be_written_as() {
    for json in [
        "{}",
        " { } ",
        r#"{ "a" : [ 1 , -2 , 1.50, 1e2, -0.0, 18446744073709551615 ] }"#,
        r#"{"a":1e400}"#,
        r#"{"a":"\u00e9\n\u0001\/\ud83d\ude00","\u0061b":null,"c":[true,false,[],{}]}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"x":[{"k":{"a":1,"a":2}}],"y":0}"#,
    ] {
        let Ok(map) = serde_json::from_str::<Map<String, Value>>(json) else {
            assert!(read(json).is_err(), "{json}");
            continue;
        };
        let expected = Value::Object(map.clone()).to_string();
        let object = read_up_to(json, 1_000).expect("a small object");
        assert_eq!(object.as_json(), expected);
        assert_eq!(object, JsonObject::from(map.clone()));
        assert_eq!(object.is_empty(), map.is_empty());
        assert_eq!(object.to_map(), map);
        // As JSON text, as a value, and from a value.
        assert_eq!(serde_json::to_string(&object).expect("JSON"), expected);
        let value = serde_json::to_value(&object).expect("JSON");
        assert_eq!(value, Value::Object(map));
        let from_value = serde_json::from_value::<JsonObject>(value).expect("an object");
        assert_eq!(from_value, object);
    }
}

#[test]
fn other_values_and_deep_ones_are_refused() {
    let of_map = |json: &str| serde_json::from_str::<Map<String, Value>>(json).map(drop);
    let deep = format!("{}0{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    for json in [
        "[]",
        "null",
        "7",
        r#""a""#,
        "{",
        r#"{"a":}"#,
        r#"{"a":"\ud800"}"#,
        &deep,
    ] {
        let refused = read(json).expect_err("no object");
        assert_eq!(refused, of_map(json).expect_err("no map").to_string());
    }
}

#[test]
fn large_object_is_counted_and_not_kept() {
    let json = format!(r#"{{ "a" : [ {} 0 ] }}"#, r#"{ "" : 0 } , "#.repeat(10_000));
    let compact = read(&json).expect("an object");
    let bytes = compact.as_json().len();
    assert_eq!(read_up_to(&json, bytes), Ok(compact));
    assert_eq!(read_up_to(&json, bytes - 1), Err(OversizedObject { bytes }));
    let mut text = BoundedText::new(100);
    for _ in 0..1_000 {
        text.push_bytes(b"0123456789");
        assert!(text.text.capacity() <= 200);
    }
    assert_eq!(text.bytes, 10_000);
}

#[test]
fn fields_are_read_set_and_removed() {
    let mut object = read(r#"{"a":{"b":[1]},"b":"x","c\n":2}"#).expect("an object");
    assert_eq!(object.get("a"), Some(json!({"b": [1]})));
    assert_eq!(object.get("c\n"), Some(json!(2)));
    assert_eq!(object.get("d"), None);
    assert_eq!(object.get_str("b").as_deref(), Some("x"));
    assert_eq!(object.get_str("a"), None);
    object.set("b", &json!("y"));
    object.set("d", &json!(["z"]));
    assert_eq!(
        object.as_json(),
        r#"{"a":{"b":[1]},"b":"y","c\n":2,"d":["z"]}"#
    );
    assert_eq!(object.remove("e"), None);
    for (name, value) in [
        ("a", json!({"b": [1]})),
        ("d", json!(["z"])),
        ("c\n", json!(2)),
    ] {
        assert_eq!(object.remove(name), Some(value));
    }
    assert_eq!(object.remove("b"), Some(json!("y")));
    assert!(object.is_empty());
    object.set("a", &json!(1));
    assert_eq!(object.as_json(), r#"{"a":1}"#);
}

#[test]
fn copies_share_the_text() {
    let object = read(r#"{"a":1}"#).expect("an object");
    let copy = object.clone();
    assert!(std::ptr::eq(object.as_json(), copy.as_json()));
    assert_eq!(size_of::<JsonObject>(), 16);
}
