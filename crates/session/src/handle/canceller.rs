//! The handle that cancels turns: by turn id, by the running turn of a session, or by the
//! idempotency key of a submit that may not have arrived; and waits for their end.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use turnwire_event::body::bus::HandlerWarning;
use turnwire_event::body::turn::TurnCancelled;
use turnwire_event::code::TurnState;
use turnwire_event::row::{KeyScope, TurnRow};
use turnwire_event::{Owner, SessionId, TurnId, UpstreamId};
use turnwire_log::SequencerError;

use crate::error::Error;
use crate::live::bus::BusNotice;
use crate::live::session::LiveSession;
use crate::store_read::Reader;
use crate::turn::cancel::request::{
    CancelOutcome, request_cancel, request_cancel_locked, truncate_reason,
};

/// How long a cancel waits at a time for its record to be on disk, before it looks whether the disk
/// is full. A commit takes milliseconds.
const COMMIT_WAIT: Duration = Duration::from_secs(10);

/// The reason of a cancel whose caller gives none.
const DEFAULT_REASON: &str = TurnCancelled::USER_CANCEL;

handle!(
    /// Cancels turns and waits for their end.
    TurnCanceller
);

impl TurnCanceller {
    /// Requests the cancel of a turn of `live` by its user, without waiting for the commit, as
    /// [`cancel`](Self::cancel) does.
    pub fn request(
        &self,
        live: &Arc<LiveSession>,
        turn: TurnId,
        reason: Option<&str>,
    ) -> CancelOutcome {
        request_cancel(live, turn, "user", reason.unwrap_or(DEFAULT_REASON))
    }

    /// The turn of `owner` whose upstream gave its response the id `id`.
    pub async fn turn_of_response(&self, owner: &Owner, id: UpstreamId) -> Result<TurnId, Error> {
        self.core.turn_of_response(owner, id).await
    }

    /// Cancels a turn. Returns when the request is durable; a turn that has ended is unchanged. If
    /// the disk has no space for the record, the turn stops nevertheless, and its end is written
    /// when there is.
    pub async fn cancel(
        &self,
        owner: &Owner,
        id: TurnId,
        reason: Option<String>,
    ) -> Result<TurnState, Error> {
        let row = self.core.turn(owner, id).await?;
        if row.ended.is_some() {
            if let Ok(live) = self.core.open(owner, row.session_id).await {
                warn_redundant(&live);
            }
            return Ok(row.state);
        }
        let live = self.core.open(owner, row.session_id).await?;
        let outcome = self.request(&live, id, reason.as_deref());
        self.wait_until_durable(owner, &live, id, outcome).await
    }

    /// As [`request`](Self::request), in the session that the store has for the turn, if that is one
    /// of those that `includes` accepts. Returns the state of the turn too, once an end is durable.
    pub async fn request_stored(
        &self,
        owner: &Owner,
        includes: impl Fn(SessionId) -> bool,
        id: TurnId,
        reason: Option<&str>,
    ) -> Result<(CancelOutcome, TurnState), Error> {
        let row = self.core.turn(owner, id).await?;
        if !includes(row.session_id) {
            return Err(Error::TurnNotFound);
        }
        if row.ended.is_some() {
            return Ok((CancelOutcome::NotRunning, row.state));
        }
        let live = self.core.open(owner, row.session_id).await?;
        let outcome = self.request(&live, id, reason);
        let state = match outcome {
            CancelOutcome::Requested(_) | CancelOutcome::AlreadyRequested => TurnState::Cancelling,
            CancelOutcome::Withdrawn(_) => TurnState::Cancelled,
            CancelOutcome::NotRunning => {
                live.all_committed().await?;
                self.core.turn(owner, id).await?.state
            }
        };
        Ok((outcome, state))
    }

    /// Waits until the request is durable, and returns the state of the turn.
    async fn wait_until_durable(
        &self,
        owner: &Owner,
        live: &Arc<LiveSession>,
        id: TurnId,
        outcome: CancelOutcome,
    ) -> Result<TurnState, Error> {
        // Without a request of its own, the call waits for the events before it: the first request,
        // or the terminal of a turn that ended between the read and the request.
        match outcome {
            CancelOutcome::Requested(at) | CancelOutcome::Withdrawn(at) => {
                self.wait_for_commit(live.committed(at.seq)).await?;
            }
            CancelOutcome::AlreadyRequested | CancelOutcome::NotRunning => {
                self.wait_for_commit(live.all_committed()).await?;
            }
        }
        match outcome {
            CancelOutcome::Requested(_) => Ok(TurnState::Cancelling),
            CancelOutcome::Withdrawn(_) => Ok(TurnState::Cancelled),
            CancelOutcome::AlreadyRequested => {
                warn_redundant(live);
                Ok(TurnState::Cancelling)
            }
            CancelOutcome::NotRunning => Ok(self.core.turn(owner, id).await?.state),
        }
    }

    /// Waits for a commit, unless the disk is full and stays so: its owner needs an answer.
    async fn wait_for_commit(
        &self,
        commit: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let mut commit = pin!(commit);
        loop {
            match timeout(COMMIT_WAIT, &mut commit).await {
                Ok(committed) => return committed,
                Err(_) if self.core.services.is_storage_full() => return Err(Error::StorageFull),
                Err(_) => {}
            }
        }
    }

    /// Cancels the running turn of a session, or the next queued one; `None` if there is neither.
    pub async fn cancel_running(
        &self,
        owner: &Owner,
        session: SessionId,
        reason: Option<String>,
    ) -> Result<Option<(TurnId, TurnState)>, Error> {
        let live = self.core.open(owner, session).await?;
        let cancelled = {
            let mut slot = live.slot.lock();
            let reason = reason.as_deref().unwrap_or(DEFAULT_REASON);
            // The first turn of a worker has not begun.
            let blocking = slot.blocking_turn().filter(|_| slot.first_turn.is_none());
            blocking.map(|id| {
                let outcome = request_cancel_locked(&live, &mut slot, id, "user", reason);
                (id, outcome)
            })
        };
        let Some((id, outcome)) = cancelled else {
            return Ok(None);
        };
        let state = self.wait_until_durable(owner, &live, id, outcome).await?;
        Ok(Some((id, state)))
    }

    /// Cancels the turn that was submitted to a session with `key` by one of `routes`. `None` if
    /// no such submit has arrived: if it arrives within a minute, its turn is accepted and
    /// cancelled before it does anything.
    pub async fn cancel_submit(
        &self,
        owner: &Owner,
        session: SessionId,
        (routes, key): (&[&'static str], String),
        reason: Option<String>,
    ) -> Result<Option<(TurnId, TurnState)>, Error> {
        self.core.open(owner, session).await?;
        let scopes = routes.iter().map(|route| KeyScope {
            owner: owner.clone(),
            route: (*route).to_owned(),
            session: Some(session),
            key: key.clone(),
        });
        let scopes: Vec<KeyScope> = scopes.collect();
        // A submit locks its key until its turn is durable: with the locks held, the submit is
        // either stored, or comes later and finds the early cancel. All callers lock in the order
        // of `routes`, so two of them cannot deadlock.
        let mut key_locks = Vec::with_capacity(scopes.len());
        for scope in &scopes {
            key_locks.push(self.core.idempotency.lock(scope.clone()).await?);
        }
        let expired_until = self.core.keys_expired_until();
        let reader = Reader::Owner(owner.clone());
        let read = self.core.services.read_for(reader, move |store| {
            let mut turns = Vec::new();
            for scope in &scopes {
                let row = store.idempotency_key(scope)?;
                let row = row.filter(|row| row.created_at > expired_until);
                turns.extend(row.map(|row| row.turn_id));
            }
            Ok::<_, Error>(turns)
        });
        let turns = read.await?;
        if turns.is_empty() {
            let reason = truncate_reason(reason.as_deref().unwrap_or(DEFAULT_REASON));
            let submit = (owner.clone(), session, key);
            let early_cancels = &self.core.early_cancels;
            early_cancels.insert(submit, reason, Instant::now())?;
            return Ok(None);
        }
        drop(key_locks);
        let mut cancelled = None;
        for turn in turns {
            let state = self.cancel(owner, turn, reason.clone()).await?;
            // The same key by two routes refers to two turns; one that is stopping takes priority.
            if cancelled.is_none() || state == TurnState::Cancelling {
                cancelled = Some((turn, state));
            }
        }
        Ok(cancelled)
    }

    /// Waits for the durable end of a turn; `None` if it has not ended within `timeout`.
    pub async fn wait_for_end(
        &self,
        owner: &Owner,
        id: TurnId,
        timeout: Duration,
    ) -> Result<Option<TurnRow>, Error> {
        let row = self.core.turn(owner, id).await?;
        if let Some(terminal) = row.ended {
            let Some(live) = self.core.registry.get(row.session_id) else {
                return Ok(Some(row));
            };
            // The row is readable a moment before the events of its commit are released. Not for the
            // events of later turns, which cannot be written while the disk is full.
            let released = live.committed(terminal.seq);
            return match tokio::time::timeout(timeout, released).await {
                Ok(released) => released.map(|()| Some(row)),
                Err(_) => Ok(None),
            };
        }
        let live = self.core.open(owner, row.session_id).await?;
        let ended = live.turn_ended(id);
        let durable = async {
            tokio::select! {
                () = ended.cancelled() => live.all_committed().await,
                // A deleted session is gone, whatever its turn still waits for.
                () = live.sequencer.closed() => Err(live.refusal(SequencerError::Closed)),
            }
        };
        let Ok(durable) = tokio::time::timeout(timeout, durable).await else {
            return Ok(None);
        };
        durable?;
        let row = self.core.turn(owner, id).await?;
        Ok(Some(row).filter(|row| row.ended.is_some()))
    }
}

fn warn_redundant(live: &Arc<LiveSession>) {
    live.emit_notice(BusNotice::Warning {
        subscription: "http".into(),
        reason: HandlerWarning::REDUNDANT_CANCEL,
    });
}
