//! The handle that submits turns, to a session or to a new one, with or without an idempotency key.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::code::{AuditAction, AuditOutcome};
use turnwire_event::row::{AuditEntry, KeyScope, Requester};
use turnwire_event::{JobName, Owner, metric};
use turnwire_log::Store;

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::store_read::Reader;
use crate::submit::idempotency::KeyLockGuard;
use crate::submit::job_state::{JobState, request_hash};
use crate::submit::request::{IdempotencyKey, SubmitRequest, SubmitTarget, SubmittedTurn};
use crate::submit::write_slots::WriteSlot;
use crate::turn::cancel::disconnect::StreamGuard;
use crate::turn::cancel::early_cancel::SubmitKey;
use crate::turn::queue::accept::{AcceptanceRows, AcceptedTurn, KeyUse, accept_turn, await_commit};

handle!(
    /// Submits turns to sessions, and creates sessions for them.
    TurnSubmitter
);

impl TurnSubmitter {
    /// Submits a turn. Durable on return, and from then on the turn runs to its end even if the
    /// caller goes away. A caller that goes away earlier has submitted the turn with its key, or
    /// nothing.
    ///
    /// With [`SubmitTarget::New`] the session is created in the same commit.
    ///
    /// The streams of a turn with [`DisconnectScope::Stream`] count from the first
    /// [`StreamGuard`]. A caller that streams the turn uses
    /// [`submit_attended`](Self::submit_attended), which leaves no gap.
    ///
    /// [`DisconnectScope::Stream`]: crate::DisconnectScope::Stream
    pub async fn submit(
        &self,
        owner: &Owner,
        target: SubmitTarget,
        request: SubmitRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<SubmittedTurn, Error> {
        let (submitted, stream) = self.accept(owner, target, request, key).await?;
        if let Some(stream) = stream {
            stream.leave_quietly();
        }
        Ok(submitted)
    }

    /// Submits a turn that the caller streams, as its [`StreamGuard`] counts. A caller that goes
    /// away while a turn with [`DisconnectScope::Stream`](crate::DisconnectScope::Stream) is being
    /// accepted has left it.
    pub async fn submit_attended(
        &self,
        owner: &Owner,
        target: SubmitTarget,
        request: SubmitRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<(SubmittedTurn, StreamGuard), Error> {
        let (submitted, stream) = self.accept(owner, target, request, key).await?;
        let stream = match stream {
            Some(stream) => stream,
            None => {
                let live = self.core.open(owner, submitted.session_id).await?;
                StreamGuard::new(&live, submitted.turn_id)
            }
        };
        Ok((submitted, stream))
    }

    /// Submits the turn of a scheduler, as [`submit`](Self::submit) does. The request leaves one record
    /// in the audit, also if it is repeated with the same key: in the commit of the turn, or alone, with
    /// [`Error::JobPaused`]. A pause that is durable before the call holds.
    pub async fn submit_scheduled(
        &self,
        by: &Requester,
        target: SubmitTarget,
        request: SubmitRequest,
        (job, key): (Option<JobName>, Option<IdempotencyKey>),
    ) -> Result<SubmittedTurn, Error> {
        let owner = &by.owner;
        let claimed = match self.claim_key(owner, &target, key).await? {
            KeyClaim::Used(submitted) => return Ok(submitted),
            KeyClaim::New(claimed) => claimed,
        };
        let now = self.core.services.clock.now();
        let audit = AuditEntry {
            job,
            outcome: Some(AuditOutcome::Dispatched),
            request: claimed.key_use.as_ref().map(|key| request_hash(&key.scope)),
            ..AuditEntry::new(now, AuditAction::JobFired, by)
        };
        if let Some(job) = audit.job.clone()
            && self.is_skipped(owner, &job, &target, audit.clone()).await?
        {
            return Err(Error::JobPaused(job));
        }
        let accepted = self.accept_new(owner, target, request, claimed, Some(audit));
        let (submitted, stream) = accepted.await?;
        if let Some(stream) = stream {
            stream.leave_quietly();
        }
        Ok(submitted)
    }

    async fn accept(
        &self,
        owner: &Owner,
        target: SubmitTarget,
        request: SubmitRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<(SubmittedTurn, Option<StreamGuard>), Error> {
        match self.claim_key(owner, &target, key).await? {
            KeyClaim::Used(submitted) => Ok((submitted, None)),
            KeyClaim::New(claimed) => self.accept_new(owner, target, request, claimed, None).await,
        }
    }

    /// Locks the key of a submit, unless an earlier submit has used it.
    async fn claim_key(
        &self,
        owner: &Owner,
        target: &SubmitTarget,
        key: Option<IdempotencyKey>,
    ) -> Result<KeyClaim, Error> {
        let Some(key) = key else {
            return Ok(KeyClaim::New(Box::default()));
        };
        let scope = key_scope(owner, target, &key);
        let lock = self.core.idempotency.lock(scope.clone()).await?;
        if let Some(submitted) = self.find_repeated(&scope, &key).await? {
            metrics::counter!(metric::TURN_REPEATED_TOTAL).increment(1);
            return Ok(KeyClaim::Used(submitted));
        }
        Ok(KeyClaim::New(Box::new(ClaimedKey {
            lock: Some(lock),
            submit_key: scope.session.map(|id| (owner.clone(), id, key.key)),
            key_use: Some(KeyUse {
                scope,
                body_sha256: key.body_sha256,
            }),
        })))
    }

    async fn accept_new(
        &self,
        owner: &Owner,
        target: SubmitTarget,
        request: SubmitRequest,
        claimed: Box<ClaimedKey>,
        audit: Option<AuditEntry>,
    ) -> Result<(SubmittedTurn, Option<StreamGuard>), Error> {
        let ClaimedKey {
            lock: key_lock,
            submit_key,
            key_use,
        } = *claimed;
        let rows = AcceptanceRows {
            key: key_use,
            audit,
        };
        self.core.check_accepts_turns()?;
        let counted = self.core.count_turn(owner).await?;
        let wire_version = request.wire_version.clone();
        let (live, accepted, slot) = match target {
            SubmitTarget::Existing(id) => {
                let live = self.core.open(owner, id).await?;
                // A cancel may have come before: its caller held the key's lock, as this one does.
                let early_cancels = &self.core.early_cancels;
                let find = |submit: &SubmitKey| early_cancels.reason(submit, Instant::now());
                let early_cancel = submit_key.as_ref().and_then(find);
                let used_key = submit_key.filter(|_| early_cancel.is_some());
                let accepted = accept_turn(&live, request, rows, early_cancel).await?;
                let (accepted, slot) = accepted;
                if let Some(submit_key) = used_key {
                    early_cancels.remove(&submit_key);
                }
                (live, accepted, slot)
            }
            SubmitTarget::New(new) => {
                let input_bytes = request.content_bytes();
                let slot = self.core.services.write_slot_for(owner, input_bytes);
                let slot = slot.await?;
                let created = self.core.create_with_turn(owner, new, request, rows)?;
                (created.0, created.1, slot)
            }
        };
        let accepted = wait_until_durable(live, accepted, wire_version, (key_lock, slot)).await?;
        counted.keep();
        Ok(accepted)
    }

    /// Whether the request of a scheduler makes no turn because its job is paused. Records it, unless
    /// the same request is recorded already.
    async fn is_skipped(
        &self,
        owner: &Owner,
        job: &JobName,
        target: &SubmitTarget,
        audit: AuditEntry,
    ) -> Result<bool, Error> {
        let session_id = match target {
            // A session of somebody else does not exist, also for a paused job.
            SubmitTarget::Existing(id) => Some(self.core.open(owner, *id).await?.id),
            SubmitTarget::New(_) => None,
        };
        let services = &self.core.services;
        let expired_until = self.core.keys_expired_until();
        let jobs_max = services.options.jobs_max;
        let (job, about) = (job.clone(), audit.clone());
        let read = services.read_for(Reader::Owner(owner.clone()), move |store| {
            JobState::read(store, (&job, &about), expired_until, jobs_max)
        });
        match read.await? {
            JobState::Active => Ok(false),
            JobState::Skipped => Ok(true),
            JobState::Paused => {
                let entry = AuditEntry {
                    session_id,
                    outcome: Some(AuditOutcome::SkippedPaused),
                    ..audit
                };
                let record = move |store: &dyn Store| store.add_audit(&entry);
                services.write_for(owner, record).await?;
                Ok(true)
            }
        }
    }

    /// The turn of an earlier submit with this key, if the key has not expired.
    async fn find_repeated(
        &self,
        scope: &KeyScope,
        key: &IdempotencyKey,
    ) -> Result<Option<SubmittedTurn>, Error> {
        let expired_until = self.core.keys_expired_until();
        let (scope, body_sha256) = (scope.clone(), key.body_sha256);
        let reader = Reader::Owner(scope.owner.clone());
        let read = self.core.services.read_for(reader, move |store| {
            let row = store.idempotency_key(&scope)?;
            let row = row.filter(|row| row.created_at > expired_until);
            let Some(row) = row else { return Ok(None) };
            if row.body_sha256 != body_sha256 {
                return Err(Error::IdempotencyMismatch);
            }
            Ok(store.turn(row.turn_id)?.map(|(_, turn)| SubmittedTurn {
                turn_id: turn.id,
                session_id: turn.session_id,
                state: turn.state,
                position: turn.started.before(),
                wire_version: turn.wire_version.unwrap_or_default(),
                repeated: true,
            }))
        });
        read.await
    }
}

/// What is known of the key of a submit.
enum KeyClaim {
    /// An earlier submit with the key created this turn.
    Used(SubmittedTurn),
    New(Box<ClaimedKey>),
}

/// The key of a submit that nobody has used; without a key there is nothing in it.
#[derive(Default)]
struct ClaimedKey {
    /// Held until the turn is durable, so that a repetition waits for it.
    lock: Option<KeyLockGuard>,
    submit_key: Option<SubmitKey>,
    key_use: Option<KeyUse>,
}

fn key_scope(owner: &Owner, target: &SubmitTarget, key: &IdempotencyKey) -> KeyScope {
    KeyScope {
        owner: owner.clone(),
        route: key.route.to_owned(),
        session: match target {
            SubmitTarget::Existing(id) => Some(*id),
            SubmitTarget::New(_) => None,
        },
        key: key.key.clone(),
    }
}

/// Waits until the turn is durable, in a task of its own: the caller may go away meanwhile without
/// effect on the key's lock, the write slot and the turn that is interrupted.
async fn wait_until_durable(
    live: Arc<LiveSession>,
    accepted: AcceptedTurn,
    wire_version: String,
    guards: (Option<KeyLockGuard>, WriteSlot),
) -> Result<(SubmittedTurn, Option<StreamGuard>), Error> {
    let submitted = SubmittedTurn {
        turn_id: accepted.turn,
        session_id: live.id,
        state: accepted.state,
        position: accepted.position,
        wire_version,
        repeated: false,
    };
    let runtime = live.services.runner.runtime.clone();
    let durable = await_commit(live, accepted.commit);
    let task = runtime.spawn(async move {
        let result = durable.await;
        drop(guards);
        result
    });
    task.await.map_err(|_| Error::Internal)??;
    Ok((submitted, accepted.stream))
}
