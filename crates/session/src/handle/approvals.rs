//! The handle for the approvals of paused turns. The last decision starts the resuming turn in the
//! same commit: there is no moment in which everything is decided and nothing goes on.
//!
//! ```text
//! turn A … approval.requested*  turn.completed{paused}
//!                 approval.resolved   approval.resolved + turn.started B {resumes: A}   … B …
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use turnwire_event::code::{AuditAction, AuditOutcome, Decision};
use turnwire_event::row::{ApprovalRow, AuditEntry, RowChange, TurnRow};
use turnwire_event::{
    ApprovalId, CallerTrace, Owner, Position, TraceContext, TracePropagation, TurnId,
};
use turnwire_log::{EventDraft, OutboxRoom, Store};

use crate::error::Error;
use crate::history::select::SizedMessage;
use crate::live::session::LiveSession;
use crate::live::turn_slot::StreamPresence;
use crate::read::viewer::Viewer;
use crate::store_read::Reader;
use crate::submit::request::SubmitRequest;
use crate::turn::approval::paused_turn::{
    ApprovalDecision, BY_REVIEWER, BY_USER, PausedTurn, decision_draft, input_json,
};
use crate::turn::approval::turn_chain::TurnChain;
use crate::turn::run::start::{PendingTurn, TurnHistory, load_history, start_turn};

/// The durable result of [`TurnApprovals::decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalOutcome {
    /// The number of approvals of the turn without a decision.
    pub remaining: usize,
    /// The turn that resumes the paused one, once all approvals are decided.
    pub next: Option<TurnId>,
}

handle!(
    /// Reads and decides the approvals of paused turns.
    TurnApprovals
);

impl TurnApprovals {
    /// The approvals that a turn requested, in order, and the turn that resumes it.
    pub async fn list(
        &self,
        viewer: impl Into<Viewer<'_>>,
        turn: TurnId,
    ) -> Result<(Vec<ApprovalRow>, Option<TurnId>), Error> {
        let viewer = viewer.into();
        let row = self.core.turn(viewer, turn).await?;
        let paused = self.read_paused(viewer.owner, row).await?;
        Ok((paused.approvals, paused.resumed_by))
    }

    /// One approval of a turn, and the whole input that its tool runs with, as JSON text; `None` if
    /// the input is no longer stored.
    pub async fn read(
        &self,
        viewer: impl Into<Viewer<'_>>,
        turn: TurnId,
        id: ApprovalId,
    ) -> Result<(ApprovalRow, Option<String>), Error> {
        let viewer = viewer.into();
        let row = self.core.turn(viewer, turn).await?;
        let read = move |store: &dyn Store| {
            let mut approvals = store.turn_approvals(row.id)?.into_iter();
            let approval = approvals.find(|approval| approval.id == id);
            let approval = approval.ok_or(Error::ApprovalNotFound)?;
            let json = input_json(store, &row, approval.tool_use_id)?;
            Ok((approval, json))
        };
        let reader = Reader::Owner(viewer.owner.clone());
        self.core.services.read_for(reader, read).await
    }

    /// Applies a person's decisions on the approvals of a paused turn, all of them or none. The
    /// same decisions again change nothing. The last one starts the resuming turn. Durable on
    /// return.
    pub async fn decide(
        &self,
        viewer: impl Into<Viewer<'_>>,
        turn: TurnId,
        decisions: Vec<ApprovalDecision>,
        caller: Option<CallerTrace>,
    ) -> Result<ApprovalOutcome, Error> {
        let viewer = viewer.into();
        let row = self.core.turn(viewer, turn).await?;
        let live = self.core.open(viewer, row.session_id).await?;
        // What the decision does, it does for the owner of the turn.
        let owner = &live.owner;
        let by = if viewer.owner == owner {
            BY_USER
        } else {
            BY_REVIEWER
        };
        let (trace, propagation) = match caller {
            None => (None, TracePropagation::default()),
            Some(caller) => (Some(Arc::new(caller.context)), caller.propagation),
        };
        // Held until the resuming turn is counted, so that a drain waits for it.
        let _task_token = self.core.services.runner.turn_tasks.token();
        loop {
            let version = live.slot.lock().version;
            // After this the store has every message and decision so far.
            let history = load_history(&live, live.read_share()).await?;
            let row = self.core.turn(owner, turn).await?;
            let mut paused = self.read_paused(owner, row).await?;
            let applied = paused.apply(decisions.clone(), by)?;
            let remaining = paused.pending_count();
            if applied.is_empty() {
                let next = paused.resumed_by;
                // Nothing resumes the turn: the conversation went on without it.
                let expired = decisions.first();
                let expired = expired.filter(|_| remaining == 0 && next.is_none());
                return match expired {
                    Some(decision) => Err(Error::ApprovalResolved(decision.approval_id)),
                    None => Ok(ApprovalOutcome { remaining, next }),
                };
            }
            self.core.check_accepts_turns()?;
            let resuming = match remaining {
                0 => {
                    let caller = (trace.as_deref(), &propagation);
                    let resuming = self.resuming_turn(owner, &paused, history, caller);
                    Some(resuming.await?)
                }
                _ => None,
            };
            // Not held while another round reads.
            let slot = self.core.services.write_slot(owner).await?;
            let drafts = applied.into_iter().map(|decision| {
                let audit = self.decision_entry(viewer, &paused, &decision);
                let mut draft = decision_draft(decision, by, trace.as_ref());
                draft.rows.push(RowChange::AuditAdded(Box::new(audit)));
                draft
            });
            // `None`: another decision or another turn came first.
            if let Some((at, next)) = self.record(&live, version, drafts.collect(), resuming)? {
                live.committed_in(slot, at.seq).await?;
                return Ok(ApprovalOutcome { remaining, next });
            }
        }
    }

    /// The record of a decision, which names the person; the event has a role only.
    fn decision_entry(
        &self,
        viewer: Viewer<'_>,
        paused: &PausedTurn,
        decision: &ApprovalDecision,
    ) -> AuditEntry {
        let now = self.core.services.clock.now();
        AuditEntry {
            session_id: Some(paused.turn.session_id),
            turn_id: Some(paused.turn.id),
            approval_id: Some(decision.approval_id),
            outcome: Some(match decision.decision {
                Decision::Approve => AuditOutcome::Approved,
                Decision::Reject => AuditOutcome::Rejected,
            }),
            ..AuditEntry::new(now, AuditAction::ApprovalDecided, &viewer.requester())
        }
    }

    /// Emits the decisions and starts the resuming turn in one step, unless the slot has changed
    /// since `version`.
    fn record(
        &self,
        live: &Arc<LiveSession>,
        version: u64,
        drafts: Vec<EventDraft>,
        resuming: Option<(PendingTurn, TurnHistory)>,
    ) -> Result<Option<(Position, Option<TurnId>)>, Error> {
        let mut slot = live.slot.lock();
        if slot.version != version {
            return Ok(None);
        }
        let Some((mut pending, history)) = resuming else {
            let emitted = live.sequencer.emit(drafts, OutboxRoom::Reserved);
            let positions = emitted.map_err(|refused| live.refusal(refused))?;
            slot.version += 1;
            let at = positions.last().map(|(at, _)| (*at, None));
            return Ok(at);
        };
        if let Some(running) = &slot.running {
            return Err(Error::TurnInFlight(running.id));
        }
        if self.core.services.runner.is_draining() {
            return Err(Error::Draining);
        }
        let id = pending.id;
        pending.preceding = drafts;
        let (at, run) = start_turn(live, &mut slot, pending, history)?;
        drop(slot);
        run.spawn();
        Ok(Some((at, Some(id))))
    }

    /// The turn that resumes `paused`, with its history.
    async fn resuming_turn(
        &self,
        owner: &Owner,
        paused: &PausedTurn,
        history: TurnHistory,
        (trace, propagation): (Option<&TraceContext>, &TracePropagation),
    ) -> Result<(PendingTurn, TurnHistory), Error> {
        // Refused before anything is decided: the same decisions can be sent again.
        let permit = self.core.services.runner.running.try_acquire(owner)?;
        let (turn, upto) = (paused.turn.clone(), history.at);
        let read = move |store: &dyn Store| TurnChain::read(store, &turn, upto);
        let reader = Reader::Owner(owner.clone());
        let chain = self.core.services.read_for(reader, read).await?;
        let request = SubmitRequest {
            trace: trace.cloned(),
            propagation: propagation.clone(),
            ..chain.request
        };
        let new_id = || TurnId(self.core.services.id_generator.ulid());
        let id = paused.announced_next().unwrap_or_else(new_id);
        let pending = PendingTurn {
            resumed: Some(paused.resumption()),
            ..PendingTurn::new(id, request, StreamPresence::default(), permit.into())
        };
        Ok((pending, with_chain(history, &chain.turns, chain.messages)))
    }

    /// The paused turn of a row that `owner` was checked against.
    async fn read_paused(&self, owner: &Owner, row: TurnRow) -> Result<PausedTurn, Error> {
        let reader = Reader::Owner(owner.clone());
        let read = move |store: &dyn Store| PausedTurn::read(store, row);
        self.core.services.read_for(reader, read).await
    }
}

/// The history with the messages of the resumed turns: the resuming turn is useless without them, so
/// the budget of the history does not cut them.
fn with_chain(
    history: TurnHistory,
    turns: &HashSet<TurnId>,
    messages: Vec<SizedMessage>,
) -> TurnHistory {
    let older = history.messages.into_iter();
    let older = older.filter(|(message, _)| !turns.contains(&message.turn_id));
    TurnHistory {
        messages: older.chain(messages).collect(),
        ..history
    }
}
