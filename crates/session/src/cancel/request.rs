//! Asking a turn to stop. The request is an event: from its position on nothing new starts. A
//! turn that still waits is over with it.

use std::sync::Arc;

use turnwire_event::body::turn::CancelRequested;
use turnwire_event::fold::rows;
use turnwire_event::{Actor, Body, Position, TurnId};
use turnwire_log::{Draft, Refused, Room};

use crate::live::session::LiveSession;
use crate::live::turn_slot::{TurnInterrupt, TurnSlot};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It stands at this position.
    At(Position),
    /// The turn waited, and is over: its terminal stands at this position.
    Withdrawn(Position),
    /// One was there before.
    Already,
    /// The turn does not run here.
    NotRunning,
}

/// The longest reason kept: a sentence, not a document.
const REASON_CHARS_MAX: usize = 200;

/// What is kept of a reason.
pub(crate) fn kept(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).collect()
}

/// Asks `turn` to stop. From any client, any number of times, at any moment.
pub fn request(live: &Arc<LiveSession>, turn: TurnId, by: &str, reason: &str) -> CancelOutcome {
    request_in(live, &mut live.slot.lock(), turn, by, reason)
}

/// Stops the turn that runs for one in line, unless that one was withdrawn meanwhile.
pub(crate) fn interrupt(live: &Arc<LiveSession>, interrupt: &TurnInterrupt) {
    let mut slot = live.slot.lock();
    if slot.find(interrupt.by).is_some() {
        request_in(live, &mut slot, interrupt.running, "user", "interrupted");
    }
}

pub(crate) fn request_in(
    live: &Arc<LiveSession>,
    slot: &mut TurnSlot,
    turn: TurnId,
    by: &str,
    reason: &str,
) -> CancelOutcome {
    let trace = match slot.running.as_ref().filter(|running| running.id == turn) {
        Some(running) => running.trace.clone(),
        None => match slot.find(turn) {
            Some(waiting) => waiting.submit.trace.clone().map(Arc::new),
            None => return CancelOutcome::NotRunning,
        },
    };
    let reason = kept(reason);
    let body = Body::TurnCancelRequested(CancelRequested {
        by: by.to_owned(),
        reason: reason.clone(),
    });
    let actor = if by == "user" {
        Actor::USER
    } else {
        Actor::SYSTEM
    };
    let mut draft = Draft::new(Some(turn), actor, body);
    draft.rows = rows(Some(turn), &draft.actor, &draft.body);
    draft.trace = trace;
    let Some(running) = slot.running.as_ref().filter(|running| running.id == turn) else {
        let withdrawn = live.withdraw(slot, turn, draft, reason);
        return withdrawn.map_or(CancelOutcome::NotRunning, CancelOutcome::Withdrawn);
    };
    // Before the request has its place: no end after it may be missed.
    running.wards.note();
    let mut asked = Err(Refused::Ended);
    let mut draft = Some(draft);
    let mut ask = || {
        if let Some(draft) = draft.take() {
            asked = live.sequencer.emit_one(draft, Room::Reserved);
        }
    };
    // What is held back was said before the cancel: it stands before it.
    match running.emitter.upgrade() {
        Some(emitter) => emitter.stop(&mut ask),
        None => ask(),
    }
    match asked {
        Ok((at, _)) => {
            running.stop.cancel();
            CancelOutcome::At(at)
        }
        Err(Refused::Cancelled) => CancelOutcome::Already,
        Err(Refused::Ended | Refused::Closed | Refused::Full) => CancelOutcome::NotRunning,
    }
}
