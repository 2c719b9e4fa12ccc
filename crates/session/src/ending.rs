//! The end of a turn: exactly one, whoever brings it about.
//!
//! Everything here runs under the session's lock (the slot), as does asking for a cancel, so the
//! decision how a turn ends and the terminal itself cannot be split. The slot is free when the
//! terminal is placed, before any client can see it.

use std::collections::HashMap;
use std::sync::Arc;

use turnwire_event::body::stream::ToolUseEnd;
use turnwire_event::body::turn::{Completed, TurnError};
use turnwire_event::code::{ErrorCode, ToolType};
use turnwire_event::fold::{End, OpenTurn, closing, rows};
use turnwire_event::port::Outcome;
use turnwire_event::{Actor, Body, ToolUseId, TurnId, metric};
use turnwire_log::{Draft, Refused, Room};

use crate::live::Live;

/// The kinds of tools by use, where something knows them.
pub(crate) type ToolTypes = HashMap<ToolUseId, ToolType>;

/// The producer is done: the turn ends as it says, unless it left something open or a cancel
/// came first.
pub(crate) fn finish(live: &Arc<Live>, turn: TurnId, outcome: Outcome, types: &ToolTypes) {
    let mut slot = live.slot.lock();
    let Some(open) = live.open_turn(turn) else {
        return;
    };
    let loose = open.call.is_some() || open.message.is_some() || !open.tools.is_empty();
    if loose || open.cancel.is_some() {
        let error = outcome
            .error
            .unwrap_or_else(|| ErrorCode::InternalError.into());
        close_open(
            live,
            open,
            End::Failed {
                error,
                reason: None,
            },
            types,
        );
    } else {
        let body = Body::TurnCompleted(Completed {
            status: outcome.status,
            usage: open.usage,
            error: outcome.error,
            reason: None,
            partial: None,
        });
        emit(live, turn, vec![(Actor::ORCHESTRATOR, body, Vec::new())]);
    }
    *slot = None;
}

/// Something else ends the turn: a cancel if one was asked for, else the failure given.
pub(crate) fn close(
    live: &Arc<Live>,
    turn: TurnId,
    error: TurnError,
    reason: Option<&str>,
    types: &ToolTypes,
) {
    let mut slot = live.slot.lock();
    if let Some(open) = live.open_turn(turn) {
        let end = End::Failed {
            error,
            reason: reason.map(str::to_owned),
        };
        close_open(live, open, end, types);
    }
    if slot.as_ref().is_some_and(|running| running.id == turn) {
        *slot = None;
    }
}

fn close_open(live: &Arc<Live>, mut open: OpenTurn, end: End, types: &ToolTypes) {
    let turn = open.id;
    // Whatever happened after a cancel was asked for, the turn ends by it.
    let end = match &open.cancel {
        Some((cancel, asked)) => End::Cancelled {
            reason: cancel.reason.clone(),
            asked: *asked,
        },
        None => end,
    };
    for tool in &mut open.tools {
        tool.tool_type = types.get(&tool.id).copied().unwrap_or(tool.tool_type);
    }
    if let Some(message) = &mut open.message {
        for (block, tool_use_id, final_input) in message.open_tool_uses() {
            let body = Body::ToolUseEnd(ToolUseEnd {
                message_id: message.id,
                content_block_index: block,
                tool_use_id,
                final_input,
            });
            let draft = Draft::new(Some(turn), Actor::ORCHESTRATOR, body.clone());
            let Ok((at, time)) = live.sequencer.emit_one(draft, Room::Reserved) else {
                return;
            };
            message.apply(at, time, &body);
        }
    }
    let ending = closing(&open, &end, live.house.clock.now());
    emit(
        live,
        turn,
        ending
            .into_iter()
            .map(|c| (c.actor, c.body, c.rows))
            .collect(),
    );
}

/// Places the ending in one piece: one commit, all or none.
fn emit(
    live: &Arc<Live>,
    turn: TurnId,
    events: Vec<(Actor, Body, Vec<turnwire_event::row::RowChange>)>,
) {
    if let Some((_, last, _)) = events.last() {
        count(last);
    }
    let drafts = events.into_iter().map(|(actor, body, more)| {
        let mut draft = Draft::new(Some(turn), actor, body);
        draft.rows = if more.is_empty() {
            rows(Some(turn), &draft.body)
        } else {
            more
        };
        draft
    });
    match live.sequencer.emit(drafts.collect(), Room::Reserved) {
        // Closed: the session was deleted or quarantined, there is no log to end the turn in.
        Ok(_) | Err(Refused::Closed) => {}
        Err(refused) => {
            tracing::error!(session = %live.id, %turn, %refused, "a turn could not be ended")
        }
    }
}

fn count(terminal: &Body) {
    match terminal {
        Body::TurnCancelled(end) => {
            let phase = serde_json::to_value(end.phase)
                .ok()
                .and_then(|v| v.as_str().map(str::to_owned));
            metrics::counter!(metric::TURN_CANCELLED_TOTAL, "phase" => phase.unwrap_or_default())
                .increment(1);
        }
        Body::TurnCompleted(end) => {
            let status = serde_json::to_value(end.status)
                .ok()
                .and_then(|v| v.as_str().map(str::to_owned));
            metrics::counter!(metric::TURN_COMPLETED_TOTAL, "status" => status.unwrap_or_default())
                .increment(1);
        }
        _ => {}
    }
}
