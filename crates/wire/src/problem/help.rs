//! The description of each code for the pages at `/problems/<code>`: its meaning, when it occurs,
//! what to do, and whether to retry.

mod texts;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Code, Problem};

/// Whether the same request can succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Retry"))]
#[serde(rename_all = "snake_case")]
pub enum RetryAdvice {
    /// The same request fails again.
    No,
    /// Another condition must change first; `what_to_do` names it.
    AfterChange,
    /// The request may succeed later: wait for `Retry-After`, or with growing delays.
    Later,
}

/// The texts about one [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemHelp {
    /// The meaning of the code in one sentence.
    pub meaning: &'static str,
    /// The conditions under which the server responds with the code.
    pub when: &'static str,
    /// The action that resolves the problem.
    pub what_to_do: &'static str,
    /// Whether to repeat the request.
    pub retry: RetryAdvice,
}

/// 200 of `GET /problems/{code}` as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ProblemType"))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ProblemTypeList"))]
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
        example.extra = extra(code);
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
fn extra(code: Code) -> Map<String, Value> {
    let pairs = match code {
        Code::MalformedJson => json!({"line": 1, "column": 12}),
        Code::InvalidCursor => json!({"field": "since"}),
        Code::TurnInFlight => json!({
            "turn_id": "01KBZ4M0XQ6V9D7T3C2N8R5HJA",
            "response_id": "resp_01KBZ4M0XQ6V9D7T3C2N8R5HJA",
        }),
        Code::ApprovalResolved => json!({"approval_id": "appr_01KBZ4M0XQ6V9D7T3C2N8R5HJA"}),
        Code::BodyTooLarge => json!({"limit_bytes": 1_048_576}),
        Code::InvalidRequest => json!({"field": "message"}),
        Code::UnknownField => json!({"field": "mesage", "line": 1, "column": 10}),
        Code::UnsupportedContent => json!({"content_type": "image"}),
        Code::InvalidFilter => json!({"field": "types"}),
        Code::TenantRequired
        | Code::TenantInvalid
        | Code::Unauthorized
        | Code::HostNotAllowed
        | Code::OriginNotAllowed
        | Code::NotFound
        | Code::SessionNotFound
        | Code::TurnNotFound
        | Code::MessageNotFound
        | Code::ApprovalNotFound
        | Code::MethodNotAllowed
        | Code::RequestTimeout
        | Code::TurnNotPaused
        | Code::StreamingDisabled
        | Code::StepConflict
        | Code::WireVersionMismatch
        | Code::CursorExpired
        | Code::ReplayExpired
        | Code::UnsupportedMediaType
        | Code::IdempotencyMismatch
        | Code::ModeUnsupported
        | Code::QueueFull
        | Code::TooManyRequests
        | Code::Internal
        | Code::Draining
        | Code::SessionQuarantined
        | Code::StorageFull => Value::Null,
    };
    match pairs {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
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
