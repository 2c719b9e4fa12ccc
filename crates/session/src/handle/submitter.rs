//! Submitting a turn: into a session or into a new one, with or without a key that makes the
//! submit repeatable.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::row::{KeyScope, RowChange};
use turnwire_event::{Owner, Position, Seq, TurnId, metric};

use crate::cancel::disconnect::StreamGuard;
use crate::cancel::early_cancel::SubmitKey;
use crate::error::Error;
use crate::lifecycle::core::Sessions;
use crate::live::session::LiveSession;
use crate::queue::accept::{AcceptedTurn, KeyRows};
use crate::store_read::blocking;
use crate::submit::idempotency::KeyLockGuard;
use crate::submit::request::{IdempotencyKey, SubmitRequest, SubmitTarget, SubmittedTurn};

impl Sessions {
    /// Accepts a turn. Durable on return, and from then on it goes to its end even if the caller
    /// is gone; a caller that goes away before has a turn accepted whole, key included, or none.
    ///
    /// With `Place::New` the session is made in the same commit: both or none.
    ///
    /// The streams of a turn that is `Bound::Stream` count from the first that attends. Whoever
    /// will stream the turn should take `submit_attended`: there is no moment then in which a
    /// client could leave unseen.
    pub async fn submit(
        self: &Arc<Self>,
        owner: &Owner,
        place: SubmitTarget,
        submit: SubmitRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<SubmittedTurn, Error> {
        let (accepted, attendance) = self.accept(owner, place, submit, key).await?;
        if let Some(attendance) = attendance {
            attendance.leave_quietly();
        }
        Ok(accepted)
    }

    /// Accepts a turn that the caller streams. A caller that goes away while a `Bound::Stream`
    /// turn is being accepted has left it.
    pub async fn submit_attended(
        self: &Arc<Self>,
        owner: &Owner,
        place: SubmitTarget,
        submit: SubmitRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<(SubmittedTurn, StreamGuard), Error> {
        let (accepted, attendance) = self.accept(owner, place, submit, key).await?;
        let attendance = match attendance {
            Some(attendance) => attendance,
            None => {
                let live = self.live(owner, accepted.session_id).await?;
                live.attend(accepted.turn_id)
            }
        };
        Ok((accepted, attendance))
    }

    async fn accept(
        &self,
        owner: &Owner,
        place: SubmitTarget,
        submit: SubmitRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<(SubmittedTurn, Option<StreamGuard>), Error> {
        let mut held = None;
        let mut meant = None;
        let mut rows: KeyRows = Box::new(|_| Vec::new());
        if let Some(key) = key {
            let scope = scope(owner, &place, &key);
            held = Some(self.keys.hold(scope.clone()).await?);
            if let Some(accepted) = self.earlier(&scope, &key).await? {
                metrics::counter!(metric::TURN_REPEATED_TOTAL).increment(1);
                return Ok((accepted, None));
            }
            meant = scope.session.map(|id| (owner.clone(), id, key.key));
            rows = key_rows(scope, key.body_sha256);
        }
        self.admit()?;
        let wire_version = submit.wire_version.clone();
        let (live, taken) = match place {
            SubmitTarget::In(id) => {
                let live = self.live(owner, id).await?;
                // A stop may have come before: who asked for it holds the key, as we do now.
                let early = |meant: &SubmitKey| self.early.reason(meant, Instant::now());
                let stopped = meant.as_ref().and_then(early);
                let used = meant.filter(|_| stopped.is_some());
                let taken = live.take(submit, rows, stopped).await?;
                if let Some(meant) = used {
                    self.early.done(&meant);
                }
                (live, taken)
            }
            SubmitTarget::New(new) => self.found(owner, new, submit, rows)?,
        };
        settled(live, taken, wire_version, held).await
    }

    /// Keys that were used up to then no longer stand for their turn.
    pub(crate) fn oldest_key_ms(&self) -> i64 {
        let ttl_ms = i64::try_from(self.house.options.idempotency_ttl.as_millis());
        let now_ms = self.house.clock.now().as_millis();
        now_ms.saturating_sub(ttl_ms.unwrap_or(i64::MAX))
    }

    /// The turn that a key stands for, if it was used before and is still good.
    async fn earlier(
        &self,
        scope: &KeyScope,
        key: &IdempotencyKey,
    ) -> Result<Option<SubmittedTurn>, Error> {
        let since = self.oldest_key_ms();
        let (scope, body_sha256) = (scope.clone(), key.body_sha256);
        blocking(self.house.store(), move |store| {
            let found = store.key(&scope)?;
            let good = found.filter(|row| row.created_at.as_millis() > since);
            let Some(row) = good else { return Ok(None) };
            if row.body_sha256 != body_sha256 {
                return Err(Error::IdempotencyMismatch);
            }
            Ok(store.turn(row.turn_id)?.map(|(_, turn)| SubmittedTurn {
                turn_id: turn.id,
                session_id: turn.session_id,
                state: turn.state,
                position: before(turn.started),
                wire_version: turn.wire_version.unwrap_or_default(),
                repeated: true,
            }))
        })
        .await
    }
}

fn scope(owner: &Owner, place: &SubmitTarget, key: &IdempotencyKey) -> KeyScope {
    KeyScope {
        owner: owner.clone(),
        route: key.route.to_owned(),
        session: match place {
            SubmitTarget::In(id) => Some(*id),
            SubmitTarget::New(_) => None,
        },
        key: key.key.clone(),
    }
}

fn key_rows(scope: KeyScope, body_sha256: [u8; 32]) -> KeyRows {
    Box::new(move |turn_id: TurnId| {
        vec![RowChange::KeyPut {
            scope: Box::new(scope),
            turn_id,
            body_sha256,
        }]
    })
}

/// The place just before one of a persisted event.
fn before(at: Position) -> Position {
    Position::persisted(at.epoch, Seq(at.seq.0.saturating_sub(1)))
}

/// Waits until the turn is durable. A caller that goes away meanwhile changes nothing: the key is
/// held, and an interrupted turn asked to stop, by a task of its own.
async fn settled(
    live: Arc<LiveSession>,
    taken: AcceptedTurn,
    wire_version: String,
    held: Option<KeyLockGuard>,
) -> Result<(SubmittedTurn, Option<StreamGuard>), Error> {
    let accepted = SubmittedTurn {
        turn_id: taken.turn,
        session_id: live.id,
        state: taken.state,
        position: taken.position,
        wire_version,
        repeated: false,
    };
    let runtime = live.house.runner.runtime.clone();
    let pending = taken.pending;
    let alone = held.is_some() || matches!(pending, crate::queue::accept::PendingCommit::Row(..));
    let settle = live.settle(pending);
    if alone {
        let task = runtime.spawn(async move {
            let settled = settle.await;
            drop(held);
            settled
        });
        task.await.map_err(|_| Error::Internal)??;
    } else {
        settle.await?;
    }
    Ok((accepted, taken.attendance))
}
