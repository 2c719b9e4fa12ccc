//! Accepting a turn: it starts at once if no turn runs or is queued, else it joins the queue.
//!
//! Each step that changes something is complete under the lock of the slot, with its rows or events
//! handed to the sequencer: a caller that is dropped at an `await` has done all of it or nothing.

use std::sync::Arc;

use turnwire_event::code::{OnBusy, TurnState};
use turnwire_event::row::{AuditEntry, KeyScope, RowChange};
use turnwire_event::{Position, Seq, SessionId, TurnId};
use turnwire_log::{BatchTicket, EventDraft};

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::live::turn_slot::{QueuedTurn, StreamPresence, TurnInterrupt, TurnSlot};
use crate::submit::input_bytes::{InputPermit, TurnPermit};
use crate::submit::request::{DisconnectScope, SubmitRequest};
use crate::submit::write_slots::WriteSlot;
use crate::turn::cancel::disconnect::{StreamGuard, on_last_watcher_left};
use crate::turn::cancel::request::{CancelOutcome, interrupt_running, request_cancel_locked};
use crate::turn::opening::turn_settings;
use crate::turn::run::start::{PendingTurn, TurnHistory, load_history, start_turn};
use crate::turn::run::turn_run::TurnRun;

/// The commit that makes an accepted turn durable.
pub(crate) enum PendingCommit {
    /// The commit of the event with this number.
    Event(Seq),
    /// The commit of the queued row; then the turn that it interrupts is cancelled.
    Row(BatchTicket, Option<TurnInterrupt>),
}

/// An accepted turn: it runs to its end even if its caller goes away, unless the process ends
/// before the turn is durable.
pub(crate) struct AcceptedTurn {
    pub(crate) turn: TurnId,
    pub(crate) state: TurnState,
    /// A position before the turn.
    pub(crate) position: Position,
    pub(crate) commit: PendingCommit,
    /// The stream of the caller, if the turn has [`DisconnectScope::Stream`].
    pub(crate) stream: Option<StreamGuard>,
}

/// The idempotency key of a submit: its row is stored in the commit of the turn.
pub(crate) struct KeyUse {
    pub(crate) scope: KeyScope,
    /// SHA-256 of the submit's body.
    pub(crate) body_sha256: [u8; 32],
}

/// What is stored in the commit of a turn besides the turn.
#[derive(Default)]
pub(crate) struct AcceptanceRows {
    pub(crate) key: Option<KeyUse>,
    /// The record of the scheduler's request, yet without the session and the turn.
    pub(crate) audit: Option<AuditEntry>,
}

impl AcceptanceRows {
    fn changes(self, session_id: SessionId, turn_id: TurnId) -> Vec<RowChange> {
        let key = self.key.map(|key| RowChange::KeyPut {
            scope: Box::new(key.scope),
            turn_id,
            body_sha256: key.body_sha256,
        });
        let audit = self.audit.map(|entry| {
            RowChange::AuditAdded(Box::new(AuditEntry {
                session_id: Some(session_id),
                turn_id: Some(turn_id),
                ..entry
            }))
        });
        key.into_iter().chain(audit).collect()
    }
}

/// Accepts a turn: starts it, queues it, or refuses it. With the reason of an early cancel the turn
/// is accepted all the same, and cancelled before it does anything. Returns the turn with the slot of
/// its commit.
pub(crate) async fn accept_turn(
    live: &Arc<LiveSession>,
    request: SubmitRequest,
    rows: AcceptanceRows,
    early_cancel: Option<String>,
) -> Result<(AcceptedTurn, WriteSlot), Error> {
    // Held until the turn is counted, so that a drain waits for it.
    let _task_token = live.services.runner.turn_tasks.token();
    let departures = live.presence.departures();
    let input_bytes = request.content_bytes();
    let input_permit = live
        .services
        .runner
        .inputs
        .try_acquire(&live.owner, input_bytes)?;
    let mut queue_entry = None;
    let mut permit = None;
    loop {
        let version = {
            let mut slot = live.slot.lock();
            let blocking = slot.blocking_turn();
            if let Some(blocking) = blocking {
                check_can_queue(live, &slot, blocking, request.on_busy)?;
                if let Some((json, write_slot)) = queue_entry.take() {
                    let entry = (request, json, (departures, input_permit));
                    let mut accepted = enqueue(live, &mut slot, entry, rows)?;
                    cancel_accepted(live, &mut slot, &mut accepted, early_cancel.as_deref());
                    let is_free = slot.running.is_none();
                    drop(slot);
                    if is_free {
                        live.start_next_turn();
                    }
                    return Ok((accepted, write_slot));
                }
            }
            blocking.is_none().then_some(slot.version)
        };
        let Some(version) = version else {
            // Not under the lock: the request may be long, and the writes of the owner many.
            let json = request_json(&request)?;
            let write_slot = live.services.write_slot_for(&live.owner, input_bytes);
            queue_entry = Some((json, write_slot.await?));
            continue;
        };
        // No slot is held during the read.
        queue_entry = None;
        // Before the history is read: a refusal must not cost a read. Held while the write waits, so that
        // the histories in memory are bounded.
        let slot_permit = match permit.take() {
            Some(permit) => permit,
            None => live.services.runner.running.try_acquire(&live.owner)?,
        };
        let history = load_history(live, live.read_share()).await?;
        let write_slot = live.services.write_slot_for(&live.owner, input_bytes);
        let write_slot = write_slot.await?;
        let mut slot = live.slot.lock();
        if slot.version != version || slot.blocking_turn().is_some() {
            permit = Some(slot_permit);
            continue; // another turn came first: the history has changed
        }
        let start = (history, None, TurnPermit::new(slot_permit, input_permit));
        let (mut accepted, run) = start_now(live, &mut slot, request, rows, start)?;
        cancel_accepted(live, &mut slot, &mut accepted, early_cancel.as_deref());
        drop(slot);
        run.spawn();
        // A watcher that left while the turn was being accepted could not cancel it.
        if live.presence.left_after(departures) {
            on_last_watcher_left(live, false);
        }
        return Ok((accepted, write_slot));
    }
}

/// Accepts the first turn of a new session, with its permit to run: in one commit with `created`, the
/// event that creates the session, unless that was emitted before. `publish` makes the session visible
/// to others, which then wait for the lock of the slot: none of their turns precedes this one.
pub(crate) fn accept_first_turn(
    live: &Arc<LiveSession>,
    request: SubmitRequest,
    rows: AcceptanceRows,
    (created, permit): (Option<EventDraft>, TurnPermit),
    publish: impl FnOnce(),
) -> Result<AcceptedTurn, Error> {
    let _task_token = live.services.runner.turn_tasks.token();
    let mut slot = live.slot.lock();
    let at = live.sequencer.last();
    live.history.lock().start_empty(at);
    let history = TurnHistory {
        messages: Vec::new(),
        total: 0,
        at,
        open_approvals: Vec::new(),
    };
    publish();
    let start = (history, created, permit);
    let (accepted, run) = start_now(live, &mut slot, request, rows, start)?;
    drop(slot);
    run.spawn();
    Ok(accepted)
}

fn start_now(
    live: &Arc<LiveSession>,
    slot: &mut TurnSlot,
    request: SubmitRequest,
    rows: AcceptanceRows,
    (history, created, permit): (TurnHistory, Option<EventDraft>, TurnPermit),
) -> Result<(AcceptedTurn, TurnRun), Error> {
    // The first turn of a worker is part of a running turn, which a drain lets finish.
    let delegated = slot.first_turn.take();
    if live.services.runner.is_draining() && delegated.is_none() {
        return Err(Error::Draining);
    }
    let turn = delegated.unwrap_or_else(|| TurnId(live.services.id_generator.ulid()));
    let scope = request.disconnect_scope;
    let pending = PendingTurn {
        rows: rows.changes(live.id, turn),
        preceding: created.into_iter().collect(),
        ..PendingTurn::new(turn, request, initial_presence(scope), permit)
    };
    let (at, run) = start_turn(live, slot, pending, history)?;
    let accepted = AcceptedTurn {
        turn,
        state: TurnState::Running,
        position: at.before(),
        commit: PendingCommit::Event(at.seq),
        stream: submitter_stream(live, turn, scope),
    };
    Ok((accepted, run))
}

/// Cancels a turn in the moment of its acceptance.
fn cancel_accepted(
    live: &Arc<LiveSession>,
    slot: &mut TurnSlot,
    accepted: &mut AcceptedTurn,
    early_cancel: Option<&str>,
) {
    let Some(reason) = early_cancel else { return };
    let (at, state) = match request_cancel_locked(live, slot, accepted.turn, "user", reason) {
        CancelOutcome::Requested(at) => (at, TurnState::Cancelling),
        CancelOutcome::Withdrawn(at) => (at, TurnState::Cancelled),
        CancelOutcome::AlreadyRequested | CancelOutcome::NotRunning => return,
    };
    accepted.state = state;
    // The commit of the request includes everything before it.
    accepted.commit = PendingCommit::Event(at.seq);
}

/// Refuses a turn that cannot be queued behind `blocking`; see [`OnBusy`].
fn check_can_queue(
    live: &LiveSession,
    slot: &TurnSlot,
    blocking: TurnId,
    on_busy: OnBusy,
) -> Result<(), Error> {
    if on_busy == OnBusy::Reject {
        return Err(Error::TurnInFlight(blocking));
    }
    if slot.queue.len() >= live.services.options.queue_max {
        return Err(Error::QueueFull);
    }
    if live.services.runner.is_draining() {
        return Err(Error::Draining);
    }
    Ok(())
}

fn enqueue(
    live: &Arc<LiveSession>,
    slot: &mut TurnSlot,
    (request, json, (departures, input_permit)): (SubmitRequest, String, (usize, InputPermit)),
    accepted_rows: AcceptanceRows,
) -> Result<AcceptedTurn, Error> {
    let permit = live.services.runner.queued.try_acquire(&live.owner)?;
    let turn = TurnId(live.services.id_generator.ulid());
    let order = slot.next_order(request.on_busy);
    let mut rows = vec![RowChange::TurnQueued {
        settings: turn_settings(live, turn, &request),
        place: order,
        input: json,
    }];
    rows.extend(accepted_rows.changes(live.id, turn));
    let put = live.sequencer.put(rows);
    let (at, ticket) = put.map_err(|refused| live.refusal(refused))?;
    let (scope, on_busy) = (request.disconnect_scope, request.on_busy);
    slot.enqueue(QueuedTurn {
        id: turn,
        order,
        request,
        presence: initial_presence(scope),
        departures,
        start_attempts: 0,
        unreadable: false,
        _permit: Some(Arc::new(permit)),
        input_permit,
    });
    let running = slot.running.as_ref().map(|running| running.id);
    let interrupt = running
        .filter(|_| on_busy == OnBusy::Interrupt)
        .map(|running| TurnInterrupt {
            queued: turn,
            running,
        });
    Ok(AcceptedTurn {
        turn,
        state: TurnState::Queued,
        position: Position::persisted(at.epoch, at.seq),
        commit: PendingCommit::Row(ticket, interrupt),
        stream: submitter_stream(live, turn, scope),
    })
}

/// Waits until an accepted turn is durable, then interrupts the running one if it asked for that.
pub(crate) async fn await_commit(
    live: Arc<LiveSession>,
    commit: PendingCommit,
) -> Result<(), Error> {
    match commit {
        PendingCommit::Event(seq) => live.committed(seq).await?,
        PendingCommit::Row(ticket, interrupt) => {
            live.stored(ticket).await?;
            if let Some(interrupt) = interrupt {
                interrupt_running(&live, &interrupt);
            }
        }
    }
    Ok(())
}

/// The JSON of a request for the row of its queued turn.
fn request_json(request: &SubmitRequest) -> Result<String, Error> {
    serde_json::to_string(request).map_err(|error| {
        tracing::error!(%error, "could not serialise the request of a queued turn");
        Error::Internal
    })
}

/// The streams of a new turn: its submitter counts as one with [`DisconnectScope::Stream`].
fn initial_presence(scope: DisconnectScope) -> StreamPresence {
    StreamPresence {
        streams: usize::from(scope == DisconnectScope::Stream),
        departures: 0,
    }
}

/// The guard of the submitter's stream, which [`initial_presence`] counts.
fn submitter_stream(
    live: &Arc<LiveSession>,
    turn: TurnId,
    scope: DisconnectScope,
) -> Option<StreamGuard> {
    (scope == DisconnectScope::Stream).then(|| StreamGuard::already_counted(live, turn))
}
