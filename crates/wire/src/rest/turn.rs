//! `/sessions/{id}/turns` and `/turns/{id}`: submitting, reading and cancelling turns.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnwire_event::body::turn::{Cancelled, Completed, ReceiptLine};
use turnwire_event::code::{OnBusy, OnDisconnect, Origin, TurnKind, TurnState};
use turnwire_event::row::TurnRow;
use turnwire_event::{EventType, Position, ResponseId, Seq, SessionId, Timestamp, TurnId, Usage};

use super::content::Input;
use super::whole;

/// The longest that those who watch may be away before their turn is cancelled.
pub const DISCONNECT_GRACE_MS_MAX: u64 = 30_000;

/// The longest locale tag: far above any in use, far below a burden on every event.
pub const LOCALE_BYTES_MAX: usize = 35;

/// What a language tag looks like: subtags of at most eight characters, the first of letters.
pub const LOCALE_PATTERN: &str = "^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$";

/// The longest location in characters: a place's name or a page's address, kept with the turn.
pub const LOCATION_CHARS_MAX: usize = 1_024;

/// The longest reason of a cancel in characters: it is kept in the log twice.
pub const REASON_CHARS_MAX: usize = 1_024;

/// A turn by its turn id or its response id, for schemas alone.
#[cfg(feature = "schema")]
pub(crate) struct TurnName;

#[cfg(feature = "schema")]
impl JsonSchema for TurnName {
    fn schema_name() -> Cow<'static, str> {
        "TurnName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A turn id or a response id.",
            "type": "string",
            "pattern": "^(resp_)?[0-7][0-9A-HJKMNP-TV-Z]{25}$",
        })
    }
}

/// `POST /sessions/{id}/turns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "TurnSubmit"))]
pub struct Submit {
    /// What the person says.
    pub message: Input,
    /// The language the person wants; else that of `Accept-Language`, else `en` (D-19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = LOCALE_BYTES_MAX), regex(pattern = LOCALE_PATTERN)))]
    pub locale: Option<String>,
    /// What happens when those who watch leave; the turn goes on if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// How long they may be away first.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole::option"
    )]
    #[cfg_attr(feature = "schema", schemars(range(max = DISCONNECT_GRACE_MS_MAX)))]
    pub disconnect_grace_ms: Option<u64>,
    /// What happens when the session is busy; the turn is refused if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_busy: Option<OnBusy>,
    /// Where the person is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = LOCATION_CHARS_MAX)))]
    pub location: Option<String>,
    /// Whatever should be kept with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Who or what began the turn, where it was not a person: such a turn has no chat stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What kind of message the turn is for, where its origin is `dm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = DM_TYPE_PATTERN)))]
    pub dm_type: Option<String>,
}

/// What a kind of message may be called: few and short, because it is counted by.
pub const DM_TYPE_PATTERN: &str = "^[a-z][a-z0-9_]{0,31}$";

impl Submit {
    /// A turn that says `message`, everything else left to the server.
    pub fn text(message: impl Into<String>) -> Self {
        Self {
            message: Input::Text(message.into()),
            locale: None,
            on_disconnect: None,
            disconnect_grace_ms: None,
            on_busy: None,
            location: None,
            metadata: None,
            origin: None,
            dm_type: None,
        }
    }
}

/// 202 of `POST /sessions/{id}/turns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TurnAccepted"))]
pub struct Accepted {
    /// The new turn.
    pub turn_id: TurnId,
    /// Its name on client wires.
    pub response_id: ResponseId,
    /// Where it stands.
    pub state: TurnState,
    /// The tail before it started: `since` this gives the whole turn.
    pub position: Position,
}

/// `POST /turns/{id}/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "TurnCancel"))]
pub struct Cancel {
    /// What to say with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = REASON_CHARS_MAX)))]
    pub reason: Option<String>,
}

/// 202 of `POST /turns/{id}/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TurnCancelAccepted"))]
pub struct CancelAccepted {
    /// The turn.
    pub turn_id: TurnId,
    /// Where it stands now.
    pub state: TurnState,
}

/// What a key of a submit looks like.
pub const KEY_PATTERN: &str = "^[!-~]{1,255}$";

/// `POST /sessions/{id}/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SessionCancel {
    /// What to say with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = REASON_CHARS_MAX)))]
    pub reason: Option<String>,
    /// The `Idempotency-Key` of the submit whose turn is meant, whether it has come or not; else
    /// the turn that runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = KEY_PATTERN)))]
    pub idempotency_key: Option<String>,
}

/// 202 and 200 of `POST /sessions/{id}/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCancelAccepted {
    /// The turn; none if nothing runs (200), or if the submit with the key has not come (202).
    pub turn_id: Option<TurnId>,
    /// Where it stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TurnState>,
    /// How it ended, where that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Box<Turn>>,
}

/// The event that ended a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TurnTerminal"))]
pub struct Terminal {
    /// Its id.
    pub id: Option<Position>,
    /// `turn.completed` or `turn.cancelled`.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: EventType,
    /// What it says.
    pub payload: Value,
}

/// A turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turn {
    /// Its id.
    pub turn_id: TurnId,
    /// Its name on client wires.
    pub response_id: ResponseId,
    /// Its session.
    pub session_id: SessionId,
    /// What it is for.
    pub kind: TurnKind,
    /// The paused turn that it goes on with.
    pub resumes: Option<TurnId>,
    /// Where it stands.
    pub state: TurnState,
    /// The tail before it started: `since` this gives the whole turn.
    pub position: Position,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What happens when those who watch leave.
    pub on_disconnect: OnDisconnect,
    /// How long they may be away first.
    pub disconnect_grace_ms: u64,
    /// How it ended.
    pub terminal: Option<Terminal>,
    /// What it cost, once it has ended by itself.
    pub usage: Option<Usage>,
    /// What ran when it was cancelled and what became of it.
    pub receipt: Option<Vec<ReceiptLine>>,
}

impl From<TurnRow> for Turn {
    fn from(row: TurnRow) -> Self {
        let ended = row.ended;
        let (mut usage, mut receipt) = (None, None);
        if let Some((kind, payload)) = &row.terminal {
            if *kind == EventType::TurnCompleted {
                usage = Completed::deserialize(payload).ok().map(|end| end.usage);
            } else if *kind == EventType::TurnCancelled {
                receipt = Cancelled::deserialize(payload).ok().map(|end| end.receipt);
            }
        }
        Self {
            turn_id: row.id,
            response_id: row.id.into(),
            session_id: row.session_id,
            kind: row.kind,
            resumes: row.resumes,
            state: row.state,
            position: before(row.started),
            started_at: row.started_at,
            ended_at: row.ended_at,
            on_disconnect: row.on_disconnect,
            disconnect_grace_ms: row.disconnect_grace_ms,
            terminal: row.terminal.map(|(kind, payload)| Terminal {
                id: ended,
                kind,
                payload,
            }),
            usage,
            receipt,
        }
    }
}

/// The place before a turn's first event. One turn runs at a time, so nothing transient stands
/// between the event before and it.
fn before(started: Position) -> Position {
    Position::persisted(started.epoch, Seq(started.seq.0.saturating_sub(1)))
}

/// 200 of `GET /sessions/{id}/turns`, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TurnList"))]
pub struct List {
    /// The turns.
    pub turns: Vec<Turn>,
    /// What to send as `before` for older ones.
    pub next: Option<TurnId>,
}
