//! Compares the result of a turn with the expected result of its case.

use serde::Serialize;
use serde_json::{Value, json};

use crate::regression::test_case::{ExpectedTool, ExpectedTurn};

/// The number of characters shown on each side of the first difference of two texts.
const CONTEXT_CHARS: usize = 40;

/// One field of an [`ExpectedTurn`] that is not as expected; serialised into the report of
/// `turnwire rerun`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CaseDifference {
    /// The name of the field.
    pub(crate) what: &'static str,
    /// The difference as text.
    pub(crate) words: String,
    pub(crate) expected: Value,
    /// The value of the new run.
    pub(crate) came: Value,
}

/// The fields of `observed` that differ from `expected`; absent expected fields are not compared.
pub(crate) fn differences(expected: &ExpectedTurn, observed: &ExpectedTurn) -> Vec<CaseDifference> {
    let mut found = Vec::new();
    let ending = |turn: &ExpectedTurn| (turn.status.clone(), turn.error.clone());
    if expected.status.is_some() && ending(expected) != ending(observed) {
        let text =
            |turn: &ExpectedTurn| match (turn.status.as_deref().unwrap_or_default(), &turn.error) {
                (status, None) => status.to_owned(),
                (status, Some(code)) => format!("{status} ({code})"),
            };
        let value = |turn: &ExpectedTurn| json!({"status": turn.status, "error": turn.error});
        found.push(CaseDifference {
            what: match expected.status == observed.status {
                true => "error",
                false => "status",
            },
            words: format!("expected {}, came {}", text(expected), text(observed)),
            expected: value(expected),
            came: value(observed),
        });
    }
    let text = observed.text.as_deref().unwrap_or_default();
    if let Some(wanted) = expected.text.as_deref().filter(|wanted| *wanted != text) {
        found.push(CaseDifference {
            what: "text",
            words: first_difference(wanted, text),
            expected: json!(wanted),
            came: json!(text),
        });
    }
    let tools = expected.tools.as_ref().map(|wanted| {
        let tools = observed.tools.iter().flatten();
        tools.map(|tool| comparable(tool, wanted)).collect()
    });
    found.extend(compare("tools", &expected.tools, &tools));
    let (one, other) = (expected, observed);
    found.extend(compare("sub_agents", &one.sub_agents, &other.sub_agents));
    found.extend(compare("statuses", &one.statuses, &other.statuses));
    found.extend(compare("components", &one.components, &other.components));
    found.extend(compare("errors", &one.errors, &other.errors));
    found
}

/// `tool` with the optional fields that every expected call of it has: the others are not compared.
fn comparable(tool: &ExpectedTool, wanted: &[ExpectedTool]) -> ExpectedTool {
    let same = || wanted.iter().filter(|one| one.name == tool.name);
    let has_input = same().all(|one| one.input.is_some());
    let has_digest = same().all(|one| one.input_sha256.is_some());
    ExpectedTool {
        input: tool.input.clone().filter(|_| has_input),
        input_sha256: tool.input_sha256.clone().filter(|_| has_digest),
        ..tool.clone()
    }
}

/// Compares lists without regard to order.
fn compare<T: Serialize + PartialEq + Clone>(
    what: &'static str,
    expected: &Option<Vec<T>>,
    observed: &Option<Vec<T>>,
) -> Option<CaseDifference> {
    let expected = expected.as_deref()?;
    let observed = observed.as_deref().unwrap_or_default();
    let mut extra = observed.to_vec();
    let mut missing = Vec::new();
    for one in expected {
        match extra.iter().position(|other| other == one) {
            Some(at) => drop(extra.remove(at)),
            None => missing.push(one.clone()),
        }
    }
    let listed = [("missing", missing), ("not expected", extra)];
    let words = listed.into_iter().filter(|(_, items)| !items.is_empty());
    let words: Vec<String> = words
        .map(|(verb, items)| {
            let items: Vec<String> = items.iter().map(item_text).collect();
            format!("{verb} {}", items.join(", "))
        })
        .collect();
    (!words.is_empty()).then(|| CaseDifference {
        what,
        words: words.join("; "),
        expected: json!(expected),
        came: json!(observed),
    })
}

/// An item of a list as a few words: its fields without the digest.
fn item_text(item: &impl Serialize) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match json!(item) {
        Value::Object(fields) => {
            let visible = fields.iter().filter(|(key, _)| *key != "input_sha256");
            let words: Vec<String> = visible.map(|(_, value)| text(value)).collect();
            words.join(" ")
        }
        other => text(&other),
    }
}

/// Both texts around their first difference.
fn first_difference(expected: &str, observed: &str) -> String {
    let mut pairs = expected.char_indices().zip(observed.chars());
    let at = pairs.find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    let at = at.unwrap_or(expected.len().min(observed.len()));
    format!(
        "expected {}, came {}",
        around(expected, at),
        around(observed, at)
    )
}

/// The characters of `text` on both sides of `at`.
fn around(text: &str, at: usize) -> String {
    let at = text.floor_char_boundary(at);
    let first = text[..at].char_indices().rev().nth(CONTEXT_CHARS - 1);
    let start = first.map_or(0, |(at, _)| at);
    let last = text[at..].char_indices().nth(CONTEXT_CHARS);
    let end = last.map_or(text.len(), |(length, _)| at + length);
    let before = if start > 0 { "…" } else { "" };
    let after = if end < text.len() { "…" } else { "" };
    format!("{:?}", format!("{before}{}{after}", &text[start..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, input: Option<&str>, end: &str) -> ExpectedTool {
        ExpectedTool {
            name: name.into(),
            input: input.map(str::to_owned),
            input_sha256: Some("ab".into()),
            end: end.into(),
        }
    }

    fn observed() -> ExpectedTurn {
        ExpectedTurn {
            status: Some("ok".into()),
            error: None,
            text: Some("It is noon.".into()),
            tools: Some(vec![tool("clock", Some("{}"), "completed")]),
            sub_agents: Some(Vec::new()),
            statuses: Some(vec!["a".into()]),
            components: Some(Vec::new()),
            errors: Some(Vec::new()),
        }
    }

    fn words(expected: &ExpectedTurn) -> Vec<String> {
        let found = differences(expected, &observed());
        let text = |one: CaseDifference| format!("{}: {}", one.what, one.words);
        found.into_iter().map(text).collect()
    }

    #[test]
    fn expected_or_unspecified_values_are_no_difference() {
        assert_eq!(words(&observed()), [""; 0]);
        assert_eq!(words(&ExpectedTurn::default()), [""; 0]);
        let mut loose = observed();
        loose.tools = Some(vec![ExpectedTool {
            input_sha256: None,
            ..tool("clock", None, "completed")
        }]);
        assert_eq!(words(&loose), [""; 0]);
    }

    #[test]
    fn every_difference_has_its_own_text() {
        let expected = ExpectedTurn {
            status: Some("failed".into()),
            error: Some("INTERNAL_ERROR".into()),
            text: Some("It is night.".into()),
            tools: Some(vec![
                tool("clock", Some("{}"), "timeout"),
                tool("echo", Some("hi"), "completed"),
            ]),
            statuses: Some(vec!["a".into(), "b".into()]),
            ..ExpectedTurn::default()
        };
        assert_eq!(
            words(&expected),
            [
                "status: expected failed (INTERNAL_ERROR), came ok",
                "text: expected \"It is night.\", came \"It is noon.\"",
                "tools: missing clock {} timeout, echo hi completed; not expected clock {} completed",
                "statuses: missing b",
            ]
        );
    }

    #[test]
    fn long_texts_are_shown_around_their_first_difference() {
        let text = |word: &str| format!("{}{word}{}", "ä ".repeat(60), " ö".repeat(60));
        let text_of_both = first_difference(&text("ja"), &text("nein"));
        assert!(
            text_of_both.contains("ja ö") && text_of_both.contains("nein ö"),
            "{text_of_both}"
        );
        assert!(text_of_both.chars().count() < 200, "{text_of_both}");
        assert_eq!(first_difference("", "x"), "expected \"\", came \"x\"");
    }
}
