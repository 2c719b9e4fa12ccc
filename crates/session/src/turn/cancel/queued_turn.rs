//! The end of a queued turn that never runs: its start and its terminal in one commit, beside
//! whatever runs.

use turnwire_event::body::dispatch::DispatchTraced;
use turnwire_event::body::turn::{
    BoundVersions, CancelRequested, PartialMessage, TurnCancelled, TurnCompleted,
};
use turnwire_event::code::{ErrorCode, Phase, TurnStatus};
use turnwire_event::metric::TurnDimensions;
use turnwire_event::{Actor, Body, Position, TokenUsage, TurnId, metric};
use turnwire_log::{EventDraft, OutboxRoom};

use crate::live::session::LiveSession;
use crate::live::turn_slot::TurnSlot;
use crate::metering::model_calls::CallsInFlight;
use crate::metering::turn_metrics;
use crate::turn::opening::{started_draft, user_message};

/// Cancels a queued turn with its cancel request and the draft of that event. Returns the position of its
/// terminal.
pub(crate) fn withdraw_queued(
    live: &LiveSession,
    slot: &mut TurnSlot,
    turn: TurnId,
    draft: EventDraft,
    request: CancelRequested,
) -> Option<Position> {
    let end = Body::TurnCancelled(TurnCancelled {
        reason: request.reason,
        code: request.code,
        phase: Phase::Queued,
        partial: PartialMessage {
            message_id: None,
            bytes: 0,
            kept_until: None,
        },
        receipt: Vec::new(),
    });
    end_queued(live, slot, turn, Some(draft), end)
}

/// Fails a queued turn that cannot be started. Returns the position of its terminal.
pub(crate) fn fail_queued(
    live: &LiveSession,
    slot: &mut TurnSlot,
    turn: TurnId,
) -> Option<Position> {
    let end = Body::TurnCompleted(TurnCompleted {
        status: TurnStatus::Failed,
        usage: TokenUsage::default(),
        error: Some(ErrorCode::InternalError.into()),
        reason: None,
        partial: None,
        paused: None,
    });
    end_queued(live, slot, turn, None, end)
}

fn end_queued(
    live: &LiveSession,
    slot: &mut TurnSlot,
    turn: TurnId,
    request: Option<EventDraft>,
    end: Body,
) -> Option<Position> {
    // A closed session has no log to end the turn in: nothing may be counted below.
    if live.ring.close_reason().is_some() {
        return None;
    }
    let queued = slot.queued(turn)?;
    let user = user_message(live, &queued.request);
    // The turn never ran: it is bound to no agent definition and has dispatched nothing.
    let versions = BoundVersions::default();
    let started = started_draft(
        live,
        (turn, &queued.request),
        user,
        0,
        (versions, None),
        None,
    );
    let traced = Body::DispatchTraced(DispatchTraced::default());
    let mut traced = EventDraft::new(Some(turn), Actor::ORCHESTRATOR, traced);
    traced.trace.clone_from(&started.trace);
    let mut last = EventDraft::with_rows(Some(turn), Actor::SYSTEM, end);
    last.trace.clone_from(&started.trace);
    // Counted first: whoever reads the ending finds it in the metrics.
    metrics::counter!(metric::TURN_STARTED_TOTAL).increment(1);
    turn_metrics::record(
        &last.body,
        &mut CallsInFlight::default(),
        &TurnDimensions::default(),
    );
    let drafts = [Some(started), request, Some(traced), Some(last)];
    let drafts = drafts.into_iter().flatten().collect();
    let positions = live.sequencer.emit(drafts, OutboxRoom::Reserved).ok()?;
    slot.dequeue(turn);
    slot.version += 1;
    // The user message of this turn stands between the messages of the running one.
    if let Some(running) = &mut slot.running {
        running.contiguous = false;
    }
    positions.last().map(|(at, _)| *at)
}
