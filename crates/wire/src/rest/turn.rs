//! `/sessions/{id}/turns` and `/turns/{id}`: submitting, reading and cancelling turns.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_event::body::turn::{Cancelled, Completed, ReceiptLine};
use turnwire_event::code::{OnDisconnect, TurnKind, TurnState};
use turnwire_event::row::TurnRow;
use turnwire_event::{EventType, Position, ResponseId, Seq, SessionId, Timestamp, TurnId, Usage};

use super::content::Input;

/// The longest that those who watch may be away before their turn is cancelled.
pub const DISCONNECT_GRACE_MS_MAX: u64 = 30_000;

/// The longest locale tag: far above any in use, far below a burden on every event.
pub const LOCALE_BYTES_MAX: usize = 35;

/// The longest reason of a cancel: it is kept in the log twice.
pub const REASON_BYTES_MAX: usize = 1_024;

/// `POST /sessions/{id}/turns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// What the person says.
    pub message: Input,
    /// The language the person wants; `en` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// What happens when those who watch leave; the turn goes on if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// How long they may be away first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disconnect_grace_ms: Option<u64>,
}

impl Submit {
    /// A turn that says `message`, everything else left to the server.
    pub fn text(message: impl Into<String>) -> Self {
        Self {
            message: Input::Text(message.into()),
            locale: None,
            on_disconnect: None,
            disconnect_grace_ms: None,
        }
    }
}

/// 202 of `POST /sessions/{id}/turns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[serde(default, deny_unknown_fields)]
pub struct Cancel {
    /// What to say with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// 202 of `POST /turns/{id}/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelAccepted {
    /// The turn.
    pub turn_id: TurnId,
    /// Where it stands now.
    pub state: TurnState,
}

/// The event that ended a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terminal {
    /// Its id.
    pub id: Option<Position>,
    /// `turn.completed` or `turn.cancelled`.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// What it says.
    pub payload: Value,
}

/// A turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub turn_id: TurnId,
    /// Its name on client wires.
    pub response_id: ResponseId,
    /// Its session.
    pub session_id: SessionId,
    /// What it is for.
    pub kind: TurnKind,
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
pub struct List {
    /// The turns.
    pub turns: Vec<Turn>,
    /// What to send as `before` for older ones.
    pub next: Option<TurnId>,
}
