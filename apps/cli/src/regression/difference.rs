//! Compares the result of a turn with the result that its case expects.

use serde::Serialize;
use serde_json::{Value, json};

use crate::regression::test_case::{CalledTool, TurnResult};

/// The number of characters shown on each side of the first difference of two texts.
const CONTEXT_CHARS: usize = 40;

/// One field of a [`TurnResult`] that is not as expected; an entry of the JSON report of
/// `turnwire rerun`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CaseDifference {
    /// The name of the field; `time` for a turn that exceeded the time limit.
    #[serde(rename = "what")]
    pub(crate) field: &'static str,
    #[serde(rename = "words")]
    pub(crate) description: String,
    pub(crate) expected: Value,
    #[serde(rename = "came")]
    pub(crate) observed: Value,
}

/// The fields of `observed` that differ from `expected`; fields that are absent from `expected` are
/// not compared.
pub(crate) fn compare_results(expected: &TurnResult, observed: &TurnResult) -> Vec<CaseDifference> {
    let mut differences = Vec::new();
    differences.extend(compare_endings(expected, observed));
    let observed_text = observed.text.as_deref().unwrap_or_default();
    if let Some(expected_text) = expected.text.as_deref()
        && expected_text != observed_text
    {
        differences.push(CaseDifference {
            field: "text",
            description: describe_text_difference(expected_text, observed_text),
            expected: json!(expected_text),
            observed: json!(observed_text),
        });
    }
    let observed_tools = expected.tools.as_ref().map(|expected_tools| {
        let tools = observed.tools.iter().flatten();
        let compared = tools.map(|tool| only_compared_fields(tool, expected_tools));
        compared.collect()
    });
    let lists = [
        compare_lists("tools", &expected.tools, &observed_tools),
        compare_lists("sub_agents", &expected.sub_agents, &observed.sub_agents),
        compare_lists("statuses", &expected.statuses, &observed.statuses),
        compare_lists("components", &expected.components, &observed.components),
        compare_lists("errors", &expected.errors, &observed.errors),
    ];
    differences.extend(lists.into_iter().flatten());
    differences
}

/// Compares status and error code, as one field.
fn compare_endings(expected: &TurnResult, observed: &TurnResult) -> Option<CaseDifference> {
    expected.status.as_ref()?;
    let is_same_status = expected.status == observed.status;
    if is_same_status && expected.error == observed.error {
        return None;
    }
    let text = |turn: &TurnResult| match (turn.status.as_deref().unwrap_or_default(), &turn.error) {
        (status, None) => status.to_owned(),
        (status, Some(code)) => format!("{status} ({code})"),
    };
    let value = |turn: &TurnResult| json!({"status": turn.status, "error": turn.error});
    Some(CaseDifference {
        field: if is_same_status { "error" } else { "status" },
        description: format!("expected {}, got {}", text(expected), text(observed)),
        expected: value(expected),
        observed: value(observed),
    })
}

/// `tool` without the optional fields that are not compared: an optional field is compared if every
/// expected call of the same tool has it.
fn only_compared_fields(tool: &CalledTool, expected_tools: &[CalledTool]) -> CalledTool {
    let expected_calls = || expected_tools.iter().filter(|call| call.name == tool.name);
    let is_input_compared = expected_calls().all(|call| call.input.is_some());
    let is_hash_compared = expected_calls().all(|call| call.input_sha256.is_some());
    CalledTool {
        input: tool.input.clone().filter(|_| is_input_compared),
        input_sha256: tool.input_sha256.clone().filter(|_| is_hash_compared),
        ..tool.clone()
    }
}

/// Compares two lists without regard to order; `None` if they are equal or nothing is expected.
fn compare_lists<T: Serialize + PartialEq + Clone>(
    field: &'static str,
    expected: &Option<Vec<T>>,
    observed: &Option<Vec<T>>,
) -> Option<CaseDifference> {
    let expected = expected.as_deref()?;
    let observed = observed.as_deref().unwrap_or_default();
    let mut extra = observed.to_vec();
    let mut missing = Vec::new();
    for item in expected {
        match extra.iter().position(|other| other == item) {
            Some(at) => drop(extra.remove(at)),
            None => missing.push(item.clone()),
        }
    }
    let parts = [("missing", missing), ("not expected", extra)];
    let parts = parts.into_iter().filter(|(_, items)| !items.is_empty());
    let descriptions: Vec<String> = parts
        .map(|(label, items)| {
            let items: Vec<String> = items.iter().map(describe_item).collect();
            format!("{label} {}", items.join(", "))
        })
        .collect();
    (!descriptions.is_empty()).then(|| CaseDifference {
        field,
        description: descriptions.join("; "),
        expected: json!(expected),
        observed: json!(observed),
    })
}

/// An item of a list as text: the values of its fields, without the hash.
fn describe_item(item: &impl Serialize) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match json!(item) {
        Value::Object(fields) => {
            let visible = fields.iter().filter(|(key, _)| *key != "input_sha256");
            let values: Vec<String> = visible.map(|(_, value)| text(value)).collect();
            values.join(" ")
        }
        other => text(&other),
    }
}

/// Excerpts of both texts around their first difference.
fn describe_text_difference(expected: &str, observed: &str) -> String {
    let mut pairs = expected.char_indices().zip(observed.chars());
    let at = pairs.find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    let at = at.unwrap_or(expected.len().min(observed.len()));
    format!(
        "expected {}, got {}",
        excerpt(expected, at),
        excerpt(observed, at)
    )
}

/// The characters of `text` on both sides of byte `at`, quoted; `…` marks omitted text.
fn excerpt(text: &str, at: usize) -> String {
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

    fn tool(name: &str, input: Option<&str>, end: &str) -> CalledTool {
        CalledTool {
            name: name.into(),
            input: input.map(str::to_owned),
            input_sha256: Some("ab".into()),
            end: end.into(),
        }
    }

    fn observed() -> TurnResult {
        TurnResult {
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

    fn described(expected: &TurnResult) -> Vec<String> {
        let differences = compare_results(expected, &observed());
        let text = |difference: CaseDifference| {
            format!("{}: {}", difference.field, difference.description)
        };
        differences.into_iter().map(text).collect()
    }

    #[test]
    fn expected_or_unspecified_values_are_no_difference() {
        assert_eq!(described(&observed()), [""; 0]);
        assert_eq!(described(&TurnResult::default()), [""; 0]);
        let mut unspecified = observed();
        unspecified.tools = Some(vec![CalledTool {
            input_sha256: None,
            ..tool("clock", None, "completed")
        }]);
        assert_eq!(described(&unspecified), [""; 0]);
    }

    #[test]
    fn every_difference_has_its_own_text() {
        let expected = TurnResult {
            status: Some("failed".into()),
            error: Some("INTERNAL_ERROR".into()),
            text: Some("It is night.".into()),
            tools: Some(vec![
                tool("clock", Some("{}"), "timeout"),
                tool("echo", Some("hi"), "completed"),
            ]),
            statuses: Some(vec!["a".into(), "b".into()]),
            ..TurnResult::default()
        };
        assert_eq!(
            described(&expected),
            [
                "status: expected failed (INTERNAL_ERROR), got ok",
                "text: expected \"It is night.\", got \"It is noon.\"",
                "tools: missing clock {} timeout, echo hi completed; not expected clock {} completed",
                "statuses: missing b",
            ]
        );
    }

    #[test]
    fn long_texts_are_shown_around_their_first_difference() {
        let text = |word: &str| format!("{}{word}{}", "ä ".repeat(60), " ö".repeat(60));
        let description = describe_text_difference(&text("ja"), &text("nein"));
        assert!(
            description.contains("ja ö") && description.contains("nein ö"),
            "{description}"
        );
        assert!(description.chars().count() < 200, "{description}");
        assert_eq!(
            describe_text_difference("", "x"),
            "expected \"\", got \"x\""
        );
    }
}
