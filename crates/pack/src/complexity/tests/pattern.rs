//! Patterns that are used and those that are not.

use super::*;
use crate::complexity::pattern::Pattern;

fn with(pattern: &str) -> Value {
    json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
}

#[test]
fn pattern_cost_is_bounded() {
    let long = json!({"a": "a".repeat(60_000)});
    let short = json!({"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"});
    let uuid = "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000)$";
    let fields: serde_json::Map<String, Value> = (0..100)
        .map(|at| (format!("f{at}"), json!({"pattern": uuid})))
        .collect();
    assert_eq!(weigh(&json!({"properties": fields})), Ok(()));
    assert_eq!(checked(&with(r"\S"), &long), Some(true));
    assert_eq!(checked(&with("(a+)+$"), &short), Some(false));
    assert_eq!(checked(&with("(a{1,50}){1,50}$"), &long), None);
    let steps = refused(&with("((a{100}){100}){100}"));
    assert!(steps.message.contains("steps"), "{steps}");
    let fields: serde_json::Map<String, Value> = (0..1_000)
        .map(|at| (at.to_string(), json!({"pattern": ".{1,1000}"})))
        .collect();
    let steps = refused(&json!({"properties": fields}));
    assert!(steps.message.contains("steps"), "{steps}");
    // Each is replaced by reading all of it again.
    let classes = refused(&with(&r"\s\d".repeat(5_000)));
    assert_eq!(classes.limit, ComplexityLimit::PatternSize, "{classes}");
    assert_eq!(weigh(&with(&r"\s\d".repeat(20))), Ok(()));
    assert_eq!(
        checked(
            &json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"format": "regex"}}}),
            &json!({"a": "((((a{900}){900}){900}){900}"})
        ),
        Some(true)
    );
}

#[test]
fn backtracking_pattern_is_refused() {
    // Such a pattern can give up, and then the whole check is run again, many times.
    for pattern in [
        r"^(a|a)*\1$",
        "^(?=(a+)+$)",
        "(?<!a)b{2,5}",
        "^(?!x).{1,4096}$",
        r"^(?<q>.)\k<q>$",
        r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
    ] {
        let error = refused(&with(pattern));
        assert_eq!(
            (error.limit, &*error.pointer),
            (ComplexityLimit::Backtracking, "/properties/a/pattern"),
            "{error}"
        );
        assert!(
            error.message.contains("look-around or a back-reference"),
            "{error}"
        );
        let key = refused(&json!({"patternProperties": {pattern: {}}}));
        assert_eq!(key.limit, ComplexityLimit::Backtracking);
        assert!(key.pointer.starts_with("/patternProperties/"), "{key:?}");
        assert!(validator(&with(pattern)).is_err(), "{pattern}");
    }
    assert_eq!(refused(&with("(")).limit, ComplexityLimit::PatternSyntax);
}

#[test]
fn common_patterns_are_accepted() {
    for (pattern, is_valid, not) in [
        (
            r"^[\p{L}\p{N} .'-]{1,50}$",
            "Zoë O'Neil".to_owned(),
            "a/b".to_owned(),
        ),
        ("^.{1,4096}$", "a".repeat(4_096), "a".repeat(4_097)),
        ("^.{1,4096}$", "ü".repeat(4_096), String::new()),
        (r"^[\s\S]{1,5000}$", "a\n".repeat(2_500), "a".repeat(60_000)),
        (r"^\w{1,19000}$", "a".repeat(19_000), "-".to_owned()),
        (r"\S{1,500}", "a".repeat(60_000), " ".repeat(60_000)),
    ] {
        assert_eq!(checked(&with(pattern), &json!({"a": is_valid})), Some(true));
        assert_eq!(checked(&with(pattern), &json!({"a": not})), Some(false));
    }
    let any = with(r"[\s\S]{0,5000}");
    assert_eq!(checked(&any, &json!({"a": "a".repeat(60_000)})), Some(true));
}

#[test]
fn large_pattern_is_refused_for_its_size() {
    let error = refused(&with(r"^\p{L}{4000}$"));
    assert_eq!(error.limit, ComplexityLimit::PatternSize);
    assert!(
        error.message.contains("is too large with its repeats"),
        "{error}"
    );
    let fields: serde_json::Map<String, Value> = (0..20)
        .map(|at| {
            (
                at.to_string(),
                json!({"pattern": format!("^{at}\\p{{L}}{{200}}$")}),
            )
        })
        .collect();
    let error = refused(&json!({"properties": fields}));
    assert_eq!(error.limit, ComplexityLimit::PatternSize);
    assert!(
        error.message.contains("together with the others"),
        "{error}"
    );
}

#[test]
fn pattern_weight_counts_repeats() {
    for (pattern, expected) in [
        ("", 1),
        ("abc", 3),
        (r"\d{4}-\d{2}", 7),
        ("[a-z]{64}", 64),
        ("(ab){3}", 9),
        ("((a{10}){10}){10}", 1_110),
        ("a{2,}", 2),
        ("a{1,30}", 30),
        (r"\p{L}{2}", 8),
        (
            "((((a{4000000000}){4000000000}){4000000000}){4000000000})",
            u64::MAX,
        ),
        ("[{5}]", 1),
    ] {
        assert_eq!(Pattern::new(pattern).weight, expected, "{pattern}");
    }
    let huge = refused(&with("a{99999999999999999999}"));
    assert_eq!(huge.limit, ComplexityLimit::PatternSize);
}

#[test]
fn anchored_repeat_costs_one_step_a_character() {
    let text = "a".repeat(8_000);
    for (pattern, cost) in [
        ("^a{1,500}$", 2_000),
        (r"^\p{L}{1,500}$", 5_000),
        ("[^a]{1,500}", 1_000),
        ("[^a]{3,500}", 3_000),
        ("^a{1,500}b{1,500}$", 502_000),
        // These may be at many counts at a time.
        ("a{1,500}$", 501_000),
        ("^a*a{1,500}$", 503_000),
        ("^a{1,50}{1,10}$", 502_000),
        ("^(a{1,50}){1,10}$", 512_000),
        ("^a{1,500}|a{1,500}$", 1_002_000),
    ] {
        assert_eq!(Pattern::new(pattern).cost(&text), cost, "{pattern}");
    }
}
