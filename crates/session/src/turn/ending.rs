//! The end of a turn: exactly one, whoever brings it about.
//!
//! Everything here runs under the session's lock (the slot), as does asking for a cancel, so the
//! decision how a turn ends and the terminal itself cannot be split. The slot is free when the
//! terminal is placed, before any client can see it.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::stream::ToolUseEnd;
use turnwire_event::body::turn::{Completed, TurnError};
use turnwire_event::code::{ErrorCode, ToolType, TurnStatus};
use turnwire_event::fold::{Closing, End, OpenTurn, closing, rows};
use turnwire_event::port::{Emission, Gate, Outcome};
use turnwire_event::{Actor, Body, Position, Render, RenderPolicy, ToolUseId, Trace, TurnId};
use turnwire_log::{Draft, Refused, Room};

use crate::live::child_tasks::StopReport;
use crate::live::session::LiveSession;
use crate::metering::model_calls::{self, CallsInFlight};
use crate::metering::turn_metrics;

/// What is known of a turn beside its events.
pub(crate) struct EndingContext {
    /// The kinds of the tools its messages asked for.
    pub(crate) types: HashMap<ToolUseId, ToolType>,
    /// The caller's trace.
    pub(crate) trace: Option<Arc<Trace>>,
    /// The calls in flight.
    pub(crate) calls: CallsInFlight,
    /// The version of the agent's definition.
    pub(crate) definition: String,
    /// What its events pass; nothing is held in it.
    pub(crate) gate: Box<dyn Gate>,
    /// Tools whose calls were not shown: neither are their ends.
    pub(crate) hidden: HashSet<ToolUseId>,
    /// How its work came to rest; none if nobody could see.
    pub(crate) rest: Option<StopReport>,
}

/// The producer is done: the turn ends as it says, unless it left something open or a cancel
/// came first. Gives the place of the terminal if the turn ended as the producer says and no
/// other turn's message came between its own.
pub(crate) fn finish(
    live: &Arc<LiveSession>,
    turn: TurnId,
    outcome: Outcome,
    known: EndingContext,
) -> Option<Position> {
    let mut slot = live.slot.lock();
    let Some(open) = live.open_turn(turn) else {
        slot.free(turn);
        return None;
    };
    let alone = slot.running.as_ref().is_some_and(|running| running.alone);
    let mut ended = None;
    // Only a turn that pauses may leave a question behind.
    let asks = !open.questions.is_empty();
    let settled = open.is_settled() && (!asks || outcome.status == TurnStatus::Paused);
    slot.asked |= asks;
    if !settled || open.cancel.is_some() {
        let error = outcome
            .error
            .unwrap_or_else(|| ErrorCode::InternalError.into());
        close_open(
            live,
            open,
            End::Failed {
                error,
                reason: outcome.reason,
            },
            known,
        );
    } else {
        let traced = open.dispatch.traced().map(Body::DispatchTraced);
        let completed = Body::TurnCompleted(Completed {
            status: outcome.status,
            usage: open.usage,
            error: outcome.error,
            reason: outcome.reason,
            partial: None,
        });
        let events = traced.into_iter().chain([completed]);
        let events = events.map(|body| Closing {
            actor: Actor::ORCHESTRATOR,
            rows: rows(Some(turn), &Actor::ORCHESTRATOR, &body),
            body,
        });
        ended = emit(live, turn, known, events.collect());
    }
    slot.free(turn);
    ended.filter(|_| alone)
}

/// Something else ends the turn: a cancel if one was asked for, else the failure given.
pub(crate) fn close(
    live: &Arc<LiveSession>,
    turn: TurnId,
    error: TurnError,
    reason: Option<&str>,
    known: EndingContext,
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

fn close_open(live: &Arc<LiveSession>, mut open: OpenTurn, end: End, known: EndingContext) {
    let turn = open.id;
    // Whatever happened after a cancel was asked for, the turn ends by it.
    let end = match &open.cancel {
        Some((cancel, asked)) => End::Cancelled {
            stops: known.rest.as_ref().map(|rest| rest.stops(&open, *asked)),
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
    emit(live, turn, known, ending);
}

/// Places the ending in one piece: one commit, all or none.
fn emit(
    live: &Arc<LiveSession>,
    turn: TurnId,
    mut known: EndingContext,
    events: Vec<Closing>,
) -> Option<Position> {
    let renders = renders(&mut known, &events);
    let counted: Vec<Body> = events
        .iter()
        .map(|closing| &closing.body)
        .filter(|body| model_calls::is_end(body) || turn_metrics::is_counted(body))
        .cloned()
        .collect();
    let drafts = events.into_iter().zip(renders).map(|(closing, render)| {
        let of_turn = !matches!(closing.body, Body::ApprovalResolved(_));
        let mut draft = Draft::new(of_turn.then_some(turn), closing.actor, closing.body);
        draft.trace.clone_from(&known.trace);
        draft.render = render;
        draft.rows = closing.rows;
        draft
    });
    match live.sequencer.emit(drafts.collect(), Room::Reserved) {
        // Closed: the session was deleted or quarantined, there is no log to end the turn in.
        Err(Refused::Closed) => None,
        Ok(places) => {
            for body in &counted {
                known.calls.end(body);
                turn_metrics::count(body, &known.definition);
            }
            places.last().map(|(at, _)| *at)
        }
        Err(refused) => {
            tracing::error!(session = %live.id, %turn, %refused, "a turn could not be ended");
            None
        }
    }
}

/// How the events of an ending are shown: as the gate says, which every other event of the turn
/// has passed too. An ending goes out whatever a gate does.
fn renders(known: &mut EndingContext, events: &[Closing]) -> Vec<Option<Render>> {
    let mut out: Vec<Option<Render>> = Vec::with_capacity(events.len());
    let gate = &mut known.gate;
    let passed = catch_unwind(AssertUnwindSafe(|| {
        let now = Instant::now();
        for closing in events {
            let emission = Emission::new(closing.actor.clone(), closing.body.clone());
            gate.take(emission, now, &mut |_, render| out.push(render));
            gate.flush(&mut |_, render| out.push(render));
        }
    }));
    if passed.is_err() || out.len() != events.len() {
        tracing::error!("a gate broke on the end of a turn");
        out = vec![None; events.len()];
    }
    for (closing, render) in events.iter().zip(&mut out) {
        if let Body::ToolFailed(tool) = &closing.body
            && known.hidden.contains(&tool.tool_use_id)
        {
            *render = Some(RenderPolicy::Suppress.into());
        }
    }
    out
}
