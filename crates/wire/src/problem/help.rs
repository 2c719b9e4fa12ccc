//! The description of each code for the pages at `/problems/<code>`: its meaning, when it occurs,
//! what to do, and whether to retry.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use super::code::{ProblemHelp, RetryAdvice};
use super::{Code, Problem};

/// 200 of `GET /problems/{code}` as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ProblemType")
)]
pub struct ProblemDescription {
    /// The `type` of such problems: the path of this description.
    #[serde(rename = "type")]
    pub kind: String,
    /// The `code` of such problems.
    pub code: String,
    /// The meaning in a few words.
    pub title: String,
    /// The HTTP status of the response.
    pub status: u16,
    /// The meaning in one sentence.
    pub meaning: String,
    /// The conditions under which the server responds with the code.
    pub when: String,
    /// The action that resolves the problem.
    pub what_to_do: String,
    /// Whether to repeat the request.
    pub retry: RetryAdvice,
    /// An example of such a problem.
    pub example: Problem,
}

/// 200 of `GET /problems` as JSON, ordered by status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ProblemTypeList")
)]
pub struct ProblemList {
    /// One entry per code.
    pub problems: Vec<ProblemDescription>,
}

impl ProblemList {
    /// The descriptions of all codes.
    pub fn all() -> Self {
        Self {
            problems: Code::ALL.iter().map(|&code| code.into()).collect(),
        }
    }
}

impl From<Code> for ProblemDescription {
    fn from(code: Code) -> Self {
        let help = code.help();
        let mut example = Problem::new(code, help.meaning, "4bf92f3577b34da6a3ce929d0e0e4736");
        example.extra = example_members(code);
        Self {
            kind: code.kind().to_owned(),
            code: code.name().to_owned(),
            title: code.title().to_owned(),
            status: code.status(),
            meaning: help.meaning.to_owned(),
            when: help.when.to_owned(),
            what_to_do: help.what_to_do.to_owned(),
            retry: help.retry,
            example,
        }
    }
}

/// The further members of an example problem.
fn example_members(code: Code) -> Map<String, Value> {
    const TURN: &str = "01KBZ4M0XQ6V9D7T3C2N8R5HJA";
    let examples = [
        (Code::MalformedJson, json!({"line": 1, "column": 12})),
        (Code::InvalidCursor, json!({"field": "since"})),
        (
            Code::TurnInFlight,
            json!({"turn_id": TURN, "response_id": format!("resp_{TURN}")}),
        ),
        (
            Code::JobPaused,
            json!({"job": "daily-digest", "outcome": "skipped_paused"}),
        ),
        (
            Code::ApprovalResolved,
            json!({"approval_id": format!("appr_{TURN}")}),
        ),
        (
            Code::ApprovalInputMismatch,
            json!({"approval_id": format!("appr_{TURN}")}),
        ),
        (Code::BodyTooLarge, json!({"limit_bytes": 1_048_576})),
        (Code::InvalidRequest, json!({"field": "message"})),
        (
            Code::UnknownField,
            json!({"field": "mesage", "line": 1, "column": 10}),
        ),
        (Code::UnsupportedContent, json!({"content_type": "image"})),
        (Code::InvalidFilter, json!({"field": "types"})),
    ];
    let example = examples.iter().find(|(other, _)| *other == code);
    let members = example.and_then(|(_, members)| members.as_object());
    members.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_complete_sentences() {
        for &code in Code::ALL {
            let help = code.help();
            for text in [help.meaning, help.when, help.what_to_do] {
                let is_sentence = text.len() > 20 && text.ends_with('.');
                let plain = !text.contains(['<', '&']) && !text.contains("  ");
                assert!(is_sentence && plain, "{}: {text}", code.name());
            }
        }
        let mut meanings: Vec<_> = Code::ALL.iter().map(|code| code.help().meaning).collect();
        meanings.sort_unstable();
        meanings.dedup();
        assert_eq!(meanings.len(), Code::ALL.len(), "no text is told twice");
    }

    #[test]
    fn an_example_is_a_problem_of_its_code() {
        for problem in ProblemList::all().problems {
            assert_eq!(problem.example.code, problem.code);
            assert_eq!(problem.example.status, problem.status);
            assert_eq!(problem.example.kind, problem.kind);
            let text = serde_json::to_string(&problem).expect("plain data");
            let read: ProblemDescription = serde_json::from_str(&text).expect("its own text");
            assert_eq!(read, problem);
        }
    }
}
