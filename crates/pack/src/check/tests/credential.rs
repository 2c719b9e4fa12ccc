//! Credentials of data services in `connectors.yaml`. No message repeats a value.

use super::*;
use crate::pack::provider::ApiKeySource;
use crate::pack::tool::{ClientCertificate, KeyHeader};

const SERVICE: &str = "market: {url: \"${CCS}\", timeout_ms: 10000, max_bytes: 1048576}";

/// What is reported of a service at `url` with these further fields.
fn reported_at(url: &str, fields: &str) -> Vec<String> {
    let service = format!("market:\n    url: \"{url}\"\n{fields}");
    reported(&[Swap("connectors.yaml", SERVICE, &service)])
}

fn reported_of(fields: &str) -> Vec<String> {
    reported_at("${CCS}", fields)
}

#[test]
fn credentials_are_read_as_places() {
    let fields = "    headers: {X-Team: shop}
    key_headers:
      Authorization: {key: \"${MARKET_TOKEN}\", prefix: \"Bearer \"}
      x-client-key: {key_file: /run/secrets/market}
    client_certificate: {cert_file: /run/market.pem, key_file: /run/market.key}";
    let service = format!("market:\n    url: https://market.example.com\n{fields}");
    let report = check(&files(&[Swap("connectors.yaml", SERVICE, &service)]), &vars);
    let pack = report
        .pack
        .unwrap_or_else(|| panic!("{:?}", report.findings));
    let service = &pack.services["market"];
    assert_eq!(service.headers, [("x-team".to_owned(), "shop".to_owned())]);
    let token = KeyHeader {
        name: "authorization".to_owned(),
        prefix: "Bearer ".to_owned(),
        // The key itself is never read here, also if the variable is set.
        key: ApiKeySource::Variables(vec!["MARKET_TOKEN".to_owned()]),
        position: (6, 22),
    };
    let key = KeyHeader {
        name: "x-client-key".to_owned(),
        prefix: String::new(),
        key: ApiKeySource::File("/run/secrets/market".to_owned()),
        position: (7, 21),
    };
    assert_eq!(service.key_headers, [token, key]);
    let certificate = ClientCertificate {
        cert_file: "/run/market.pem".to_owned(),
        key_file: "/run/market.key".to_owned(),
        position: (8, 25),
    };
    assert_eq!(service.client_certificate, Some(certificate));
}

#[test]
fn key_that_is_written_into_the_pack_is_refused() {
    let cases = [
        (
            "    headers: {authorization: hush-hush}",
            "connectors.yaml:4:15: error: the header `authorization` carries a key; write: it in `key_headers`: `{key: ${NAME}}`, or `{key_file: …}` with a path",
        ),
        (
            "    headers: {x-team: sk-hush-hush}",
            "connectors.yaml:4:23: error: this looks like a key; write: it in `key_headers`: `{key: ${NAME}}`",
        ),
        (
            "    key_headers: {authorization: {key: hush-hush}}",
            "connectors.yaml:4:40: error: a key is never written into a pack, only the variable that has it; write: `key: ${NAME}`, or `key_file:` with a path",
        ),
        (
            "    key_headers: {authorization: {key: \"${NAME:-hush-hush}\"}}",
            "connectors.yaml:4:40: error: a key cannot have a default: it would be in the pack; write: `key: ${NAME}`",
        ),
        (
            "    key_headers: {authorization: {key: \"${NAME}\", prefix: \"Bearer hush-hush\"}}",
            "connectors.yaml:4:59: error: `prefix` is what stands before the key, such as the name of a scheme; write: `prefix: \"Bearer \"`",
        ),
    ];
    for (fields, expected) in cases {
        let found = reported_of(fields);
        assert_eq!(found, [expected]);
        assert!(!found[0].contains("hush"), "{found:?}");
    }
}

#[test]
fn mistakes_in_credentials_are_refused() {
    let cases = [
        (
            "    key_headers: {authorization: {prefix: \"Bearer \"}}",
            "connectors.yaml:4:34: error: the header `authorization` has no key; write: `key: ${NAME}`, or `key_file:` with a path",
        ),
        (
            "    key_headers: {authorization: {key: \"${A}\", key_file: /a}}",
            "connectors.yaml:4:58: error: `key` and `key_file` are both there; write: one of them",
        ),
        (
            "    key_headers: {authorization: {key_file: secrets/a}}",
            "connectors.yaml:4:45: error: the path of a key file begins with `/`; write: `key_file: /run/secrets/provider`",
        ),
        (
            "    key_headers: {Host: {key: \"${A}\"}}",
            "connectors.yaml:4:19: error: the header `Host` is not the pack's to write; write: nothing",
        ),
        (
            "    headers: {traceparent: x}",
            "connectors.yaml:4:15: error: the header `traceparent` is not the pack's to write; write: nothing",
        ),
        (
            "    headers: {x-a: b}\n    key_headers: {X-A: {key: \"${A}\"}}",
            "connectors.yaml:5:19: error: the header `x-a` is there twice; write: it once",
        ),
        (
            "    client_certificate: {cert_file: /a, key_file: /b}",
            "connectors.yaml:4:25: error: a certificate has no effect over http; write: a `url` that begins with https://",
        ),
    ];
    for (fields, expected) in cases {
        assert_eq!(reported_of(fields), [expected]);
    }
}

#[test]
fn key_over_http_to_another_machine_is_a_warning() {
    let fields = "    key_headers: {authorization: {key: \"${A}\"}}";
    assert_eq!(reported_of(fields), [""; 0], "this machine");
    assert_eq!(reported_at("https://market.example.com", fields), [""; 0]);
    assert_eq!(
        reported_at("http://market.example.com", fields),
        [
            "connectors.yaml:3:10: warning: the keys are sent unencrypted to another machine; write: a `url` that begins with https://"
        ]
    );
}
