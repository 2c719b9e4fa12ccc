//! Requesting the cancel of a turn. The request is an event: from its position on nothing new
//! starts in a running turn, and a queued turn ends with it.

use std::sync::Arc;

use turnwire_event::body::turn::{CANCEL_REASON_CHARS_MAX, CancelRequested, TurnCancelled};
use turnwire_event::{Actor, Body, Position, TurnId};
use turnwire_log::{EventDraft, OutboxRoom, SequencerError};

use super::queued_turn::withdraw_queued;
use crate::live::session::LiveSession;
use crate::live::turn_slot::{TurnInterrupt, TurnSlot};

/// The result of a cancel request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The turn is stopping; the request has this position.
    Requested(Position),
    /// The turn was queued and has ended; its terminal has this position.
    Withdrawn(Position),
    /// The turn was already asked to stop.
    AlreadyRequested,
    /// The turn neither runs nor is queued in this session.
    NotRunning,
}

/// Cuts a reason to the length that is stored.
pub(crate) fn truncate_reason(reason: &str) -> String {
    reason.chars().take(CANCEL_REASON_CHARS_MAX).collect()
}

/// Requests the cancel of `turn`. May be called by any client, any number of times, at any moment.
pub(crate) fn request_cancel(
    live: &Arc<LiveSession>,
    turn: TurnId,
    by: &str,
    reason: &str,
) -> CancelOutcome {
    request_cancel_locked(live, &mut live.slot.lock(), turn, by, reason)
}

/// Cancels the running turn for a queued one, unless that was withdrawn meanwhile.
pub(crate) fn interrupt_running(live: &Arc<LiveSession>, interrupt: &TurnInterrupt) {
    let mut slot = live.slot.lock();
    if slot.queued(interrupt.queued).is_some() {
        let reason = TurnCancelled::INTERRUPTED;
        request_cancel_locked(live, &mut slot, interrupt.running, "user", reason);
    }
}

/// [`request_cancel`] for a caller that holds the lock of the slot.
pub(crate) fn request_cancel_locked(
    live: &Arc<LiveSession>,
    slot: &mut TurnSlot,
    turn: TurnId,
    by: &str,
    reason: &str,
) -> CancelOutcome {
    let trace = match (slot.running_turn(turn), slot.queued(turn)) {
        (Some(running), _) => running.trace.clone(),
        (None, Some(queued)) => queued.request.trace.clone().map(Arc::new),
        (None, None) => return CancelOutcome::NotRunning,
    };
    let request = CancelRequested::new(by, truncate_reason(reason));
    let body = Body::TurnCancelRequested(request.clone());
    let actor = if by == "user" {
        Actor::USER
    } else {
        Actor::SYSTEM
    };
    let mut draft = EventDraft::with_rows(Some(turn), actor, body);
    draft.trace = trace;
    let Some(running) = slot.running_turn(turn) else {
        let withdrawn = withdraw_queued(live, slot, turn, draft, request);
        return withdrawn.map_or(CancelOutcome::NotRunning, CancelOutcome::Withdrawn);
    };
    // Before the request has its position: no end after it may be missing in the receipt.
    running.children.start_recording();
    let mut emitted = Err(SequencerError::Ended);
    let mut draft = Some(draft);
    let mut emit_request = || {
        if let Some(draft) = draft.take() {
            emitted = live.sequencer.emit_one(draft, OutboxRoom::Reserved);
        }
    };
    // Events that the gate holds back came before the cancel: they precede it in the log.
    match running.emitter.upgrade() {
        Some(emitter) => emitter.stop(&mut emit_request),
        None => emit_request(),
    }
    match emitted {
        Ok((at, _)) => {
            running.stop.cancel();
            CancelOutcome::Requested(at)
        }
        Err(SequencerError::Cancelled) => CancelOutcome::AlreadyRequested,
        Err(SequencerError::Ended | SequencerError::Closed | SequencerError::Full) => {
            CancelOutcome::NotRunning
        }
    }
}
