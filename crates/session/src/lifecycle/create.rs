//! Creating a session, alone or with its first turn.
//!
//! The session is in the registry before its first event is handed over: a caller that finds it in
//! the store gets this instance and does not load a second one.

use std::sync::Arc;

use turnwire_event::body::session::SessionCreated;
use turnwire_event::row::{RowChange, SessionRow};
use turnwire_event::{Actor, Body, Owner, Seq, SessionId, TurnId};
use turnwire_log::{EventDraft, LogTail, OutboxRoom};

use super::session_core::SessionCore;
use crate::error::Error;
use crate::live::session::LiveSession;
use crate::submit::input_bytes::TurnPermit;
use crate::submit::request::{NewSession, SubmitRequest};
use crate::turn::queue::accept::{AcceptanceRows, AcceptedTurn, accept_first_turn};

impl SessionCore {
    /// Creates a session. Durable on return.
    pub(crate) async fn create(&self, owner: &Owner, new: NewSession) -> Result<SessionRow, Error> {
        self.check_accepts_turns()?;
        let slot = self.services.write_slot(owner).await?;
        let (live, created) = self.prepare_new(owner, new)?;
        let row = live.with_row(SessionRow::clone);
        self.registry.insert(live.clone());
        let emitted = live.sequencer.emit_one(created, OutboxRoom::Reserved);
        let (at, _) = emitted.inspect_err(|_| drop(self.registry.remove(live.id)))?;
        live.committed_in(slot, at.seq).await?;
        Ok(row)
    }

    /// Creates a session with its first turn, in one commit: both or neither.
    pub(crate) fn create_with_turn(
        &self,
        owner: &Owner,
        new: NewSession,
        request: SubmitRequest,
        rows: AcceptanceRows,
    ) -> Result<(Arc<LiveSession>, AcceptedTurn), Error> {
        let input_bytes = request.content_bytes();
        let input_permit = self
            .services
            .runner
            .inputs
            .try_acquire(owner, input_bytes)?;
        let permit = self.services.runner.running.try_acquire(owner)?;
        let permit = TurnPermit::new(permit, input_permit);
        let prepared = self.prepare_new(owner, new)?;
        self.start_prepared(prepared, request, rows, permit)
    }

    /// Registers a prepared session with its first turn.
    fn start_prepared(
        &self,
        (live, created): (Arc<LiveSession>, EventDraft),
        request: SubmitRequest,
        rows: AcceptanceRows,
        permit: TurnPermit,
    ) -> Result<(Arc<LiveSession>, AcceptedTurn), Error> {
        let publish = || self.registry.insert(live.clone());
        let first = (Some(created), permit);
        let accepted = accept_first_turn(&live, request, rows, first, publish)
            .inspect_err(|_| drop(self.registry.remove(live.id)))?;
        Ok((live, accepted))
    }

    /// Creates the session of a worker at `depth`, which `row` describes. Only the worker's first turn
    /// may start in it. Returns the session with the number of the event that creates it.
    pub(crate) fn create_worker(
        &self,
        row: SessionRow,
        depth: usize,
    ) -> Result<(Arc<LiveSession>, Seq), Error> {
        let (live, created) = self.prepare(row, depth)?;
        live.slot.lock().first_turn = Some(TurnId(self.services.id_generator.ulid()));
        self.registry.insert(live.clone());
        let emitted = live.sequencer.emit_one(created, OutboxRoom::Reserved);
        let (at, _) = emitted.inspect_err(|_| drop(self.registry.remove(live.id)))?;
        Ok((live, at.seq))
    }

    /// Prepares a new session of a person.
    fn prepare_new(
        &self,
        owner: &Owner,
        new: NewSession,
    ) -> Result<(Arc<LiveSession>, EventDraft), Error> {
        let id = SessionId(self.services.id_generator.ulid());
        let row = SessionRow {
            workspace_path: new.workspace_path,
            metadata: new.metadata,
            ..self.services.new_session(id, owner)
        };
        self.prepare(row, 0)
    }

    /// Prepares a session at `depth` that is neither registered nor stored, and the draft of the
    /// event that creates it.
    fn prepare(
        &self,
        row: SessionRow,
        depth: usize,
    ) -> Result<(Arc<LiveSession>, EventDraft), Error> {
        self.registry
            .make_room(&self.services.options, &row.owner)?;
        let tail = LogTail::first(row.id, row.created_at);
        let live = LiveSession::load(self.services.clone(), (row.clone(), depth), tail, None);
        let created = SessionCreated {
            workspace_path: row.workspace_path.clone(),
            episode_id: row.episode_id,
        };
        // The agent that delegates creates a worker; a person creates any other session.
        let actor = match row.parent {
            None => Actor::USER,
            Some(_) => Actor::ORCHESTRATOR,
        };
        let mut draft = EventDraft::new(None, actor, Body::SessionCreated(created));
        draft.rows = vec![RowChange::SessionPut(Box::new(row))];
        Ok((live, draft))
    }
}
