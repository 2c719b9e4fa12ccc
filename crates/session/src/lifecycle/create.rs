//! Making a session, alone or with its first turn.
//!
//! The session has its place in memory before the first event of it is handed over: whoever
//! reads of it in the store, the moment it is there, finds this one and opens no second.

use std::sync::Arc;

use turnwire_event::body::session::Created;
use turnwire_event::row::{RowChange, SessionRow};
use turnwire_event::{Actor, Body, EpisodeId, Owner, SessionId};
use turnwire_log::{Draft, Room, Tail};

use crate::error::Error;
use crate::lifecycle::core::Sessions;
use crate::live::session::LiveSession;
use crate::queue::accept::{AcceptedTurn, KeyRows};
use crate::submit::request::{NewSession, SubmitRequest};

impl Sessions {
    /// Makes a session. Durable on return.
    pub async fn create(&self, owner: &Owner, new: NewSession) -> Result<SessionRow, Error> {
        self.admit()?;
        let (live, created) = self.blank(owner, new)?;
        let row = live.ring.look(|transcript, _, _| transcript.row.clone());
        self.registry.put(live.clone());
        let emitted = live.sequencer.emit_one(created, Room::Reserved);
        let (at, _) = emitted.inspect_err(|_| drop(self.registry.remove(live.id)))?;
        live.sequencer.committed(at.seq).await?;
        Ok(row)
    }

    /// Makes a session with its first turn, in one commit: both or none.
    pub(crate) fn found(
        &self,
        owner: &Owner,
        new: NewSession,
        submit: SubmitRequest,
        key: KeyRows,
    ) -> Result<(Arc<LiveSession>, AcceptedTurn), Error> {
        let blank = self.blank(owner, new)?;
        self.found_in(blank, submit, key)
    }

    /// Gives a session that nobody knows its first turn.
    pub(crate) fn found_in(
        &self,
        (live, created): (Arc<LiveSession>, Draft),
        submit: SubmitRequest,
        key: KeyRows,
    ) -> Result<(Arc<LiveSession>, AcceptedTurn), Error> {
        let place = || self.registry.put(live.clone());
        match live.take_first(submit, key, created, place) {
            Ok(taken) => Ok((live, taken)),
            Err(error) => {
                self.registry.remove(live.id);
                Err(error)
            }
        }
    }

    /// A session that nobody knows and nothing is written of, and the event that makes it.
    fn blank(&self, owner: &Owner, new: NewSession) -> Result<(Arc<LiveSession>, Draft), Error> {
        let now = self.house.clock.now();
        let row = SessionRow {
            agent: None,
            id: SessionId(self.house.mint.ulid()),
            owner: owner.clone(),
            parent: None,
            workspace_path: new.workspace_path,
            metadata: new.metadata,
            episode_id: EpisodeId(self.house.mint.ulid()),
            active_model: self.house.options.default_model.clone(),
            routing_policy_version: self.policy(),
            cost_usd: 0.0,
            turn_count: 0,
            created_at: now,
            updated_at: now,
        };
        self.unwritten(row, 0)
    }

    /// A session with so many above it that nobody knows and nothing is written of, and the event
    /// that makes it.
    pub(crate) fn unwritten(
        &self,
        row: SessionRow,
        depth: usize,
    ) -> Result<(Arc<LiveSession>, Draft), Error> {
        self.registry.make_room(self.house.options.open_max, None)?;
        let tail = Tail::first(row.id, row.created_at);
        let live = LiveSession::open(self.house.clone(), (row.clone(), depth), tail, None);
        let created = Created {
            workspace_path: row.workspace_path.clone(),
            episode_id: row.episode_id,
        };
        // A worker is made by the agent that delegates to it, not by a person.
        let actor = match row.parent {
            None => Actor::USER,
            Some(_) => Actor::ORCHESTRATOR,
        };
        let mut draft = Draft::new(None, actor, Body::SessionCreated(created));
        draft.rows = vec![RowChange::SessionPut(Box::new(row))];
        Ok((live, draft))
    }
}
