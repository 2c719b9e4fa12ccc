//! Compares the rows of a data folder with the events that they were derived from.
//!
//! In: the columns beside each event, and the rows of turns, tool calls and user messages. Out: a
//! description of each difference, with its event. A running server appends meanwhile: an event is
//! compared with rows only if the rows were read after it was written. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use turnwire_event::code::{TurnKind, TurnState};
use turnwire_event::fold;
use turnwire_event::row::{RowChange, TurnRow};
use turnwire_event::{
    Body, Event, EventType, Position, RenderDecision, Role, Seq, Timestamp, ToolUseId, TurnId,
};
use turnwire_log::sqlite::EventColumns;
use turnwire_wire::rest::tool_call::ToolCallRecord;
use turnwire_wire::rest::turn::TurnInfo;

use crate::log_check::stored_contents::{ContentHash, StoredContents};

/// The rows of a session, read after the event `upto` was written.
#[derive(Debug, Default)]
pub(crate) struct SessionRows {
    pub(crate) upto: Seq,
    pub(crate) turns: Vec<CheckedTurn>,
    pub(crate) tools: Vec<ToolCallRecord>,
    /// The messages of users.
    pub(crate) messages: Arc<StoredContents>,
    /// The last event that a row refers to, and the row.
    pub(crate) last_reference: Option<(Position, String)>,
}

/// What is compared of the row of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CheckedTurn {
    id: TurnId,
    kind: TurnKind,
    state: TurnState,
    started: Position,
    ended: Option<Position>,
    ended_at: Option<Timestamp>,
    terminal: Option<(EventType, Value)>,
}

impl From<TurnRow> for CheckedTurn {
    fn from(row: TurnRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            state: row.state,
            started: row.started,
            ended: row.ended,
            ended_at: row.ended_at,
            terminal: row.terminal,
        }
    }
}

impl From<TurnInfo> for CheckedTurn {
    fn from(turn: TurnInfo) -> Self {
        let before = turn.position;
        Self {
            id: turn.turn_id,
            kind: turn.kind,
            state: turn.state,
            started: Position::persisted(before.epoch, before.seq.next()),
            ended: turn.terminal.as_ref().and_then(|terminal| terminal.id),
            ended_at: turn.ended_at,
            terminal: turn.terminal.map(|end| (end.kind, end.payload)),
        }
    }
}

impl CheckedTurn {
    /// The last event that the row refers to; none while the turn waits in a queue.
    pub(crate) fn last_reference(&self) -> Option<Position> {
        let is_started = self.state != TurnState::Queued;
        is_started.then(|| self.ended.unwrap_or(self.started))
    }

    pub(crate) fn id(&self) -> TurnId {
        self.id
    }
}

/// A difference: the event, and a description that completes a sentence about it.
type Difference = (Position, String);

/// Compares the events of one session, in order, with its rows.
#[derive(Debug)]
pub(crate) struct RowVerifier {
    upto: Seq,
    turns: HashMap<TurnId, CheckedTurn>,
    tools: HashMap<ToolUseId, ToolCallRecord>,
    messages: Arc<StoredContents>,
    last_reference: Option<(Position, String)>,
    /// The events at which a turn started or ended.
    bounds: HashSet<Position>,
}

#[derive(Deserialize)]
struct ColumnFields {
    id: Position,
    #[serde(rename = "type")]
    kind: String,
    turn_id: Option<TurnId>,
    actor: String,
    timestamp: Timestamp,
    #[serde(default)]
    render: Option<RenderDecision>,
}

impl RowVerifier {
    pub(crate) fn new(rows: SessionRows) -> Self {
        let turns = rows.turns.into_iter().map(|row| (row.id, row));
        let tools = rows.tools.into_iter().map(|row| (row.tool_use_id, row));
        Self {
            upto: rows.upto,
            turns: turns.collect(),
            tools: tools.collect(),
            messages: rows.messages,
            last_reference: rows.last_reference,
            bounds: HashSet::new(),
        }
    }

    /// Compares an event with its columns and with the rows that it was written with.
    pub(crate) fn check(
        &mut self,
        bytes: &Bytes,
        columns: Option<&EventColumns>,
    ) -> Vec<Difference> {
        // An event that cannot be read is reported by the check of its bytes.
        let Ok(fields) = serde_json::from_slice::<ColumnFields>(bytes) else {
            return Vec::new();
        };
        let mut differences = match columns {
            None => Vec::new(),
            Some(columns) => column_differences(&fields, columns),
        };
        if let Ok(event) = Event::read(bytes) {
            differences.extend(self.row_differences(&event));
        }
        let id = fields.id;
        differences.into_iter().map(|text| (id, text)).collect()
    }

    fn row_differences(&mut self, event: &Event) -> Vec<String> {
        let Some(turn_id) = event.turn_id else {
            return Vec::new();
        };
        let is_bound =
            matches!(event.body, Body::TurnStarted(_)) || event.body.kind().is_terminal();
        if is_bound {
            self.bounds.insert(event.id);
        }
        if event.id.seq > self.upto {
            return Vec::new();
        }
        let row = self.turns.get(&turn_id);
        let Some(row) = row else {
            let missing = is_bound.then(|| format!("the row of turn {turn_id} is missing"));
            return missing.into_iter().collect();
        };
        let mut differences = Vec::new();
        if let Body::TurnStarted(started) = &event.body {
            if row.started != event.id || row.kind != started.kind {
                differences.push(format!("the row of turn {turn_id} has another start"));
            }
            let message = self.messages.get(started.user_message_id);
            match message {
                None => differences.push("its user message is not stored".to_owned()),
                Some(message)
                    if message.role != Role::User
                        || message.turn != turn_id
                        || message.content != ContentHash::of(&started.input) =>
                {
                    differences.push("its stored user message is another one".to_owned());
                }
                Some(_) => {}
            }
        }
        for change in fold::rows(event.turn_id, &event.actor, &event.body) {
            differences.extend(match &change {
                RowChange::TurnEnded {
                    terminal, payload, ..
                } => {
                    let payload: Option<Value> = serde_json::from_str(payload).ok();
                    let expected = payload.map(|payload| (*terminal, payload));
                    let is_same = row.ended == Some(event.id)
                        && row.ended_at == Some(event.timestamp)
                        && row.terminal == expected;
                    (!is_same).then(|| format!("the row of turn {turn_id} has another end"))
                }
                RowChange::ToolCall {
                    tool_use_id,
                    tool_name,
                    tool_type,
                    status,
                    ..
                } if !matches!(event.body, Body::ToolCalled(_)) => {
                    let row = self.tools.get(tool_use_id);
                    let is_same = row.is_some_and(|row| {
                        row.tool_name == *tool_name
                            && row.tool_type == *tool_type
                            && row.status == *status
                    });
                    (!is_same).then(|| format!("the row of tool call {tool_use_id} differs"))
                }
                _ => None,
            });
        }
        differences
    }

    /// Compares the rows with the log that ends at `tail` and begins after `low`: every event that
    /// they refer to must be there.
    pub(crate) fn finish(self, low: Seq, tail: Seq) -> Vec<Difference> {
        let mut differences = Vec::new();
        let is_stored = |at: &Position| at.seq > low && at.seq <= tail;
        let started = self.turns.values();
        let started = started.filter(|turn| turn.state != TurnState::Queued);
        for turn in started {
            for at in [Some(turn.started), turn.ended].into_iter().flatten() {
                if is_stored(&at) && !self.bounds.contains(&at) {
                    let text = format!("the row of turn {} refers to it as another event", turn.id);
                    differences.push((at, text));
                }
            }
        }
        if let Some((at, row)) = self.last_reference
            && at.seq > tail
        {
            let end = tail.0;
            let text = format!("is missing: {row} refers to it, but the log ends at {end}");
            differences.push((at, text));
        }
        differences.sort_by_key(|(at, _)| *at);
        differences
    }
}

fn column_differences(fields: &ColumnFields, columns: &EventColumns) -> Vec<String> {
    let hidden = fields
        .render
        .as_ref()
        .is_some_and(RenderDecision::is_suppressed);
    let pairs = [
        ("type", Some(fields.kind.clone()), Some(&columns.kind)),
        (
            "turn",
            fields.turn_id.map(|turn| turn.to_string()),
            columns.turn.as_ref(),
        ),
        ("actor", Some(fields.actor.clone()), Some(&columns.actor)),
        (
            "time",
            Some(fields.timestamp.as_millis().to_string()),
            Some(&columns.time),
        ),
        (
            "hidden",
            Some(u8::from(hidden).to_string()),
            Some(&columns.hidden),
        ),
    ];
    let differs = pairs
        .into_iter()
        .filter(|(_, expected, stored)| expected.as_ref() != *stored);
    differs
        .map(|(name, ..)| format!("its column `{name}` differs from its bytes"))
        .collect()
}
