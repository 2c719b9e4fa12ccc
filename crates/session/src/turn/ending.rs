//! The end of a turn: exactly one terminal, whoever causes it.
//!
//! Every function here takes the lock of the session's [`TurnSlot`](crate::live::turn_slot), as a
//! cancel request does, so that the decision how a turn ends and its terminal are one step. The
//! slot is free once the terminal has its position, before any client can read it.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::delegate::DelegateEnd;
use turnwire_event::body::stream::ToolUseEnd;
use turnwire_event::body::turn::{PauseDetail, TurnCompleted, TurnError};
use turnwire_event::code::{ErrorCode, ToolType, TurnStatus};
use turnwire_event::fold::{CloseCause, ClosingEvent, OpenTurn, closing, rows};
use turnwire_event::metric::TurnDimensions;
use turnwire_event::port::{Emission, EventGate, TurnOutcome};
use turnwire_event::{
    Actor, Body, Position, RenderDecision, RenderPolicy, ToolUseId, TraceContext, TurnId,
};
use turnwire_log::{EventDraft, OutboxRoom, SequencerError};

use crate::live::child_tasks::StopReport;
use crate::live::session::LiveSession;
use crate::metering::model_calls::CallsInFlight;
use crate::metering::turn_metrics;

/// What the end of a turn needs beside the turn's events.
pub(crate) struct EndingContext {
    /// The types of the tools that the turn's messages use.
    pub(crate) tool_types: HashMap<ToolUseId, ToolType>,
    pub(crate) trace: Option<Arc<TraceContext>>,
    pub(crate) calls: CallsInFlight,
    pub(crate) dimensions: TurnDimensions,
    /// The gate of the turn, which holds no event back.
    pub(crate) gate: Box<dyn EventGate>,
    /// Tools whose calls were suppressed: their ends are suppressed too.
    pub(crate) hidden_tools: HashSet<ToolUseId>,
    /// The sub-agents of the tools that sub-agents called.
    pub(crate) tool_agents: HashMap<ToolUseId, Arc<str>>,
    /// How the producer and its children ended; `None` after a crash.
    pub(crate) stop_report: Option<StopReport>,
    /// The ends of workers that ended by themselves.
    pub(crate) worker_ends: Vec<DelegateEnd>,
}

impl EndingContext {
    /// The sub-agent whose tool an event of the ending is about.
    fn tool_agent(&self, body: &Body) -> Option<Arc<str>> {
        match body {
            Body::ToolFailed(tool) => self.tool_agents.get(&tool.tool_use_id).cloned(),
            _ => None,
        }
    }
}

/// Ends a turn whose producer returned a [`TurnOutcome`]. A cancel that came first, or something that the
/// producer left open, changes the end. Returns the position of the terminal if the turn ended
/// with `outcome` and its messages are contiguous.
pub(crate) fn finish_turn(
    live: &Arc<LiveSession>,
    turn: TurnId,
    outcome: TurnOutcome,
    context: EndingContext,
) -> Option<Position> {
    let mut slot = live.slot.lock();
    let Some(open) = live.open_turn(turn) else {
        slot.release(turn);
        return None;
    };
    let running = slot.running.as_ref();
    let contiguous = running.is_some_and(|running| running.contiguous);
    let mut terminal = None;
    // Only a turn that pauses may leave an approval open.
    let has_approvals = !open.approvals.is_empty();
    let is_settled = open.is_settled() && (!has_approvals || outcome.status == TurnStatus::Paused);
    slot.may_have_open_approvals |= has_approvals;
    if !is_settled || open.cancel.is_some() {
        close_open_turn(live, open, (outcome.error, outcome.reason), context);
    } else {
        let traced = open.dispatch.traced().map(Body::DispatchTraced);
        let is_paused = outcome.status == TurnStatus::Paused;
        let paused = is_paused.then(|| PauseDetail {
            approvals: open.approvals.clone(),
            next_turn_id: TurnId(live.services.id_generator.ulid()),
        });
        let completed = Body::TurnCompleted(TurnCompleted {
            status: outcome.status,
            usage: open.usage,
            error: outcome.error,
            reason: outcome.reason,
            partial: None,
            paused,
        });
        let events = traced.into_iter().chain([completed]);
        let events = events.map(|body| ClosingEvent {
            actor: Actor::ORCHESTRATOR,
            rows: rows(Some(turn), &Actor::ORCHESTRATOR, &body),
            body,
        });
        terminal = emit_ending(live, turn, context, events.collect());
    }
    slot.release(turn);
    terminal.filter(|_| contiguous)
}

/// Ends a turn whose producer did not return: cancelled if that was requested, else failed with
/// [`ErrorCode::InternalError`].
pub(crate) fn abort_turn(
    live: &Arc<LiveSession>,
    turn: TurnId,
    reason: Option<&str>,
    context: EndingContext,
) {
    let mut slot = live.slot.lock();
    if let Some(open) = live.open_turn(turn) {
        close_open_turn(live, open, (None, reason.map(str::to_owned)), context);
    }
    slot.release(turn);
}

/// Closes what a turn has open. Without a cancel request the turn fails with `error`, or with
/// [`ErrorCode::InternalError`].
fn close_open_turn(
    live: &Arc<LiveSession>,
    mut open: OpenTurn,
    (error, reason): (Option<TurnError>, Option<String>),
    context: EndingContext,
) {
    let turn = open.id;
    // A requested cancel decides the end, whatever happened after the request.
    let end = match &open.cancel {
        Some((cancel, requested)) => CloseCause::Cancelled {
            stops: context
                .stop_report
                .as_ref()
                .map(|report| report.stops(&open, *requested)),
            reason: cancel.reason.clone(),
            code: cancel.code,
            asked: *requested,
        },
        None => CloseCause::Failed {
            error: error.unwrap_or_else(|| ErrorCode::InternalError.into()),
            reason,
        },
    };
    for tool in &mut open.tools {
        if let Some(tool_type) = context.tool_types.get(&tool.id) {
            tool.tool_type = *tool_type;
        }
    }
    for call in &mut open.in_call {
        call.usage = context.calls.usage(call.id).unwrap_or_default();
    }
    if let Some(message) = &mut open.message {
        for (block, tool_use_id, final_input) in message.open_tool_uses() {
            let body = Body::ToolUseEnd(ToolUseEnd {
                message_id: message.id,
                content_block_index: block,
                tool_use_id,
                final_input,
            });
            let draft = EventDraft::new(Some(turn), Actor::ORCHESTRATOR, body.clone());
            let Ok((at, time)) = live.sequencer.emit_one(draft, OutboxRoom::Reserved) else {
                return;
            };
            message.apply(at, time, &body);
        }
    }
    let now = live.services.clock.now();
    let events = closing(&open, &end, &context.worker_ends, now);
    emit_ending(live, turn, context, events);
}

/// Emits the events of an ending in one commit, and returns the position of the last one.
fn emit_ending(
    live: &Arc<LiveSession>,
    turn: TurnId,
    mut context: EndingContext,
    events: Vec<ClosingEvent>,
) -> Option<Position> {
    let renders = render_ending(&mut context, &events);
    // Counted first: whoever reads the ending finds it in the metrics. In a deleted session the turn
    // ended too.
    for closing in &events {
        if turn_metrics::is_metered(&closing.body) {
            turn_metrics::record(&closing.body, &mut context.calls, &context.dimensions);
        }
    }
    let drafts = events.into_iter().zip(renders).map(|(closing, render)| {
        let of_turn = !matches!(closing.body, Body::ApprovalResolved(_));
        let mut draft = EventDraft::new(of_turn.then_some(turn), closing.actor, closing.body);
        draft.trace.clone_from(&context.trace);
        draft.sub_agent_id = context.tool_agent(&draft.body);
        draft.render = render;
        draft.rows = closing.rows;
        draft
    });
    match live.sequencer.emit(drafts.collect(), OutboxRoom::Reserved) {
        // The session was deleted or quarantined: there is no log to end the turn in.
        Err(SequencerError::Closed) => None,
        Ok(positions) => positions.last().map(|(at, _)| *at),
        Err(refused) => {
            tracing::error!(session = %live.id, %turn, %refused, "could not emit the end of a turn");
            None
        }
    }
}

/// How the events of an ending are rendered: by the turn's gate, like all its other events. The
/// ending is emitted even if the gate panics or holds events back.
fn render_ending(
    context: &mut EndingContext,
    events: &[ClosingEvent],
) -> Vec<Option<RenderDecision>> {
    let mut renders: Vec<Option<RenderDecision>> = Vec::with_capacity(events.len());
    let agents: Vec<_> = events
        .iter()
        .map(|closing| context.tool_agent(&closing.body))
        .collect();
    let gate = &mut context.gate;
    let gated = catch_unwind(AssertUnwindSafe(|| {
        let now = Instant::now();
        for (closing, sub_agent_id) in events.iter().zip(agents) {
            let emission = Emission {
                sub_agent_id,
                ..Emission::new(closing.actor.clone(), closing.body.clone())
            };
            gate.take(emission, now, &mut |_, render| renders.push(render));
            gate.flush(&mut |_, render| renders.push(render));
        }
    }));
    if gated.is_err() || renders.len() != events.len() {
        tracing::error!(
            "the gate failed at the end of a turn: its events are forwarded as they are"
        );
        renders = vec![None; events.len()];
    }
    for (closing, render) in events.iter().zip(&mut renders) {
        if let Body::ToolFailed(tool) = &closing.body
            && context.hidden_tools.contains(&tool.tool_use_id)
        {
            *render = Some(RenderPolicy::Suppress.into());
        }
    }
    renders
}
