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
use turnwire_event::{Actor, Body, Position, ToolUseId, Trace, TurnId, metric};
use turnwire_log::{Draft, Refused, Room};

use crate::live::Live;

/// What is known of a turn beside its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The kinds of the tools its messages asked for.
    pub(crate) types: HashMap<ToolUseId, ToolType>,
    /// The caller's trace.
    pub(crate) trace: Option<Arc<Trace>>,
    /// The model of its last call.
    pub(crate) model: String,
    /// The version of the agent's definition.
    pub(crate) definition: String,
}

/// The producer is done: the turn ends as it says, unless it left something open or a cancel
/// came first. Gives the place of the terminal if the turn ended as the producer says and no
/// other turn's message came between its own.
pub(crate) fn finish(
    live: &Arc<Live>,
    turn: TurnId,
    outcome: Outcome,
    known: &Known,
) -> Option<Position> {
    let mut slot = live.slot.lock();
    let Some(open) = live.open_turn(turn) else {
        slot.free(turn);
        return None;
    };
    let alone = slot.running.as_ref().is_some_and(|running| running.alone);
    let mut ended = None;
    let loose = !open.in_call.is_empty() || open.message.is_some() || !open.tools.is_empty();
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
            known,
        );
    } else {
        let body = Body::TurnCompleted(Completed {
            status: outcome.status,
            usage: open.usage,
            error: outcome.error,
            reason: None,
            partial: None,
        });
        ended = emit(
            live,
            turn,
            known,
            vec![(Actor::ORCHESTRATOR, body, Vec::new())],
        );
    }
    slot.free(turn);
    ended.filter(|_| alone)
}

/// Something else ends the turn: a cancel if one was asked for, else the failure given.
pub(crate) fn close(
    live: &Arc<Live>,
    turn: TurnId,
    error: TurnError,
    reason: Option<&str>,
    known: &Known,
) {
    let mut slot = live.slot.lock();
    if let Some(open) = live.open_turn(turn) {
        let end = End::Failed {
            error,
            reason: reason.map(str::to_owned),
        };
        close_open(live, open, end, known);
    }
    slot.free(turn);
}

fn close_open(live: &Arc<Live>, mut open: OpenTurn, end: End, known: &Known) {
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
        tool.tool_type = known.types.get(&tool.id).copied().unwrap_or(tool.tool_type);
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
        known,
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
    known: &Known,
    events: Vec<(Actor, Body, Vec<turnwire_event::row::RowChange>)>,
) -> Option<Position> {
    let cut = events
        .iter()
        .any(|(_, body, _)| matches!(body, Body::LlmCallFailed(_)));
    let terminal = events.last().map(|(_, body, _)| body.clone());
    let drafts = events.into_iter().map(|(actor, body, more)| {
        let mut draft = Draft::new(Some(turn), actor, body);
        draft.trace.clone_from(&known.trace);
        draft.rows = if more.is_empty() {
            rows(Some(turn), &draft.body)
        } else {
            more
        };
        draft
    });
    match live.sequencer.emit(drafts.collect(), Room::Reserved) {
        // Closed: the session was deleted or quarantined, there is no log to end the turn in.
        Err(Refused::Closed) => None,
        Ok(places) => {
            if let Some(terminal) = &terminal {
                count(terminal, &known.definition);
            }
            if cut {
                let model = known.model.clone();
                metrics::counter!(metric::LLM_CALLS_TOTAL, "model" => model, "status" => "failed")
                    .increment(1);
            }
            places.last().map(|(at, _)| *at)
        }
        Err(refused) => {
            tracing::error!(session = %live.id, %turn, %refused, "a turn could not be ended");
            None
        }
    }
}

pub(crate) fn count(terminal: &Body, definition: &str) {
    match terminal {
        Body::TurnCancelled(end) => {
            let phase = serde_json::to_value(end.phase)
                .ok()
                .and_then(|v| v.as_str().map(str::to_owned));
            metrics::counter!(metric::TURN_CANCELLED_TOTAL, "phase" => phase.unwrap_or_default())
                .increment(1);
            // Whether anyone is there to read the frame or not (S1-105, S1-131).
            let code = serde_json::to_value(end.code)
                .ok()
                .and_then(|v| v.as_str().map(str::to_owned));
            let mut labels = metric::dimensions(definition).to_vec();
            labels.push(("code", code.unwrap_or_default()));
            metrics::counter!(metric::STREAM_CANCELLATION_TOTAL, &labels).increment(1);
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
