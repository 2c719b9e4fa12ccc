//! Mistakes in `connectors.yaml` and `schemas/`.

use super::*;

#[test]
fn unset_variable_is_reported() {
    table(&[
        (
            Swap("connectors.yaml", "\"${CCS}\"", "\"${CCS_URL}\""),
            &[
                "connectors.yaml:2:17: error: the variable `CCS_URL` is not set; write: `${CCS_URL:-http://127.0.0.1:8422}` for a default, or set CCS_URL before the start",
            ],
        ),
        (
            Swap("connectors.yaml", "\"${CCS}\"", "\"${CCS\""),
            &[
                "connectors.yaml:2:17: error: a variable begins with `${` and does not end; write: `${NAME}` or `${NAME:-default}`",
            ],
        ),
        (
            Swap("connectors.yaml", "\"${CCS}\"", "\"${C CS}\""),
            &[
                "connectors.yaml:2:17: error: `C CS` is not the name of a variable; write: `${NAME}` or `${NAME:-default}`",
            ],
        ),
    ]);
}

#[test]
fn malformed_service_url_is_refused() {
    table(&[
        (
            Swap("connectors.yaml", "\"${CCS}\"", "ftp://127.0.0.1"),
            &[
                "connectors.yaml:2:17: error: the url does not begin with http:// or https://; write: `http://host:port` or `https://host`, with a path if there is one",
            ],
        ),
        (
            Swap("connectors.yaml", "\"${CCS}\"", "\"${NO:-localhost:80}\""),
            &[
                "connectors.yaml:2:17: error: the url does not begin with http:// or https://, once its variables are filled in; write: `http://host:port` or `https://host`, with a path if there is one",
            ],
        ),
        (
            Swap("connectors.yaml", "\"${CCS}\"", "http://"),
            &[
                "connectors.yaml:2:17: error: the url has no host; write: `http://host:port` or `https://host`, with a path if there is one",
            ],
        ),
        (
            Swap("connectors.yaml", "\"${CCS}\"", "http://a b"),
            &[
                "connectors.yaml:2:17: error: the url has a space in it; write: `http://host:port` or `https://host`, with a path if there is one",
            ],
        ),
        (
            Swap("connectors.yaml", "\"${CCS}\"", "http://a:99999"),
            &[
                "connectors.yaml:2:17: error: the url has a port that cannot be one; write: a port from 1 to 65535",
            ],
        ),
        (
            Swap("connectors.yaml", "\"${CCS}\"", "http://me:secret@a"),
            &[
                "connectors.yaml:2:17: error: the url has a user name in it; write: it without: a key is written into `key_headers`",
            ],
        ),
        (
            Swap("connectors.yaml", "\"${CCS}\"", "http://a/?b=c"),
            &[
                "connectors.yaml:2:17: error: the url has `?` or `#` in it; write: it without a query: /v1/enrich is put after it",
            ],
        ),
    ]);
}

/// What the server would refuse when it starts is refused here.
#[test]
fn url_that_cannot_be_dialled_is_refused() {
    let six = "the url has a host in `[…]` that is no IPv6 address; write: an address without a zone, such as `http://[::1]:8422`";
    let four = "the url has a host that looks like an IPv4 address and is none; write: four numbers from 0 to 255, such as `http://127.0.0.1:8422`, or a name";
    let name = "the url has a host that no name can be; write: letters, digits, `-` and `.`, such as `https://ccs.example.com`";
    let never = "the url is an address that is never asked: link-local, where machines keep their secrets; write: the address of the service";
    let slash = "the url has a slash where the host should be; write: `http://host:port` or `https://host`, with a path if there is one";
    let port = "the url has a port that cannot be one; write: a port from 1 to 65535";
    let cases = [
        ("http://[zz]:80", six),
        ("http://[fe80::1%25eth0]/", six),
        ("http://256.256.256.256", four),
        ("http://1.2.3.4.5", four),
        ("http://a%00b/", name),
        ("http://xn--/", name),
        ("http://a|b/", name),
        ("http://a:0/", port),
        ("http:///a/", slash),
        ("http://a\\b/", slash),
        ("http://169.254.169.254/", never),
        ("http://0xa9fea9fe/", never),
        ("http://[fe80::1]/", never),
        ("http://[fd00:ec2::254]:80/", never),
        ("http://[::ffff:169.254.169.254]/", never),
        ("http://[64:ff9b::a9fe:a9fe]/", never),
    ];
    for (url, what) in cases {
        let url = format!("'{url}'");
        assert_eq!(
            reported(&[Swap("connectors.yaml", "\"${CCS}\"", &url)]),
            [format!("connectors.yaml:2:17: error: {what}")],
            "{url}"
        );
    }
    for url in [
        "http://[::1]:8422/",
        "https://ccs.example.com/a/b",
        "http://10.0.0.1",
        "http://bücher.example",
    ] {
        let url = format!("'{url}'");
        assert_eq!(
            reported(&[Swap("connectors.yaml", "\"${CCS}\"", &url)]),
            [""; 0],
            "{url}"
        );
    }
}

#[test]
fn service_limits_are_checked() {
    table(&[
        (
            Swap("connectors.yaml", "url: \"${CCS}\", ", ""),
            &["connectors.yaml:2:11: error: `url` is missing; write: `url: http://127.0.0.1:8422`"],
        ),
        (
            Swap("connectors.yaml", "timeout_ms: 10000", "timeout_ms: 0"),
            &["connectors.yaml:2:39: error: `timeout_ms` is 0; write: a number from 1 to 10000"],
        ),
        (
            Swap("connectors.yaml", "timeout_ms: 10000", "timeout_ms: 10001"),
            &[
                "connectors.yaml:2:39: error: `timeout_ms` is 10001; write: a number from 1 to 10000",
            ],
        ),
        (
            Swap(
                "connectors.yaml",
                "max_bytes: 1048576",
                "max_bytes: 99999999",
            ),
            &[
                "connectors.yaml:2:57: error: `max_bytes` is 99999999; write: a number from 1 to 1048576",
            ],
        ),
    ]);
}

#[test]
fn incomplete_or_duplicate_enricher_is_refused() {
    table(&[
        (
            Swap("connectors.yaml", "service: market", "service: markt"),
            &["connectors.yaml:6:14: error: unknown service `markt`, did you mean `market`?"],
        ),
        (
            Swap("connectors.yaml", "version: \"1.2.0\"", "version: latest"),
            &[
                "connectors.yaml:7:14: error: `latest` is not a valid version; write: the requested version: numbers with points between them, in quotes: `\"1.2.0\"`",
            ],
        ),
        (
            Swap("connectors.yaml", "    version: \"1.2.0\"\n", ""),
            &[
                "connectors.yaml:4:5: error: `version` is missing; write: `version: …` (the requested version: numbers with points between them, in quotes: `\"1.2.0\"`)",
            ],
        ),
        (
            Swap(
                "connectors.yaml",
                "enricher_id: offer_search",
                "enricher_id: offer_search\n    domain_type: offer_list\n    service: market\n    version: \"1\"\n  - enricher_id: offer_search",
            ),
            &[
                "connectors.yaml:8:5: error: the enricher `offer_search` for `offer_list` is there twice; write: one entry for each pair of enricher_id and domain_type",
            ],
        ),
    ]);
}

#[test]
fn invalid_json_schema_is_refused() {
    table(&[
        (
            Swap(
                "connectors.yaml",
                "schemas/offer_list.json",
                "schemas/offers_list.json",
            ),
            &[
                "connectors.yaml:8:21: error: there is no file `schemas/offers_list.json` in the pack, did you mean `schemas/offer_list.json`?",
            ],
        ),
        (
            Swap("connectors.yaml", "schemas/offer_list.json", "7"),
            &[
                "connectors.yaml:8:21: error: `payload_schema` is not a JSON Schema; write: `{type: object, …}`, or a path such as `schemas/offer_list.json`",
            ],
        ),
        (
            Swap(
                "connectors.yaml",
                "schemas/offer_list.json",
                "{type: objekt}",
            ),
            &[
                "connectors.yaml:8:21: error: `payload_schema` is not a JSON Schema: `\"objekt\"` does not fit at /type; write: for example `{type: object, properties: {…}}`",
            ],
        ),
        (
            Write(
                "schemas/offer_list.json",
                "{\"type\": \"object\",\n \"properties\": {,}}\n",
            ),
            &["schemas/offer_list.json:2:17: error: this is not JSON: key must be a string"],
        ),
        (
            Write("schemas/offer_list.json", "[]\n"),
            &[
                "schemas/offer_list.json:1:1: error: this is not a JSON Schema: it is not an object; write: for example `{\"type\": \"object\", \"properties\": {…}}`",
            ],
        ),
        (
            Write("schemas/offer_list.json", "{\"type\": \"objekt\"}\n"),
            &[
                "schemas/offer_list.json:1:10: error: this is not a JSON Schema: `\"objekt\"` does not fit at /type; write: for example `{\"type\": \"object\", \"properties\": {…}}`",
            ],
        ),
        (
            Write(
                "schemas/offer_list.json",
                "{\"$ref\": \"https://example.com/elsewhere.json\"}\n",
            ),
            &[
                "schemas/offer_list.json:1:10: error: this is not a JSON Schema: the `$ref` to `https://example.com/elsewhere.json` is not followed: it must be `#` or `#/…` and lead to a part of the schema; write: for example `{\"type\": \"object\", \"properties\": {…}}`",
            ],
        ),
    ]);
}

#[test]
fn enricher_fields_must_be_in_the_payload_schema() {
    let schema = r#"{type: object, properties: {offers: {type: array, items: {type: object, properties: {key: {type: string}}}}}}"#;
    let written = |fields: &str| format!("{schema}{fields}");
    let reported = |fields: &str| {
        reported(&[Swap(
            "connectors.yaml",
            "schemas/offer_list.json",
            &written(fields),
        )])
    };
    assert_eq!(
        reported(""),
        [
            "connectors.yaml:8:21: error: `items` is `items`, and the payload has no such field in its schema; write: `items: …` with one of `offers`"
        ]
    );
    assert_eq!(
        reported("\n    items: ofers"),
        [
            "connectors.yaml:9:12: error: `items` is `ofers`, and the payload has no such field in its schema; write: `items: …` with one of `offers`"
        ]
    );
    assert_eq!(
        reported("\n    items: offers"),
        [
            "connectors.yaml:8:21: error: `item_id` is `id`, and the item has no such field in its schema; write: `item_id: …` with one of `key`"
        ]
    );
    assert_eq!(
        reported("\n    items: offers\n    item_id: kee"),
        [
            "connectors.yaml:10:14: error: `item_id` is `kee`, and the item has no such field in its schema; write: `item_id: …` with one of `key`"
        ]
    );
    assert_eq!(reported("\n    items: offers\n    item_id: key"), [""; 0]);
}

#[test]
fn schema_file_error_has_the_position_of_the_part() {
    let file = "schemas/offer_list.json";
    let error = "write: for example `{\"type\": \"object\", \"properties\": {…}}`";
    let cases = [
        (
            "{\n  \"type\": \"object\",\n  \"properties\": {\n    \"items\": {\"type\": \"arry\"}\n  }\n}\n",
            format!(
                "{file}:4:23: error: this is not a JSON Schema: `\"arry\"` does not fit at /properties/items/type; {error}"
            ),
        ),
        (
            "{\"type\": \"object\",\n \"properties\": {\"items\": {\"$ref\": \"#/definitions/none\"}}}\n",
            format!(
                "{file}:2:35: error: this is not a JSON Schema: the `$ref` to `#/definitions/none` is not followed: it must be `#` or `#/…` and lead to a part of the schema; {error}"
            ),
        ),
        (
            "{\"type\": \"object\",\n \"properties\": {\"items\": {\"items\": {\"properties\": {\"id\": {\"pattern\": \"(\"}}}}}}\n",
            format!(
                "{file}:2:70: error: this is not a JSON Schema: the `pattern` `(` is not a regular expression; {error}"
            ),
        ),
        (
            "{\"type\": \"object\",\n \"properties\": {\"items\": {\"items\":\n {\"pattern\": \"((a{99}){99}){99}\"}}}}\n",
            format!(
                "{file}:3:2: error: this cannot be checked in bounded time: it is more than 20000 steps for one value, with references followed and repeats written out; write: fewer parts, and `$ref` as `#` or `#/…` from inside the data it describes"
            ),
        ),
        (
            "{\"type\": \"object\",\n \"properties\": {\"items\": {\"items\":\n {\"pattern\": \"^(?!a)b{2}\"}}}}\n",
            format!(
                "{file}:3:14: error: this cannot be checked in bounded time: the `pattern` `^(?!a)b{{2}}` has a look-around or a back-reference; write: a pattern without look-around and back-reference"
            ),
        ),
        (
            "{\"type\": \"object\",\n \"properties\": {\"items\": {\"items\":\n {\"pattern\": \"^\\\\p{L}{4000}$\"}}}}\n",
            format!(
                "{file}:3:14: error: this cannot be checked in bounded time: the `pattern` `^\\p{{L}}{{4000}}$` is too large with its repeats written out; write: a pattern with smaller repeats, or `maxLength`"
            ),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(reported(&[Write(file, text)]), [expected]);
    }
}
