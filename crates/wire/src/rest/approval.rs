//! `/turns/{id}/approvals`: the approvals that a paused turn has requested, and the decisions.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_event::content::sha256_hex;
use turnwire_event::row::ApprovalRow;
use turnwire_event::{ApprovalId, Timestamp, ToolUseId, TurnId};

/// The longest comment, in characters. The model reads it.
pub const COMMENT_CHARS_MAX: usize = 500;

/// The largest number of decisions in one request: more than a turn can request.
pub const ANSWERS_MAX: usize = 256;

/// A SHA-256 as lower-case hex.
pub const SHA256_PATTERN: &str = "^[0-9a-f]{64}$";

/// The decision about one approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswer {
    /// The approval to decide.
    #[cfg_attr(feature = "schema", schemars(with = "ApprovalId"))]
    pub approval_id: String,
    /// Whether the tool may run.
    pub decision: Decision,
    /// The `input_sha256` of the input that the person was shown; a decision on another input is
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = SHA256_PATTERN)))]
    pub input_sha256: Option<String>,
    /// A comment; the model reads the comment of a `reject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = COMMENT_CHARS_MAX)))]
    pub comment: Option<String>,
}

/// `POST /turns/{id}/approvals`: one decision, or several that are applied together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalAnswers {
    /// The approval to decide.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub approval_id: Option<String>,
    /// Whether the tool may run.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub decision: Option<Decision>,
    /// The `input_sha256` of the input that the person was shown; the inner `None` is null.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input_sha256: Option<Option<String>>,
    /// A comment; the inner `None` is null.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub comment: Option<Option<String>>,
    /// Several decisions; all are applied, or none on an error.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answers: Option<Vec<ApprovalAnswer>>,
}

/// A member that is there: null is a value like any other, and not an absent member.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Several decisions of one request, in schemas only.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "a schema")]
struct ApprovalAnswerList {
    /// The decisions; all are applied, or none on an error.
    #[schemars(length(min = 1, max = ANSWERS_MAX))]
    answers: Vec<ApprovalAnswer>,
}

#[cfg(feature = "schema")]
impl JsonSchema for ApprovalAnswers {
    fn schema_name() -> Cow<'static, str> {
        "ApprovalAnswers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<ApprovalAnswer>();
        let several = generator.subschema_for::<ApprovalAnswerList>();
        json_schema!({
            "description": "One decision, or several that are applied together.",
            "oneOf": [one, several],
        })
    }
}

impl ApprovalAnswers {
    /// A request with several decisions.
    pub fn all(answers: Vec<ApprovalAnswer>) -> Self {
        Self {
            answers: Some(answers),
            ..Self::default()
        }
    }
}

/// 200 or 202 of `POST /turns/{id}/approvals`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalsAnswered {
    /// The turn that is paused.
    pub turn_id: TurnId,
    /// The number of approvals without a decision.
    pub remaining: usize,
    /// The turn that continues the paused one, once all approvals are decided.
    pub next_turn_id: Option<TurnId>,
}

/// A tool use that needs the approval of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Approval")
)]
pub struct ApprovalRecord {
    /// Identifies the approval in a decision.
    pub approval_id: ApprovalId,
    /// The tool use that waits for the decision.
    pub tool_use_id: ToolUseId,
    /// The name of the tool.
    pub tool_name: String,
    /// The input, shortened; `/turns/{turn_id}/approvals/{approval_id}` has all of it.
    pub input_summary: String,
    /// The length of the whole input as JSON text, in bytes; null for a request of an older release.
    pub input_bytes: Option<u64>,
    /// The SHA-256 of the whole input as JSON text; null for a request of an older release.
    pub input_sha256: Option<String>,
    /// Whether the approval is open, and how it was decided.
    pub state: ApprovalState,
    /// When the turn requested it.
    pub requested_at: Timestamp,
    /// When it was decided; null while it is open.
    pub resolved_at: Option<Timestamp>,
    /// Who decided: `user`, or `system` if the conversation continued without a decision.
    pub by: Option<String>,
    /// The comment of the decision.
    pub comment: Option<String>,
}

impl From<ApprovalRow> for ApprovalRecord {
    fn from(row: ApprovalRow) -> Self {
        Self {
            approval_id: row.id,
            tool_use_id: row.tool_use_id,
            tool_name: row.tool_name,
            input_summary: row.input_summary,
            input_bytes: row.input_bytes,
            input_sha256: row.input_sha256,
            state: row.state,
            requested_at: row.requested_at,
            resolved_at: row.resolved_at,
            by: row.by,
            comment: row.comment,
        }
    }
}

/// 200 of `GET /turns/{id}/approvals/{approval_id}`: an approval with the whole input of its tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalItem {
    #[serde(flatten)]
    pub approval: ApprovalRecord,
    /// The whole input as JSON text, byte for byte what the tool gets if it runs. A string, so that
    /// no parser reorders fields or rounds numbers before a person sees them. Null if the input is
    /// no longer stored: such a tool does not run.
    pub input_json: Option<String>,
}

impl ApprovalItem {
    /// The item of an approval and its whole input.
    pub fn new(row: ApprovalRow, input_json: Option<String>) -> Self {
        let mut approval = ApprovalRecord::from(row);
        if let Some(json) = &input_json {
            approval.input_bytes = Some(json.len() as u64);
            approval.input_sha256 = Some(sha256_hex(json.as_bytes()));
        }
        Self {
            approval,
            input_json,
        }
    }
}

/// 200 of `GET /turns/{id}/approvals`, in the order of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalList {
    /// The turn that requested the approvals.
    pub turn_id: TurnId,
    /// One page of the approvals of the turn, open and decided.
    pub approvals: Vec<ApprovalRecord>,
    /// The `after` of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<ApprovalId>,
    /// The turn that continues this one, once all approvals are decided.
    pub next_turn_id: Option<TurnId>,
}
