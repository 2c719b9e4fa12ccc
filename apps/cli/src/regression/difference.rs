//! What was expected of a turn beside what came: the differences, each in a few words.

use serde::Serialize;
use serde_json::{Value, json};

use crate::regression::test_case::{ExpectedTool, ExpectedTurn};

/// Characters of a text that are shown before and after the place where it differs.
const AROUND: usize = 40;

/// One thing that is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CaseDifference {
    /// Which of the things that are expected.
    pub(crate) what: &'static str,
    /// The difference in words.
    pub(crate) words: String,
    pub(crate) expected: Value,
    pub(crate) came: Value,
}

/// Everything that is not as expected.
pub(crate) fn differences(expected: &ExpectedTurn, came: &ExpectedTurn) -> Vec<CaseDifference> {
    let mut differences = Vec::new();
    if let Some(status) = &expected.status {
        let ended = |expect: &ExpectedTurn| {
            let status = expect.status.clone().unwrap_or_default();
            match &expect.error {
                None => status,
                Some(code) => format!("{status} ({code})"),
            }
        };
        if expected.status != came.status || expected.error != came.error {
            let words = format!("expected {}, came {}", ended(expected), ended(came));
            let sides = |side: &ExpectedTurn| json!({"status": side.status, "error": side.error});
            differences.push(CaseDifference {
                what: if came.status.as_ref() == Some(status) {
                    "error"
                } else {
                    "status"
                },
                words,
                expected: sides(expected),
                came: sides(came),
            });
        }
    }
    let came_text = came.text.as_deref().unwrap_or_default();
    if let Some(text) = expected.text.as_deref().filter(|text| *text != came_text) {
        differences.push(CaseDifference {
            what: "text",
            words: apart(text, came_text),
            expected: json!(text),
            came: json!(came_text),
        });
    }
    let tools = came.tools.iter().flatten();
    let like: Option<Vec<ExpectedTool>> = expected
        .tools
        .as_ref()
        .map(|wanted| tools.map(|tool| shaped(tool, wanted)).collect());
    compare("tools", &expected.tools, &like, &mut differences);
    compare(
        "sub_agents",
        &expected.sub_agents,
        &came.sub_agents,
        &mut differences,
    );
    compare(
        "statuses",
        &expected.statuses,
        &came.statuses,
        &mut differences,
    );
    compare(
        "components",
        &expected.components,
        &came.components,
        &mut differences,
    );
    compare("errors", &expected.errors, &came.errors, &mut differences);
    differences
}

/// A tool with only as much as every expected use of it says: what a case does not say about a
/// tool's input is not compared.
fn shaped(tool: &ExpectedTool, wanted: &[ExpectedTool]) -> ExpectedTool {
    let same = || wanted.iter().filter(|one| one.name == tool.name);
    let says_input = same().all(|one| one.input.is_some());
    let says_digest = same().all(|one| one.input_sha256.is_some());
    ExpectedTool {
        input: tool.input.clone().filter(|_| says_input),
        input_sha256: tool.input_sha256.clone().filter(|_| says_digest),
        ..tool.clone()
    }
}

/// Compares lists in which the order does not count.
fn compare<T: Serialize + PartialEq + Clone>(
    what: &'static str,
    expected: &Option<Vec<T>>,
    came: &Option<Vec<T>>,
    found: &mut Vec<CaseDifference>,
) {
    let Some(expected) = expected else {
        return;
    };
    let observed: &[T] = came.as_deref().unwrap_or_default();
    let mut extra: Vec<T> = observed.to_vec();
    let mut missing: Vec<&T> = Vec::new();
    for one in expected {
        match extra.iter().position(|other| other == one) {
            Some(at) => drop(extra.remove(at)),
            None => missing.push(one),
        }
    }
    if missing.is_empty() && extra.is_empty() {
        return;
    }
    let list = |items: Vec<String>| items.join(", ");
    let mut words = Vec::new();
    if !missing.is_empty() {
        words.push(format!(
            "missing {}",
            list(missing.into_iter().map(told).collect())
        ));
    }
    if !extra.is_empty() {
        words.push(format!(
            "not expected {}",
            list(extra.iter().map(told).collect())
        ));
    }
    found.push(CaseDifference {
        what,
        words: words.join("; "),
        expected: json!(expected),
        came: json!(observed),
    });
}

/// One thing of a list, in a line.
fn told(item: &impl Serialize) -> String {
    match serde_json::to_value(item) {
        Ok(Value::String(word)) => word,
        Ok(Value::Object(fields)) => {
            let visible = fields.iter().filter(|(key, _)| *key != "input_sha256");
            let words: Vec<String> = visible
                .map(|(_, value)| {
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                })
                .collect();
            words.join(" ")
        }
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// Where two texts part, with a little of both.
fn apart(expected: &str, came: &str) -> String {
    let same = expected
        .char_indices()
        .zip(came.chars())
        .find(|((_, a), b)| a != b)
        .map_or(expected.len().min(came.len()), |((at, _), _)| at);
    format!(
        "expected {}, came {}",
        around(expected, same),
        around(came, same)
    )
}

/// The characters of `text` on both sides of `at`.
fn around(text: &str, at: usize) -> String {
    let at = text.floor_char_boundary(at);
    let from = text[..at].char_indices().rev().nth(AROUND - 1);
    let to = text[at..].char_indices().nth(AROUND);
    let (start, end) = (
        from.map_or(0, |(at, _)| at),
        to.map_or(text.len(), |(n, _)| at + n),
    );
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

    fn came() -> ExpectedTurn {
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
        let found = differences(expected, &came());
        let told = |one: CaseDifference| format!("{}: {}", one.what, one.words);
        found.into_iter().map(told).collect()
    }

    #[test]
    fn expected_or_unspecified_values_are_no_difference() {
        assert_eq!(words(&came()), [""; 0]);
        assert_eq!(words(&ExpectedTurn::default()), [""; 0]);
        let mut loose = came();
        loose.tools = Some(vec![ExpectedTool {
            input_sha256: None,
            ..tool("clock", None, "completed")
        }]);
        assert_eq!(words(&loose), [""; 0]);
    }

    #[test]
    fn every_difference_is_told_in_its_own_words() {
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
    fn long_texts_are_shown_around_the_place_where_they_part() {
        let text = |word: &str| format!("{}{word}{}", "ä ".repeat(60), " ö".repeat(60));
        let told = apart(&text("ja"), &text("nein"));
        assert!(told.contains("ja ö") && told.contains("nein ö"), "{told}");
        assert!(told.chars().count() < 200, "{told}");
        assert_eq!(apart("", "x"), "expected \"\", came \"x\"");
    }
}
