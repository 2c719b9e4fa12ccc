//! Accepting turns: at once if nothing runs or waits, else in line; starting those in line, one
//! after the other; taking one out of the line again.
//!
//! Every step that changes something is taken whole under the session's lock, with its rows or
//! events handed to the sequencer: whoever is dropped at an await has done all of it or nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use turnwire_event::body::dispatch::Traced;
use turnwire_event::body::turn::{Cancelled, Completed, Partial, Versions};
use turnwire_event::code::{CancelCode, ErrorCode, OnBusy, Phase, TurnState, TurnStatus};
use turnwire_event::fold::rows;
use turnwire_event::row::RowChange;
use turnwire_event::{Actor, Body, Position, Seq, TurnId, Usage, metric};
use turnwire_log::{Draft, Room, Ticket};

use crate::cancel::disconnect::StreamGuard;
use crate::cancel::request::{self, CancelOutcome};
use crate::error::Error;
use crate::live::session::LiveSession;
use crate::live::turn_slot::{QueuedTurn, StreamPresence, TurnInterrupt, TurnSlot};
use crate::metering::turn_metrics;
use crate::run::start::{PendingTurn, TurnHistory};
use crate::run::turn_run::TurnRun;
use crate::submit::request::{DisconnectScope, SubmitRequest};

/// What an accepted turn waits for before its caller is told.
pub(crate) enum PendingCommit {
    /// The commit of its start.
    Start(Seq),
    /// The commit of its row; then the turn it interrupts, if it still waits for that one, is
    /// asked to stop.
    Row(Ticket, Option<TurnInterrupt>),
}

/// A turn that was accepted: it will end, whoever goes away now, unless the process does first.
pub(crate) struct AcceptedTurn {
    pub(crate) turn: TurnId,
    pub(crate) state: TurnState,
    /// A position before it.
    pub(crate) position: Position,
    pub(crate) pending: PendingCommit,
    /// Its first stream, if its streams count: a caller that goes away leaves it.
    pub(crate) attendance: Option<StreamGuard>,
}

/// Makes the row of the key, once the turn it stands for has its id.
pub(crate) type KeyRows = Box<dyn FnOnce(TurnId) -> Vec<RowChange> + Send>;

impl LiveSession {
    /// Accepts a turn: starts it, puts it in line, or refuses it. One that was `stopped` before it
    /// came is accepted all the same, and asked to stop before it can begin anything.
    pub(crate) async fn take(
        self: &Arc<Self>,
        submit: SubmitRequest,
        key: KeyRows,
        stopped: Option<String>,
    ) -> Result<AcceptedTurn, Error> {
        // Held until the turn is counted, so that a server that drains waits for it.
        let _at_work = self.house.runner.turns.token();
        let departures = self.departures.load(Ordering::Acquire);
        let mut kept = None;
        loop {
            let moves = {
                let mut slot = self.slot.lock();
                if let Some(busy) = slot.busy() {
                    self.refuse(&slot, busy, submit.on_busy)?;
                }
                match (slot.busy(), kept.take()) {
                    (Some(_), Some(input)) => {
                        let entry = (submit, input, departures);
                        let mut taken = self.join(&mut slot, entry, key)?;
                        self.stop_taken(&mut slot, &mut taken, stopped.as_deref());
                        let idle = slot.running.is_none();
                        drop(slot);
                        if idle {
                            self.kick();
                        }
                        return Ok(taken);
                    }
                    (Some(_), None) => None,
                    (None, _) => Some(slot.moves),
                }
            };
            let Some(moves) = moves else {
                // It may be long, and must not hold the others up.
                kept = Some(to_keep(&submit)?);
                continue;
            };
            let told = self.past().await?;
            let mut slot = self.slot.lock();
            if slot.moves != moves || slot.busy().is_some() {
                continue; // someone was quicker: the past has changed
            }
            let (mut taken, run) = self.start_now(&mut slot, submit, key, (told, None))?;
            self.stop_taken(&mut slot, &mut taken, stopped.as_deref());
            drop(slot);
            run.go();
            // Whoever left while the turn was being accepted left before it could be cancelled.
            if self.left_since(departures) {
                self.left(false);
            }
            return Ok(taken);
        }
    }

    /// Accepts the first turn of a session that nobody else knows yet, with the event that makes
    /// the session. `place` lets others find the session: from then on they wait for the lock,
    /// so none of them comes before the turn.
    pub(crate) fn take_first(
        self: &Arc<Self>,
        submit: SubmitRequest,
        key: KeyRows,
        created: Draft,
        place: impl FnOnce(),
    ) -> Result<AcceptedTurn, Error> {
        let _at_work = self.house.runner.turns.token();
        let at = self.sequencer.last();
        self.memory.lock().begin(at);
        let told = TurnHistory {
            messages: Vec::new(),
            total: 0,
            at,
            asked: Vec::new(),
        };
        let mut slot = self.slot.lock();
        place();
        let (taken, run) = self.start_now(&mut slot, submit, key, (told, Some(created)))?;
        drop(slot);
        run.go();
        Ok(taken)
    }

    fn start_now(
        self: &Arc<Self>,
        slot: &mut TurnSlot,
        submit: SubmitRequest,
        key: KeyRows,
        (told, before): (TurnHistory, Option<Draft>),
    ) -> Result<(AcceptedTurn, TurnRun), Error> {
        // The first turn of a worker is part of a turn that runs, and may end as that one may.
        let delegated = self.depth > 0 && before.is_some();
        if self.house.runner.is_draining() && !delegated {
            return Err(Error::Draining);
        }
        let turn = TurnId(self.house.mint.ulid());
        let bound = submit.bound;
        let next = PendingTurn {
            id: turn,
            submit,
            presence: presence(bound),
            rows: key(turn),
            before: before.into_iter().collect(),
            resumed: None,
        };
        let (at, run) = self.begin(slot, next, told)?;
        let taken = AcceptedTurn {
            turn,
            state: TurnState::Running,
            position: Position::persisted(at.epoch, Seq(at.seq.0 - 1)),
            pending: PendingCommit::Start(at.seq),
            attendance: (bound == DisconnectScope::Stream).then(|| self.attended(turn)),
        };
        Ok((taken, run))
    }

    /// Asks a turn to stop in the moment in which it is taken.
    fn stop_taken(
        self: &Arc<Self>,
        slot: &mut TurnSlot,
        taken: &mut AcceptedTurn,
        stopped: Option<&str>,
    ) {
        let Some(reason) = stopped else { return };
        let (at, state) = match request::request_in(self, slot, taken.turn, "user", reason) {
            CancelOutcome::At(at) => (at, TurnState::Cancelling),
            CancelOutcome::Withdrawn(at) => (at, TurnState::Cancelled),
            CancelOutcome::Already | CancelOutcome::NotRunning => return,
        };
        taken.state = state;
        // The commit of the request is that of all that stands before it.
        taken.pending = PendingCommit::Start(at.seq);
    }

    /// The session is busy: says no to a turn that may not wait.
    fn refuse(&self, slot: &TurnSlot, busy: TurnId, on_busy: OnBusy) -> Result<(), Error> {
        if on_busy == OnBusy::Reject {
            return Err(Error::TurnInFlight(busy));
        }
        if slot.waiting() >= self.house.options.queue_max {
            return Err(Error::QueueFull);
        }
        if self.house.runner.is_draining() {
            return Err(Error::Draining);
        }
        Ok(())
    }

    /// The session is busy, and the turn waits.
    fn join(
        self: &Arc<Self>,
        slot: &mut TurnSlot,
        (submit, input, departures): (SubmitRequest, String, usize),
        key: KeyRows,
    ) -> Result<AcceptedTurn, Error> {
        let turn = TurnId(self.house.mint.ulid());
        let place = slot.next_place(submit.on_busy);
        let mut rows = vec![RowChange::TurnQueued {
            turn_id: turn,
            kind: self.kind(&submit),
            on_disconnect: submit.on_disconnect,
            disconnect_grace_ms: submit.disconnect_grace_ms,
            trace: submit.trace.clone(),
            wire_version: Some(submit.wire_version.clone()),
            place,
            input,
        }];
        rows.extend(key(turn));
        let (at, ticket) = self.sequencer.put(rows)?;
        let (bound, on_busy) = (submit.bound, submit.on_busy);
        slot.put(QueuedTurn {
            id: turn,
            place,
            submit,
            presence: presence(bound),
            departures,
            tries: 0,
            broken: false,
        });
        let running = slot.running.as_ref().map(|running| running.id);
        let interrupts = running
            .filter(|_| on_busy == OnBusy::Interrupt)
            .map(|running| TurnInterrupt { by: turn, running });
        Ok(AcceptedTurn {
            turn,
            state: TurnState::Queued,
            position: Position::persisted(at.epoch, at.seq),
            pending: PendingCommit::Row(ticket, interrupts),
            attendance: (bound == DisconnectScope::Stream).then(|| self.attended(turn)),
        })
    }

    /// Waits until an accepted turn is durable.
    pub(crate) async fn settle(self: Arc<Self>, pending: PendingCommit) -> Result<(), Error> {
        match pending {
            PendingCommit::Start(seq) => self.sequencer.committed(seq).await?,
            PendingCommit::Row(ticket, interrupts) => {
                self.sequencer.stored(ticket).await?;
                if let Some(interrupt) = interrupts {
                    request::interrupt(&self, &interrupt);
                }
            }
        }
        Ok(())
    }

    /// Takes a turn out of the line by the cancel in `request`: its start, the request and its
    /// end in one piece, beside whatever runs. Gives the place of its end.
    pub(crate) fn withdraw(
        &self,
        slot: &mut TurnSlot,
        turn: TurnId,
        request: Draft,
        reason: String,
    ) -> Option<Position> {
        let end = Body::TurnCancelled(Cancelled {
            reason,
            code: CancelCode::RequestCancelled,
            phase: Phase::Queued,
            partial: Partial {
                message_id: None,
                bytes: 0,
            },
            receipt: Vec::new(),
        });
        self.end_waiting(slot, turn, Some(request), end)
    }

    /// Ends a turn in line that cannot be started.
    pub(crate) fn fail(&self, slot: &mut TurnSlot, turn: TurnId) -> Option<Position> {
        let end = Body::TurnCompleted(Completed {
            status: TurnStatus::Failed,
            usage: Usage::default(),
            error: Some(ErrorCode::InternalError.into()),
            reason: None,
            partial: None,
        });
        self.end_waiting(slot, turn, None, end)
    }

    fn end_waiting(
        &self,
        slot: &mut TurnSlot,
        turn: TurnId,
        request: Option<Draft>,
        end: Body,
    ) -> Option<Position> {
        let waiting = slot.find(turn)?;
        let user = self.user_message(turn, &waiting.submit);
        // It never began, so it is bound to nothing and has dispatched nothing.
        let opening = self.opening(&waiting.submit, &user, 0, Versions::default(), None);
        let traced = Body::DispatchTraced(Traced::default());
        let mut traced = Draft::new(Some(turn), Actor::ORCHESTRATOR, traced);
        traced.trace.clone_from(&opening.trace);
        let mut last = Draft::new(Some(turn), Actor::SYSTEM, end);
        last.rows = rows(Some(turn), &last.actor, &last.body);
        last.trace.clone_from(&opening.trace);
        let terminal = last.body.clone();
        let drafts = [Some(opening), request, Some(traced), Some(last)];
        let drafts = drafts.into_iter().flatten();
        let places = self.sequencer.emit(drafts.collect(), Room::Reserved).ok()?;
        slot.take(turn);
        slot.moves += 1;
        // Its message stands among those of the turn that runs.
        if let Some(running) = &mut slot.running {
            running.alone = false;
        }
        metrics::counter!(metric::TURN_STARTED_TOTAL).increment(1);
        turn_metrics::count(&terminal, "");
        places.last().map(|(at, _)| *at)
    }
}

/// What is kept of a turn that waits.
fn to_keep(submit: &SubmitRequest) -> Result<String, Error> {
    serde_json::to_string(submit).map_err(|error| {
        tracing::error!(%error, "a submit cannot be kept");
        Error::Internal
    })
}

/// Who counts from the first moment: whoever submits a turn that is bound to its streams.
fn presence(bound: DisconnectScope) -> StreamPresence {
    StreamPresence {
        streams: usize::from(bound == DisconnectScope::Stream),
        departures: 0,
    }
}
