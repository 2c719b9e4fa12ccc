//! HTTP tools.

use super::*;

const URL: &str = "https://api.example.com/v1/{city}?lang={lang}&key=${SECRET}";

fn url(cases: &[(&str, &[&str])]) {
    let rows: Vec<(&str, &str, &[&str])> =
        cases.iter().map(|(to, lines)| (URL, *to, *lines)).collect();
    table("tools.yaml", &rows);
}

// G5
#[test]
fn field_in_the_host_is_refused() {
    let host = &[
        "29:10: error: the url has a field of the input in its host; write: the host itself; `{field}` only in path and query",
    ];
    url(&[
        ("https://{city}.example.com/v1", host),
        ("https://{city}/v1", host),
        ("https://api.example.com:{city}/v1", host),
        ("https://{city}@api.example.com/v1", host),
        (
            "{city}://api.example.com/v1",
            &[
                "29:10: error: the url does not begin with http:// or https://; write: `http://host:port` or `https://host`, with a path if there is one",
            ],
        ),
        (
            "https://me@api.example.com/v1",
            &[
                "29:10: error: the url has a user name in it; write: it without: a key is written into `headers`, as `${NAME}`",
            ],
        ),
        (
            "https://api.example.com/${BRACES}",
            &[
                "29:10: error: a variable has something in braces in it, as only a field of the input has; write: the variable without `{` and `}`",
            ],
        ),
    ]);
}

#[test]
fn malformed_tool_url_is_refused() {
    url(&[
        (
            "ftp://api.example.com/v1",
            &[
                "29:10: error: the url does not begin with http:// or https://; write: `http://host:port` or `https://host`, with a path if there is one",
            ],
        ),
        (
            "http://169.254.169.254/latest",
            &[
                "29:10: error: the url is an address that is never asked: link-local, where machines keep their secrets; write: the address of the service",
            ],
        ),
        (
            "http://0x7f.1/v1",
            &[
                "29:10: error: the url has an address in an unusual form; write: it like `10.1.2.3` or `[fd12::1]`",
            ],
        ),
        (
            "http://2130706433/v1",
            &[
                "29:10: error: the url has an address in an unusual form; write: it like `10.1.2.3` or `[fd12::1]`",
            ],
        ),
        ("http://[fd12::1]:8080/v1", &[]),
        ("http://localhost:8080/v1", &[]),
        (
            "http://${HOST}/v1",
            &[
                "29:10: warning: the host looks like a name of a private network, where no name is called; write: it, and the name in the setting `dial.allow` of the server",
            ],
        ),
        (
            "http://weather/v1",
            &[
                "29:10: warning: `weather` looks like a name of a private network, where no name is called; write: it, and the name in the setting `dial.allow` of the server",
            ],
        ),
        (
            "https://api.example.com/v1#part",
            &["29:10: error: the url has `#` in it; write: it without what follows"],
        ),
        (
            "https://api.example.com/${MISSING}",
            &[
                "29:10: error: the variable `MISSING` is not set; write: `${MISSING:-https://api.example.com}` for a default, or set MISSING before the start",
            ],
        ),
        (
            "https://api.example.com/v1/ü",
            &[
                "29:10: error: the url has characters that an address cannot carry; write: them percent-encoded",
            ],
        ),
        (
            "https://api.example.com/v1/it's",
            &[
                "29:10: error: the url has characters that an address cannot carry; write: them percent-encoded",
            ],
        ),
        (
            "https://api.example.com/v1/../admin",
            &[
                "29:10: error: the url has `.` or `..` as a part of its path; write: the path without",
            ],
        ),
        (
            "https://api.example.com/${LINES}",
            &[
                "29:10: error: the url has a space in it, once its variables are filled in; write: `http://host:port` or `https://host`, with a path if there is one",
            ],
        ),
    ]);
    table(
        "tools.yaml",
        &[(
            "    url: http://127.0.0.1:9000\n",
            "",
            &["53:5: error: `url` is missing; write: `url: https://api.example.com/v1/{field}`"],
        )],
    );
}

#[test]
fn unknown_field_in_a_url_is_refused() {
    url(&[
        (
            "https://api.example.com/{citty}",
            &["29:10: error: `{citty}` is no property of `input_schema`, did you mean `{city}`?"],
        ),
        (
            "https://api.example.com/v1?when={moment}",
            &[
                "29:10: error: `{moment}` is no property of `input_schema`; write: one of `city`, `day`, `lang` in braces",
            ],
        ),
        (
            "https://api.example.com/{}",
            &[
                "29:10: error: the url has a `{` or `}` that is not around the name of a field; write: `{field}`, or `%7B` and `%7D`",
            ],
        ),
        (
            "https://api.example.com/v1?{day}=1",
            &[
                "29:10: error: the url has a field in the name of a parameter; write: it as a value: `name={field}`",
            ],
        ),
    ]);
    table(
        "tools.yaml",
        &[
            (
                "http://127.0.0.1:9000",
                "\"http://127.0.0.1:9000/{id}\"",
                &[
                    "56:10: error: `{id}` is no property of `input_schema`, which has none; write: `properties: {id: …}` in the schema",
                ],
            ),
            (
                "day: \"{day}\"",
                "day: \"{dai}\"",
                &["30:33: error: `{dai}` is no property of `input_schema`, did you mean `{day}`?"],
            ),
            (
                "day: \"{day}\"",
                "day: \"a\\nb\"",
                &["30:33: error: this cannot be the value of a parameter; write: text on one line"],
            ),
            (
                "day: \"{day}\"",
                "day: \"{1}\"",
                &[
                    "30:33: error: this has a `{` or `}` that is not around the name of a field; write: `{field}`, or no braces",
                ],
            ),
            (
                "day: \"{day}\"",
                "\"{day}\": x",
                &[
                    "30:28: error: `{day}` is not a valid parameter name; write: a plain name; `{field}` only in its value",
                ],
            ),
        ],
    );
}

#[test]
fn bad_tool_headers_and_written_keys_are_refused() {
    let headers = "X-Key: \"${SECRET}\"";
    let key = &[
        "31:22: error: this looks like a key, and a key is never written into a pack; write: `${NAME}`, with the key in the variable `NAME`",
    ];
    table(
        "tools.yaml",
        &[
            (
                headers,
                "\"X Key\": a",
                &[
                    "31:15: error: `X Key` is not a valid header name; write: letters, digits and `-`, for example `x-team`",
                ],
            ),
            (
                headers,
                "X-Key: \"a\\r\\nb: c\"",
                &[
                    "31:22: error: this cannot be the value of a header; write: plain ASCII on one line, 1 to 8192 characters",
                ],
            ),
            (
                headers,
                "X-Key: \"${LINES}\"",
                &[
                    "31:22: error: this cannot be the value of a header; write: plain ASCII on one line, 1 to 8192 characters",
                ],
            ),
            (
                headers,
                "X-Key: \"${LONG}\"",
                &[
                    "31:22: error: this cannot be the value of a header; write: plain ASCII on one line, 1 to 8192 characters",
                ],
            ),
            (
                headers,
                "X-Key: \"${NOT_THERE}\"",
                &[
                    "31:22: error: the variable `NOT_THERE` is not set; write: `${NOT_THERE:-…}` for a default, or set NOT_THERE before the start",
                ],
            ),
            (
                headers,
                "Host: example.com",
                &["31:15: error: the header `Host` is not the pack's to write; write: nothing"],
            ),
            (
                headers,
                "accept: text/plain",
                &["31:35: error: the header `accept` is there twice; write: it once"],
            ),
            (headers, "X-Key: sk-123", key),
            (
                headers,
                "Authorization: letmein",
                &[
                    "31:30: error: this looks like a key, and a key is never written into a pack; write: `${NAME}`, with the key in the variable `NAME`",
                ],
            ),
        ],
    );
}

#[test]
fn http_tool_limits_are_checked() {
    table(
        "tools.yaml",
        &[
            (
                "method: POST",
                "method: post",
                &[
                    "28:13: error: unknown method `post`; write: one of `GET`, `POST`, `PUT`, `PATCH`, `DELETE`",
                ],
            ),
            (
                "timeout_ms: 60000\n    max",
                "timeout_ms: 60001\n    max",
                &["33:17: error: `timeout_ms` is 60001; write: a number from 1 to 60000"],
            ),
            (
                "max_bytes: 1048576",
                "max_bytes: 0",
                &["34:16: error: `max_bytes` is 0; write: a number from 1 to 1048576"],
            ),
            (
                "redirects_max: 0",
                "redirects_max: 6",
                &["35:20: error: `redirects_max` is 6; write: a number from 0 to 5"],
            ),
            (
                "redirects_max: 0",
                "command: [curl]",
                &[
                    "35:14: error: `command` does not fit an http tool; write: `connector: process`, or no `command`",
                ],
            ),
            (
                "redirects_max: 0",
                "enricher_id: facts",
                &[
                    "35:18: error: `enricher_id` does not fit an http tool; write: `connector: ccs_rest` or `connector: ccs_mcp`, or no `enricher_id`",
                ],
            ),
            (
                "    description: Asks.\n",
                "",
                &[
                    "53:5: error: `description` is missing; write: `description: what it does, for the model`",
                ],
            ),
            (
                "{type: object, properties: {city: {}, day: {}, lang: {}}}",
                "{type: objekt}",
                &[
                    "32:19: error: `input_schema` is not a JSON Schema: `\"objekt\"` does not fit at /type; write: for example `{type: object, properties: {…}}`",
                ],
            ),
            (
                "{type: object, properties: {city: {}, day: {}, lang: {}}}",
                "schemas/offer_lst.json",
                &[
                    "32:19: error: there is no file `schemas/offer_lst.json` in the pack, did you mean `schemas/offer_list.json`?",
                ],
            ),
        ],
    );
}
