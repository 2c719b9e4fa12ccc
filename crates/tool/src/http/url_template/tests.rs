//! Values stay in their field of the URL.

use serde_json::json;
use turnwire_event::code::ToolErrorClass;

use super::*;

fn template(text: &str) -> UrlTemplate {
    UrlTemplate::new(text, &[]).unwrap_or_else(|reason| panic!("{text}: {reason}"))
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other} is not an object"),
    }
}

/// The URL for an input; fields that the template does not have go to the query.
fn filled(template: &UrlTemplate, input: Value) -> Result<String, String> {
    let input = fields(input);
    let query = input.iter().filter(|(name, _)| !template.uses(name));
    let query = query.map(|(k, v)| (k.clone(), v.clone())).collect();
    let url = template.fill_with_query(&input, &query).map_err(|failure| {
        assert_eq!(failure.class, ToolErrorClass::InvalidInput);
        failure.message
    });
    url.map(String::from)
}

#[test]
fn fields_are_filled_in_path_and_query() {
    let query = [
        ("units".to_owned(), "metric".to_owned()),
        ("when".to_owned(), "day-{day}".to_owned()),
        ("a key".to_owned(), "{extra}".to_owned()),
    ];
    let template = UrlTemplate::new(
        "https://api.example:8443/v1/{country}/x-{city}?q={query}&v=1%2F2",
        &query,
    );
    let template = template.expect("a template");
    let input = json!({"country": "at", "city": "Wien", "query": "sun & rain", "day": 3});
    assert_eq!(
        filled(&template, input).as_deref(),
        Ok(
            "https://api.example:8443/v1/at/x-Wien?q=sun%20%26%20rain&v=1%2F2&units=metric&when=day-3"
        )
    );
    let input = json!({
        "country": true, "city": -1.5, "query": ["a", 2], "day": "x=y", "extra": "é",
        "other": "1&2", "many": [1, "b"], "deep": {"a": [1]}, "none": null,
    });
    assert_eq!(
        filled(&template, input).as_deref(),
        Ok(
            "https://api.example:8443/v1/true/x--1.5?q=a&q=2&v=1%2F2&units=metric&when=day-x%3Dy\
            &a%20key=%C3%A9&other=1%262&many=1&many=b&deep=%7B%22a%22%3A%5B1%5D%7D"
        )
    );
}

// G5
#[test]
fn no_value_changes_the_host_or_the_segments() {
    let template = template("https://api.example/v1/{id}/end");
    for (value, stands) in [
        ("a/b", "a%2Fb"),
        ("../../admin", "..%2F..%2Fadmin"),
        ("..%2f", "..%252f"),
        ("%2e%2e", "%252e%252e"),
        ("a\\b", "a%5Cb"),
        ("x?y=1", "x%3Fy%3D1"),
        ("x#frag", "x%23frag"),
        ("@evil.example", "%40evil.example"),
        (":80", "%3A80"),
        ("//evil.example", "%2F%2Fevil.example"),
        ("https://evil.example/", "https%3A%2F%2Fevil.example%2F"),
        ("a\r\nhost: evil", "a%0D%0Ahost%3A%20evil"),
        ("\u{0}", "%00"),
        (" ", "%20"),
        ("\t", "%09"),
        ("...", "..."),
        (";a=1", "%3Ba%3D1"),
        ("{id}", "%7Bid%7D"),
        ("‥", "%E2%80%A5"),
        ("．．", "%EF%BC%8E%EF%BC%8E"),
    ] {
        let url = filled(&template, json!({"id": value}));
        let expected = format!("https://api.example/v1/{stands}/end");
        assert_eq!(url, Ok(expected), "{value:?}");
    }
    for value in ["", ".", ".."] {
        let message = filled(&template, json!({"id": value})).expect_err("no segment");
        assert!(message.contains("empty, `.` or `..`"), "{message}");
    }
    for (value, says) in [
        (json!(null), "missing"),
        (json!([]), "must be a string"),
        (json!({"a": 1}), "must be a string"),
    ] {
        let message = filled(&template, json!({"id": value})).expect_err("no segment");
        assert!(
            message.contains(says) && message.contains("`id`"),
            "{message}"
        );
    }
}

// G5
#[test]
fn adjacent_fields_cannot_form_dot_segments() {
    for (text, input) in [
        ("https://api.example/{a}{b}/x", json!({"a": ".", "b": "."})),
        ("https://api.example/.{a}/x", json!({"a": "."})),
        ("https://api.example/.{a}/x", json!({"a": ""})),
        ("https://api.example/%2e{a}/x", json!({"a": "."})),
        ("https://api.example/%2E{a}/x", json!({"a": ""})),
    ] {
        let message = filled(&template(text), input).expect_err(text);
        assert!(message.contains("`..`"), "{message}");
    }
}

#[test]
fn model_cannot_override_parameters_of_the_pack() {
    let query = [("a&b".to_owned(), "1".to_owned())];
    let template = UrlTemplate::new("https://api.example/?key=s1&n%61me=x", &query).expect("one");
    for name in ["key", "name", "a&b"] {
        let message = filled(&template, json!({name: "mine"})).expect_err(name);
        assert_eq!(message, format!("The field `{name}` cannot be set."));
    }
    assert!(filled(&template, json!({"other": 1})).is_ok());
}

#[test]
fn url_length_is_limited() {
    let template = template("https://api.example/{id}");
    assert!(filled(&template, json!({"id": "x".repeat(8_000)})).is_ok());
    for input in [
        json!({"id": "x".repeat(9_000)}),
        json!({"id": "x", "q": "/".repeat(3_000)}),
    ] {
        let message = filled(&template, input).expect_err("too long");
        assert!(message.contains("too long"), "{message}");
    }
}

// G5
#[test]
fn invalid_urls_of_a_pack_are_errors() {
    for (text, reason) in [
        ("", "must begin with"),
        ("api.example/v1", "must begin with"),
        ("ftp://api.example/", "must begin with"),
        ("file:///etc/passwd", "must begin with"),
        ("gopher://api.example/", "must begin with"),
        ("http://", "must begin with"),
        ("https:///path", "must begin with"),
        ("https://[fe80::1%25eth0]/", "must begin with"),
        ("https://{host}/", "field in its host"),
        ("https://api.{tld}/", "field in its host"),
        ("https://api.example:{port}/", "field in its host"),
        ("{url}", "must begin with"),
        ("{scheme}://api.example/", "must begin with"),
        ("https://user:pass@api.example/", "as a header"),
        ("https://good.example@127.0.0.1/", "as a header"),
        ("https://api.example/#x", "without `#`"),
        ("https://api.example#{x}", "without `#`"),
        ("http://2130706433/", "unusual form"),
        ("http://0x7f.1/", "unusual form"),
        ("http://017700000001/", "unusual form"),
        ("http://127.1/", "unusual form"),
        ("http://127.0.0.1./", "unusual form"),
        ("http://[0::1]:80/", "unusual form"),
        ("http://[::ffff:127.0.0.1]/", "unusual form"),
        ("http://１２７.0.0.1/", "unusual form"),
        ("http://169.254.169.254/latest", "never called"),
        ("http://[fe80::1]/", "never called"),
        ("http://[fd00:ec2::254]/", "never called"),
        ("https://api.example/{", "not around the name"),
        ("https://api.example/}", "not around the name"),
        ("https://api.example/{}", "not around the name"),
        ("https://api.example/{a{b}}", "not around the name"),
        ("https://api.example/a}{b}", "not around the name"),
        ("https://api.example/?a={b", "not around the name"),
        ("https://api.example/?{a}=1", "name of a parameter"),
        ("https://api.example/a b", "percent-encoded"),
        ("https://api.example/ü", "percent-encoded"),
        ("https://api.example/a\\b", "percent-encoded"),
        ("https://api.example\\@evil.example/", "as a header"),
        ("https://api.example/a/../{b}", "not plain"),
        ("https://api.example/%2e%2E/{b}", "not plain"),
    ] {
        let bad = UrlTemplate::new(text, &[]).expect_err(text);
        assert!(bad.contains(reason), "{text}: {bad}");
    }
    for text in [
        "http://127.0.0.1:8080/{a}",
        "http://[::1]/",
        "http://[FD12::1]:81/",
        "https://api.example",
        "HTTPS://api.example".to_lowercase().as_str(),
        "https://Api.Example:443/a//b/",
        "https://api.example?x={y}",
    ] {
        template(text);
    }
}
