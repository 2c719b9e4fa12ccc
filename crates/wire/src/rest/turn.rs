//! `/sessions/{id}/turns` and `/turns/{id}`: submitting, reading and cancelling turns.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_event::body::turn::{ReceiptLine, TurnCancelled, TurnCompleted};
use turnwire_event::code::{AuditOutcome, OnBusy, OnDisconnect, Origin, TurnKind, TurnState};
use turnwire_event::row::TurnRow;
use turnwire_event::{
    EventType, Position, ResponseId, Seq, SessionId, Timestamp, TokenUsage, TurnId, TurnResponseId,
};

use super::content::integer;
use super::content::{MessageInput, MetadataInput};

/// The longest time that all clients may be disconnected before their turn is cancelled.
pub const DISCONNECT_GRACE_MS_MAX: u64 = 30_000;

/// The longest language tag, in bytes: far above any in use.
pub const LOCALE_BYTES_MAX: usize = 35;

/// The pattern of a language tag: subtags of at most eight characters, the first of letters.
pub const LOCALE_PATTERN: &str = "^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$";

/// The longest location, in characters. It is stored with the turn.
pub const LOCATION_CHARS_MAX: usize = 1_024;

/// The longest reason of a cancel, in characters. It is stored in two events.
pub const REASON_CHARS_MAX: usize = 1_024;

/// The name of a turn, in schemas only.
#[cfg(feature = "schema")]
pub(crate) struct TurnName;

#[cfg(feature = "schema")]
impl JsonSchema for TurnName {
    fn schema_name() -> Cow<'static, str> {
        "TurnName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A turn id, or a response id: `resp_` and the turn id, or the id that an upstream gave.",
            "type": "string",
            "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$",
        })
    }
}

/// The request of `POST /sessions/{id}/turns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("not" = {
        "required": ["job", "origin"],
        "properties": { "job": { "type": "string" }, "origin": { "const": "chat" } },
    }))
)]
#[serde(deny_unknown_fields)]
pub struct TurnSubmit {
    /// The message of the user.
    pub message: MessageInput,
    /// The user's language; if absent, that of `Accept-Language`, else `en` (D-19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = LOCALE_BYTES_MAX), regex(pattern = LOCALE_PATTERN)))]
    pub locale: Option<String>,
    /// What happens when the last stream of the turn disconnects; `continue` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// How long all streams may be disconnected first, in milliseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "integer::option"
    )]
    #[cfg_attr(feature = "schema", schemars(range(max = DISCONNECT_GRACE_MS_MAX)))]
    pub disconnect_grace_ms: Option<u64>,
    /// What happens while another turn runs; the request is rejected if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_busy: Option<OnBusy>,
    /// Where the user is, as free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = LOCATION_CHARS_MAX)))]
    pub location: Option<String>,
    /// Any data of the client, stored with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataInput>,
    /// The origin of the turn if no person started it, `scheduled` if it has a job. Such a turn has no
    /// chat stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The type of direct message that the turn is for, if its origin is `dm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = DM_TYPE_PATTERN)))]
    pub dm_type: Option<String>,
    /// The job that the turn is of, if a scheduler or a message service started it: there is no turn of
    /// a job that is paused. A job is known from its first turn on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = JOB_PATTERN)))]
    pub job: Option<String>,
}

/// The pattern of the name of a job.
pub const JOB_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

/// The pattern of a type of direct message; short, because it is a metric label.
pub const DM_TYPE_PATTERN: &str = "^[a-z][a-z0-9_]{0,31}$";

impl TurnSubmit {
    /// A turn with this message and defaults for everything else.
    pub fn text(message: impl Into<String>) -> Self {
        Self {
            message: MessageInput::Text(message.into()),
            locale: None,
            on_disconnect: None,
            disconnect_grace_ms: None,
            on_busy: None,
            location: None,
            metadata: None,
            origin: None,
            dm_type: None,
            job: None,
        }
    }
}

/// 202 of `POST /sessions/{id}/turns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnAccepted {
    /// The id of the new turn.
    pub turn_id: TurnId,
    /// The id of the turn on client wires.
    pub response_id: ResponseId,
    /// `running`, or `queued` while another turn runs.
    pub state: TurnState,
    /// The position before the turn: reading `since` this position returns all of its events.
    pub position: Position,
    /// `dispatched` for a turn whose `origin` is not `chat`: there is a record in the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AuditOutcome>,
}

/// The request of `POST /turns/{id}/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TurnCancel {
    /// The reason, of which the log has at most the first 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = REASON_CHARS_MAX)))]
    pub reason: Option<String>,
}

/// 202 of `POST /turns/{id}/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnCancelAccepted {
    /// The turn to be cancelled.
    pub turn_id: TurnId,
    /// The state after the request.
    pub state: TurnState,
}

/// The pattern of an idempotency key.
pub const KEY_PATTERN: &str = "^[!-~]{1,255}$";

/// The request of `POST /sessions/{id}/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SessionCancel {
    /// The reason, of which the log has at most the first 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = REASON_CHARS_MAX)))]
    pub reason: Option<String>,
    /// The `Idempotency-Key` of the submit whose turn is cancelled, even if the submit has not
    /// arrived yet; if absent, the running turn is cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = KEY_PATTERN)))]
    pub idempotency_key: Option<String>,
}

/// 202 and 200 of `POST /sessions/{id}/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCancelAccepted {
    /// The turn; null if no turn runs (200), or if the submit with the key has not arrived (202).
    pub turn_id: Option<TurnId>,
    /// The state after the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TurnState>,
    /// The ended turn, if the request waited for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<TurnInfo>>,
}

/// The event that ended a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnTerminal {
    /// The position of the event.
    pub id: Option<Position>,
    /// Either `turn.completed` or `turn.cancelled`.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The payload of the event.
    pub payload: Value,
}

#[cfg(feature = "schema")]
impl JsonSchema for TurnTerminal {
    fn schema_name() -> Cow<'static, str> {
        "TurnTerminal".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let id = generator.subschema_for::<Option<Position>>();
        let end = |kind: EventType, payload: Schema| {
            json_schema!({
                "title": format!("{kind:?}Terminal"),
                "type": "object",
                "required": ["id", "type", "payload"],
                "properties": {
                    "id": id,
                    "type": { "type": "string", "const": kind.name() },
                    "payload": payload,
                },
            })
        };
        let completed = generator.subschema_for::<TurnCompleted>();
        let cancelled = generator.subschema_for::<TurnCancelled>();
        json_schema!({
            "description": "The event that ended a turn: its position, its type and its payload.",
            "oneOf": [
                end(EventType::TurnCompleted, completed),
                end(EventType::TurnCancelled, cancelled),
            ],
        })
    }
}

/// A turn of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Turn")
)]
pub struct TurnInfo {
    /// Identifies the turn in the REST API.
    pub turn_id: TurnId,
    /// The id of the turn on client wires: its own, or the one that its upstream gave.
    pub response_id: TurnResponseId,
    /// The session that the turn belongs to.
    pub session_id: SessionId,
    /// What started the turn: a message, a mission, the task of a worker, or a timer.
    pub kind: TurnKind,
    /// The paused turn that this turn continues.
    pub resumes: Option<TurnId>,
    /// Whether the turn is queued, running, being cancelled or ended.
    pub state: TurnState,
    /// The position before the turn: reading `since` this position returns all of its events.
    pub position: Position,
    /// When the turn started.
    pub started_at: Timestamp,
    /// When the turn ended; null while it runs.
    pub ended_at: Option<Timestamp>,
    /// What happens when the last stream of the turn disconnects.
    pub on_disconnect: OnDisconnect,
    /// How long all streams may be disconnected first, in milliseconds.
    pub disconnect_grace_ms: u64,
    /// The event that ended the turn.
    pub terminal: Option<TurnTerminal>,
    /// Tokens and cost, once the turn has completed.
    pub usage: Option<TokenUsage>,
    /// For a cancelled turn: what was running, and how each of it ended.
    pub receipt: Option<Vec<ReceiptLine>>,
}

impl From<TurnRow> for TurnInfo {
    fn from(row: TurnRow) -> Self {
        let ended = row.ended;
        let (mut usage, mut receipt) = (None, None);
        if let Some((kind, payload)) = &row.terminal {
            if *kind == EventType::TurnCompleted {
                usage = TurnCompleted::deserialize(payload)
                    .ok()
                    .map(|end| end.usage);
            } else if *kind == EventType::TurnCancelled {
                receipt = TurnCancelled::deserialize(payload)
                    .ok()
                    .map(|end| end.receipt);
            }
        }
        Self {
            turn_id: row.id,
            response_id: TurnResponseId::of(row.id, row.response_id),
            session_id: row.session_id,
            kind: row.kind,
            resumes: row.resumes,
            state: row.state,
            position: position_before(row.started),
            started_at: row.started_at,
            ended_at: row.ended_at,
            on_disconnect: row.on_disconnect,
            disconnect_grace_ms: row.disconnect_grace_ms,
            terminal: row.terminal.map(|(kind, payload)| TurnTerminal {
                id: ended,
                kind,
                payload,
            }),
            usage,
            receipt,
        }
    }
}

/// The position before the first event of a turn. One turn runs at a time, so no transient event
/// lies between the previous persisted event and it.
fn position_before(started: Position) -> Position {
    Position::persisted(started.epoch, Seq(started.seq.0.saturating_sub(1)))
}

/// 200 of `GET /sessions/{id}/turns`, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnList {
    /// One page of turns.
    pub turns: Vec<TurnInfo>,
    /// The `before` of the next page; null on the last page.
    pub next: Option<TurnId>,
}
