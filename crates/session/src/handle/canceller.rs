//! Stopping turns from outside: by the turn's id, by what a session runs now, or by the key of a
//! submit that may not have come yet; and waiting until they have stopped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use turnwire_event::code::TurnState;
use turnwire_event::row::{KeyScope, TurnRow};
use turnwire_event::{Owner, SessionId, TurnId};

use crate::cancel::request::{self, CancelOutcome};
use crate::error::Error;
use crate::lifecycle::core::Sessions;
use crate::live::bus::BusNotice;
use crate::live::session::LiveSession;
use crate::store_read::blocking;

/// What a stop is said to be for if nobody says.
const REASON: &str = "user_cancel";

impl Sessions {
    /// Asks a turn to stop. Returns when the request is durable; a turn that has ended is left
    /// as it is.
    pub async fn cancel(
        &self,
        owner: &Owner,
        id: TurnId,
        reason: Option<String>,
    ) -> Result<TurnState, Error> {
        let row = self.turn(owner, id).await?;
        if row.ended.is_some() {
            if let Ok(live) = self.live(owner, row.session_id).await {
                warn(&live);
            }
            return Ok(row.state);
        }
        let live = self.live(owner, row.session_id).await?;
        let requested = request::request(&live, id, "user", reason.as_deref().unwrap_or(REASON));
        self.asked(owner, &live, id, requested).await
    }

    /// Waits until the request is durable, and says where the turn stands.
    async fn asked(
        &self,
        owner: &Owner,
        live: &Arc<LiveSession>,
        id: TurnId,
        requested: CancelOutcome,
    ) -> Result<TurnState, Error> {
        match requested {
            CancelOutcome::At(at) => {
                live.sequencer.committed(at.seq).await?;
                Ok(TurnState::Cancelling)
            }
            CancelOutcome::Withdrawn(at) => {
                live.sequencer.committed(at.seq).await?;
                Ok(TurnState::Cancelled)
            }
            CancelOutcome::Already => {
                // The request that came first must be in the log before this one is answered.
                live.sequencer.committed(live.sequencer.last().seq).await?;
                warn(live);
                Ok(TurnState::Cancelling)
            }
            // It ended between the look and the request: its terminal is on its way to the store.
            CancelOutcome::NotRunning => {
                live.sequencer.committed(live.sequencer.last().seq).await?;
                Ok(self.turn(owner, id).await?.state)
            }
        }
    }

    /// Asks the turn to stop that a session runs now, or is about to start. None if there is none.
    pub async fn cancel_running(
        &self,
        owner: &Owner,
        session: SessionId,
        reason: Option<String>,
    ) -> Result<Option<(TurnId, TurnState)>, Error> {
        let live = self.live(owner, session).await?;
        let requested = {
            let mut slot = live.slot.lock();
            let reason = reason.as_deref().unwrap_or(REASON);
            slot.busy().map(|id| {
                let requested = request::request_in(&live, &mut slot, id, "user", reason);
                (id, requested)
            })
        };
        let Some((id, requested)) = requested else {
            return Ok(None);
        };
        let state = self.asked(owner, &live, id, requested).await?;
        Ok(Some((id, state)))
    }

    /// Asks the turn to stop that was submitted into a session with `key` by one of `routes`.
    /// None if that submit has not come: when it does, within a minute, its turn is accepted and
    /// stopped before it begins anything.
    pub async fn cancel_submit(
        &self,
        owner: &Owner,
        session: SessionId,
        (routes, key): (&[&'static str], String),
        reason: Option<String>,
    ) -> Result<Option<(TurnId, TurnState)>, Error> {
        self.live(owner, session).await?;
        let scopes = routes.iter().map(|route| KeyScope {
            owner: owner.clone(),
            route: (*route).to_owned(),
            session: Some(session),
            key: key.clone(),
        });
        let scopes: Vec<KeyScope> = scopes.collect();
        // A submit holds its key until its turn is durable: from here on it has either been, and
        // is found, or it comes later, and finds what is kept for it. In one order, so that two
        // of these cannot wait for each other.
        let mut held = Vec::with_capacity(scopes.len());
        for scope in &scopes {
            held.push(self.keys.hold(scope.clone()).await?);
        }
        let since = self.oldest_key_ms();
        let turns = blocking(self.house.store(), move |store| {
            let mut turns = Vec::new();
            for scope in &scopes {
                let row = store.key(scope)?;
                let row = row.filter(|row| row.created_at.as_millis() > since);
                turns.extend(row.map(|row| row.turn_id));
            }
            Ok::<_, Error>(turns)
        })
        .await?;
        if turns.is_empty() {
            let reason = request::kept(reason.as_deref().unwrap_or(REASON));
            let meant = (owner.clone(), session, key);
            self.early.keep(meant, reason, Instant::now())?;
            return Ok(None);
        }
        drop(held);
        let mut stopped = None;
        for turn in turns {
            let state = self.cancel(owner, turn, reason.clone()).await?;
            // The same key by two routes is two turns; the one that still had to be stopped counts.
            if stopped.is_none() || state == TurnState::Cancelling {
                stopped = Some((turn, state));
            }
        }
        Ok(stopped)
    }

    /// The turn with its durable end; none if it has not ended within the time given.
    pub async fn ended(
        &self,
        owner: &Owner,
        id: TurnId,
        within: Duration,
    ) -> Result<Option<TurnRow>, Error> {
        let row = self.turn(owner, id).await?;
        if row.ended.is_some() {
            return Ok(Some(row));
        }
        let live = self.live(owner, row.session_id).await?;
        let over = live.over(id);
        let durable = async {
            over.cancelled().await;
            live.sequencer.committed(live.sequencer.last().seq).await
        };
        match tokio::time::timeout(within, durable).await {
            Err(_) => return Ok(None),
            Ok(durable) => durable?,
        }
        let row = self.turn(owner, id).await?;
        Ok(Some(row).filter(|row| row.ended.is_some()))
    }
}

impl LiveSession {
    /// Told when the turn holds the lock no more and nothing of it is left, also if it never did.
    pub(crate) fn over(&self, turn: TurnId) -> CancellationToken {
        let slot = self.slot.lock();
        let running = slot.running.as_ref().filter(|running| running.id == turn);
        running.map_or_else(
            || {
                let over = CancellationToken::new();
                over.cancel();
                over
            },
            |running| running.over.token(),
        )
    }
}

fn warn(live: &Arc<LiveSession>) {
    live.note(BusNotice::Warning {
        subscription: "http".into(),
        reason: "redundant_cancel",
    });
}
