//! Mistakes in `prices.yaml`, models without a price, and the bounds of a turn's cost.

use super::*;
use crate::pack::price::ModelPrice;

const FILE: &str = "prices.yaml";

#[test]
fn malformed_prices_are_refused() {
    table(&[
        (
            Swap(FILE, "output: 15,", ""),
            &[
                "prices.yaml:3:23: error: `output` is missing; write: `output: …` (USD per million output tokens, including reasoning)",
            ],
        ),
        (
            Swap(FILE, "input: 3.0", "input: -3.0"),
            &["prices.yaml:3:31: error: `input` is -3.0; write: a number from 0 to 1000000"],
        ),
        (
            Swap(FILE, "cache_write: 3.75", "cache_write: .nan"),
            &["prices.yaml:3:80: error: this should be a number; write: for example 0.25"],
        ),
        (
            Swap(FILE, "cache_write: 3.75", "cache_write: .inf"),
            &["prices.yaml:3:80: error: this should be a number; write: for example 0.25"],
        ),
        (
            Swap(FILE, "input: 3.0", "input: cheap"),
            &["prices.yaml:3:31: error: this should be a number; write: for example 0.25"],
        ),
        (
            Swap(FILE, "cached_input", "cached"),
            &["prices.yaml:3:48: error: unknown field `cached`, did you mean `cached_input`?"],
        ),
        (
            Swap(FILE, "\"local:*\"", "\"local*\""),
            &[
                "prices.yaml:2:3: error: `local*` is not a valid model or beginning of one; write: `\"provider:model\"`, or `\"provider:*\"` for all of them",
            ],
        ),
        (
            Swap(
                FILE,
                "  \"local:*\"",
                "  claude: {input: 1, output: 1}\n  \"local:*\"",
            ),
            &[
                "prices.yaml:2:3: error: `claude` is not a valid model or beginning of one; write: `\"provider:model\"`, or `\"provider:*\"` for all of them",
            ],
        ),
        (
            Swap(
                FILE,
                "  \"local:*\"",
                "  \"a:*b*\": {input: 1, output: 1}\n  \"local:*\"",
            ),
            &[
                "prices.yaml:2:3: error: `a:*b*` is not a valid model or beginning of one; write: `\"provider:model\"`, or `\"provider:*\"` for all of them",
            ],
        ),
        // Nobody uses it, and nobody has to.
        (
            Swap(
                FILE,
                "  \"local:*\"",
                "  \"else:*\": {input: 1, output: 1}\n  \"local:*\"",
            ),
            &[],
        ),
        (Swap(FILE, "\"local:*\"", "\"*\""), &[]),
    ]);
}

#[test]
fn model_without_a_price_is_reported_once() {
    let claude = "routing.yaml:6:21: warning: `anthropic:claude` has no price: its calls count as 0 USD; write: `\"anthropic:claude\": {input: …, output: …}` under `prices:` in prices.yaml";
    let small = "routing.yaml:5:10: warning: `local:small` has no price: its calls count as 0 USD; write: `\"local:small\": {input: …, output: …}` under `prices:` in prices.yaml";
    assert_eq!(reported(&[Drop(FILE)]), [small, claude]);
    let changes = [Swap(FILE, "anthropic:claude", "anthropic:other")];
    assert_eq!(reported(&changes), [claude]);
    let broken = reported(&[Write(FILE, "prices: 7\n")]);
    assert_eq!(broken.len(), 1, "{broken:?}");
}

#[test]
fn good_prices_file_is_fully_read() {
    let pack = check(&files(&[]), &vars).pack.expect("good");
    let claude = ModelPrice {
        input: 3.0,
        output: 15.0,
        cached_input: 0.3,
        cache_write: 3.75,
    };
    assert_eq!(pack.prices.of("anthropic:claude"), Some(claude));
    let changes = [Swap(FILE, ", cached_input: 0.3, cache_write: 3.75", "")];
    let pack = check(&files(&changes), &vars).pack.expect("good");
    let plain = ModelPrice {
        cached_input: 3.0,
        cache_write: 3.0,
        ..claude
    };
    assert_eq!(pack.prices.of("anthropic:claude"), Some(plain));
}

#[test]
fn turn_limits_are_checked() {
    let limits = |extra: &str| format!("calls_max: 8, {extra}");
    let reported = |extra: &str| reported(&[Swap("pack.yaml", "calls_max: 8", &limits(extra))]);
    let cases: &[(&str, &[&str])] = &[
        (
            "tool_calls_max: 0",
            &["pack.yaml:6:69: error: `tool_calls_max` is 0; write: a number from 1 to 1000"],
        ),
        (
            "turn_tokens_max: 0",
            &[
                "pack.yaml:6:70: error: `turn_tokens_max` is 0; write: a number from 1 to 1000000000",
            ],
        ),
        (
            "turn_cost_max_usd: -1",
            &[
                "pack.yaml:6:72: error: `turn_cost_max_usd` is -1; write: a number from 0 to 1000000",
            ],
        ),
        (
            "turn_cost_max_usd: two",
            &["pack.yaml:6:72: error: this should be a number; write: for example 0.25"],
        ),
        (
            "turn_cost_max: 2",
            &[
                "pack.yaml:6:53: error: unknown field `turn_cost_max`, did you mean `turn_cost_max_usd`?",
            ],
        ),
        (
            "tool_calls_max: 4, turn_tokens_max: 5000, turn_cost_max_usd: 0.5",
            &[],
        ),
    ];
    for (extra, expected) in cases {
        assert_eq!(reported(extra), *expected, "{extra}");
    }
    let extra = limits("tool_calls_max: 4, turn_tokens_max: 5000, turn_cost_max_usd: 0.5");
    let changes = [Swap("pack.yaml", "calls_max: 8", &extra)];
    let pack = check(&files(&changes), &vars).pack.expect("good");
    let limits = pack.limits;
    assert_eq!(
        (
            limits.tool_calls_max,
            limits.turn_tokens_max,
            limits.turn_cost_max_usd
        ),
        (4, 5_000, Some(0.5))
    );
}
