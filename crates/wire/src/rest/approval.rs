//! `/turns/{id}/approvals`: what a paused turn has asked, and what a person says to it.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use serde_json::{Value, json};
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_event::row::ApprovalRow;
use turnwire_event::{ApprovalId, Timestamp, ToolUseId, TurnId};

/// The longest comment in characters: a remark that a model is told.
pub const COMMENT_CHARS_MAX: usize = 500;

/// The most answers at once: more than a turn can ask.
pub const ANSWERS_MAX: usize = 256;

/// What a person says to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "ApprovalAnswer"))]
pub struct Answer {
    /// Which question.
    #[cfg_attr(feature = "schema", schemars(with = "ApprovalId"))]
    pub approval_id: String,
    /// Whether the tool may act.
    pub decision: Decision,
    /// What to say with it; the model is told what was said with a `reject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = COMMENT_CHARS_MAX)))]
    pub comment: Option<String>,
}

/// `POST /turns/{id}/approvals`: one answer, or several that are taken together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "ApprovalAnswers", extend("oneOf" = one_or_several())))]
pub struct Answers {
    /// Which question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<ApprovalId>"))]
    pub approval_id: Option<String>,
    /// Whether the tool may act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What to say with it; the model is told what was said with a `reject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = COMMENT_CHARS_MAX)))]
    pub comment: Option<String>,
    /// Several answers; all are taken or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = ANSWERS_MAX)))]
    pub answers: Option<Vec<Answer>>,
}

/// One answer or a list of them, and never both or neither.
#[cfg(feature = "schema")]
fn one_or_several() -> Value {
    let absent = json!({ "type": "null" });
    json!([
        {
            "required": ["approval_id", "decision"],
            "properties": {
                "approval_id": { "type": "string" },
                "decision": { "type": "string" },
                "answers": absent,
            },
        },
        {
            "required": ["answers"],
            "properties": {
                "answers": { "type": "array" },
                "approval_id": absent,
                "decision": absent,
                "comment": absent,
            },
        },
    ])
}

impl Answers {
    /// Several answers.
    pub fn all(answers: Vec<Answer>) -> Self {
        Self {
            answers: Some(answers),
            ..Self::default()
        }
    }
}

/// 200 or 202 of `POST /turns/{id}/approvals`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ApprovalsAnswered"))]
pub struct Answered {
    /// The paused turn.
    pub turn_id: TurnId,
    /// How many of its questions have no answer yet.
    pub remaining: usize,
    /// The turn that goes on, once none is left.
    pub next_turn_id: Option<TurnId>,
}

/// A question whether a tool may act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approval {
    /// Which question.
    pub approval_id: ApprovalId,
    /// The tool use that waits.
    pub tool_use_id: ToolUseId,
    /// Which tool.
    pub tool_name: String,
    /// The input, shortened; the message that asks for the tool has all of it.
    pub input_summary: String,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was asked.
    pub requested_at: Timestamp,
    /// When it was answered.
    pub resolved_at: Option<Timestamp>,
    /// Who answered: `user`, or `system` where the conversation went on without.
    pub by: Option<String>,
    /// What they said with it.
    pub comment: Option<String>,
}

impl From<ApprovalRow> for Approval {
    fn from(row: ApprovalRow) -> Self {
        Self {
            approval_id: row.id,
            tool_use_id: row.tool_use_id,
            tool_name: row.tool_name,
            input_summary: row.input_summary,
            state: row.state,
            requested_at: row.requested_at,
            resolved_at: row.resolved_at,
            by: row.by,
            comment: row.comment,
        }
    }
}

/// 200 of `GET /turns/{id}/approvals`, in the order they were asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ApprovalList"))]
pub struct List {
    /// The turn that asked.
    pub turn_id: TurnId,
    /// What it asked.
    pub approvals: Vec<Approval>,
    /// The turn that goes on with the answers, once all are there.
    pub next_turn_id: Option<TurnId>,
}
