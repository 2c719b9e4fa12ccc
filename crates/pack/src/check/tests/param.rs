//! Mistakes in the headers and the numbers of `providers.yaml`.

use super::*;

const FILE: &str = "providers.yaml";

#[test]
fn bad_provider_headers_and_keys_are_refused() {
    let plain = "this cannot be the value of a header; write: plain ASCII on one line, 1 to 1024 characters";
    let long = format!("X-Team: {}", "x".repeat(1025));
    table(&[
        (
            Swap(FILE, "X-Team: market", "Authorization: market"),
            &[
                "providers.yaml:6:15: error: the header `Authorization` carries a key; write: `key: ${NAME}` of the provider: its dialect knows the header",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "x-api-key: market"),
            &[
                "providers.yaml:6:15: error: the header `x-api-key` carries a key; write: `key: ${NAME}` of the provider: its dialect knows the header",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "x-team: Bearer abc"),
            &[
                "providers.yaml:6:23: error: this looks like a key; write: `key: ${NAME}` of the provider",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "x-team: \"${TEAM}\""),
            &[
                "providers.yaml:6:23: error: variables are not filled in in a header; write: the value itself; a key as `key: ${NAME}`",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "Content-Type: text/html"),
            &[
                "providers.yaml:6:15: error: the header `Content-Type` is not the pack's to write; write: nothing",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "\"x team\": a"),
            &[
                "providers.yaml:6:15: error: `x team` is not a valid header name; write: letters, digits and `-`, for example `x-team`",
            ],
        ),
        (
            Swap(FILE, "X-Team: market", "x-team: Käse"),
            &[&format!("providers.yaml:6:23: error: {plain}")],
        ),
        (
            Swap(FILE, "X-Team: market", "x-team: \"a\\r\\nb: c\""),
            &[&format!("providers.yaml:6:23: error: {plain}")],
        ),
        (
            Swap(FILE, "X-Team: market", &long),
            &[&format!("providers.yaml:6:23: error: {plain}")],
        ),
        (
            Swap(FILE, "X-Team: market", "X-Team: market, x-team: shop"),
            &["providers.yaml:6:31: error: the header `x-team` is there twice; write: it once"],
        ),
    ]);
}

#[test]
fn provider_limits_are_checked() {
    table(&[
        (
            Swap(FILE, "max_tokens: 2048", "max_tokens: 0"),
            &["providers.yaml:7:26: error: `max_tokens` is 0; write: a number from 1 to 1000000"],
        ),
        (
            Swap(FILE, "max_tokens: 2048", "max_tokens: many"),
            &[
                "providers.yaml:7:26: error: this should be a whole number; write: a number from 1 to 1000000",
            ],
        ),
        (
            Swap(FILE, "temperature: 0.2", "temperature: 2.1"),
            &["providers.yaml:7:45: error: `temperature` is 2.1; write: a number from 0 to 2"],
        ),
        (
            Swap(FILE, "effort: low", "effort: Very Low"),
            &[
                "providers.yaml:7:58: error: `Very Low` is not a valid effort; write: `very_low` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap(FILE, "top_p: 0.9", "stream: false"),
            &[
                "providers.yaml:7:71: error: `stream` of a request is not the pack's to write; write: nothing",
            ],
        ),
        (
            Swap(FILE, "top_p: 0.9", "max_tokens: 9"),
            &[
                "providers.yaml:7:71: error: `max_tokens` of a request is not the pack's to write; write: `max_tokens` beside `extra`",
            ],
        ),
        (
            Swap(FILE, "\"big-1\":", "\"big 1\":"),
            &[
                "providers.yaml:8:14: error: `big 1` is not a valid model name; write: the vendor's name, without the provider and without spaces",
            ],
        ),
        (
            Swap(FILE, "thinking_tokens: 1024", "thinking_tokens: 4096"),
            &[
                "providers.yaml:15:49: error: `thinking_tokens` is 4096 and `max_tokens` is 4096: nothing is left for the answer; write: `max_tokens` that is larger: it counts both",
            ],
        ),
        (
            Swap(
                FILE,
                "key_file:",
                "models: {small: {max_tokens: 1000}}\n    key_file:",
            ),
            &[
                "providers.yaml:14:34: error: `thinking_tokens` is 1024 and `max_tokens` is 1000 for `small`: nothing is left for the answer; write: `max_tokens` that is larger: it counts both",
            ],
        ),
        (
            Swap(FILE, "connect_ms: 5000", "connect_ms: 0"),
            &["providers.yaml:9:28: error: `connect_ms` is 0; write: a number from 1 to 600000"],
        ),
        (
            Swap(FILE, "total_ms: 300000", "total_ms: 30000"),
            &[
                "providers.yaml:9:49: warning: `first_byte_ms` is 60000, longer than the whole answer may take; write: at most 30000, or a longer `total_ms`",
            ],
        ),
        (
            Swap(FILE, "attempts: 3", "attempts: 11"),
            &["providers.yaml:10:25: error: `attempts` is 11; write: a number from 1 to 10"],
        ),
        (
            Swap(FILE, "max_ms: 8000", "max_ms: 400"),
            &[
                "providers.yaml:10:37: error: `base_ms` is 500, longer than the longest pause; write: at most 400, or a longer `max_ms`",
            ],
        ),
    ]);
}
