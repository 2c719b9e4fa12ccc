//! The service: what a server asks of sessions. Whatever belongs to another owner answers as if
//! it did not exist.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use turnwire_event::body::feedback;
use turnwire_event::port::Producer;
use turnwire_event::row::SessionRow;
use turnwire_event::{Actor, Body, Clock, Mint, Owner, Position, SessionId};
use turnwire_hub::Pump;
use turnwire_log::Writer;

use crate::attach_token::AttachTokens;
use crate::cancel::early_cancel::EarlyCancels;
use crate::error::Error;
use crate::live::routing_policy::ActiveRoutingPolicy;
use crate::live::session::{
    DelegateFactory, DeletedCallback, LiveSession, SessionServices, TurnRunner,
};
use crate::options::{LET_GO, Options};
use crate::queue::start_next;
use crate::registry::open_sessions::SessionRegistry;
use crate::registry::recovery;
use crate::registry::upkeep;
use crate::store_read::blocking;
use crate::submit::idempotency::IdempotencyLocks;
pub use crate::submit::request::NewSession;

/// How long the ends of turns may take beyond what they wait for.
const ENDED: Duration = Duration::from_secs(4);

/// Leave to attach.
#[derive(Clone, Debug)]
pub struct AttachTicket {
    /// The token, good once.
    pub token: String,
    /// The session, with live numbers.
    pub session: SessionRow,
}

/// All sessions of a server.
pub struct Sessions {
    pub(crate) house: Arc<SessionServices>,
    pub(crate) registry: Arc<SessionRegistry>,
    pub(crate) tokens: Arc<AttachTokens>,
    pub(crate) keys: Arc<IdempotencyLocks>,
    pub(crate) early: EarlyCancels,
}

/// What the service is built from.
pub struct ServiceParts {
    /// Settings.
    pub options: Options,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub mint: Arc<dyn Mint>,
    /// The writer over the store.
    pub writer: Arc<Writer>,
    /// What answers turns.
    pub producer: Arc<dyn Producer>,
}

impl Sessions {
    /// Starts the service: ends what a dead process left open, then starts its timers.
    pub async fn start(parts: ServiceParts) -> Result<Arc<Self>, Error> {
        let tokens = Arc::new(AttachTokens::new(
            parts.options.token_ttl,
            parts.options.tokens_max,
        ));
        let house = Arc::new(SessionServices {
            policy: Mutex::new(ActiveRoutingPolicy::new(
                &parts.options.routing_policy_version,
            )),
            options: parts.options,
            clock: parts.clock,
            mint: parts.mint,
            writer: parts.writer,
            pump: Pump::start(),
            runner: TurnRunner {
                producer: parts.producer,
                definition: Mutex::default(),
                turns: TaskTracker::new(),
                runtime: Handle::current(),
                draining: AtomicBool::new(false),
            },
            replays: Semaphore::new(std::thread::available_parallelism().map_or(2, usize::from)),
            erased: OnceLock::new(),
            employer: OnceLock::new(),
            quarantined: Mutex::default(),
        });
        let swept = recovery::sweep(&house).await?;
        if swept > 0 {
            tracing::info!(turns = swept, "ended turns of the last run");
        }
        let sessions = Arc::new(Self {
            house,
            registry: Arc::default(),
            tokens,
            keys: Arc::default(),
            early: EarlyCancels::default(),
        });
        let employer: Weak<dyn DelegateFactory> = Arc::downgrade(&sessions) as Weak<_>;
        let _ = sessions.house.employer.set(employer);
        start_next::queue_up(&sessions.house, &sessions.registry).await?;
        upkeep::start(&sessions.house, &sessions.registry, &sessions.tokens);
        Ok(sessions)
    }

    /// From now on `erased` is told of each session that is removed, workers too, once its rows
    /// are gone. The first to ask is told, and nobody else.
    pub fn on_erased(&self, erased: DeletedCallback) {
        let _ = self.house.erased.set(erased);
    }

    /// Whether no new turn is taken because the server goes away.
    pub fn is_draining(&self) -> bool {
        self.house.runner.is_draining()
    }

    /// The version of the agent's definition that the newest turn was bound to; empty before the
    /// first.
    pub fn agent_definition(&self) -> String {
        self.house.runner.definition.lock().clone()
    }

    /// Whether no new turn is taken because the disk is full.
    pub fn storage_full(&self) -> bool {
        self.house.writer.health().is_full()
    }

    pub(crate) fn admit(&self) -> Result<(), Error> {
        if self.is_draining() {
            return Err(Error::Draining);
        }
        if self.storage_full() {
            Err(Error::StorageFull)
        } else {
            Ok(())
        }
    }

    /// A session of `owner`, in memory.
    pub async fn live(&self, owner: &Owner, id: SessionId) -> Result<Arc<LiveSession>, Error> {
        let live = self.registry.get(&self.house, id).await?;
        if live.owner != *owner {
            return Err(Error::SessionNotFound);
        }
        match live.ring.closed() {
            None if self.house.quarantined.lock().contains(&id) => Err(Error::Quarantined),
            None => Ok(live),
            Some(turnwire_hub::Closed::Deleted) => Err(Error::SessionNotFound),
            Some(turnwire_hub::Closed::Quarantined) => {
                self.house.quarantined.lock().insert(id);
                Err(Error::Quarantined)
            }
        }
    }

    /// Leave to attach to a session, once.
    pub async fn attach(&self, owner: &Owner, id: SessionId) -> Result<AttachTicket, Error> {
        let live = self.live(owner, id).await?;
        let session = live.ring.look(|transcript, _, _| transcript.row.clone());
        Ok(AttachTicket {
            token: self.tokens.grant(id, owner)?,
            session,
        })
    }

    /// Uses an attach token up.
    pub fn redeem(&self, id: SessionId, token: &str) -> Result<Owner, Error> {
        self.tokens.redeem(id, token)
    }

    /// Records what a person thought of a message or a turn of the session.
    pub async fn feedback(
        &self,
        owner: &Owner,
        id: SessionId,
        feedback: feedback::Recorded,
    ) -> Result<Position, Error> {
        if self.storage_full() {
            return Err(Error::StorageFull);
        }
        let live = self.live(owner, id).await?;
        let (turn, message) = (feedback.turn_id, feedback.message_id);
        let in_flight = live
            .ring
            .look(|transcript, _, _| transcript.in_flight().map(|message| message.id));
        blocking(self.house.store(), move |store| {
            if let Some(turn) = turn {
                store
                    .turn(turn)?
                    .filter(|(_, row)| row.session_id == id)
                    .ok_or(Error::TurnNotFound)?;
            }
            if let Some(message) = message.filter(|message| in_flight != Some(*message)) {
                let found = store.message(id, message)?;
                found.ok_or(Error::MessageNotFound)?;
            }
            Ok::<_, Error>(())
        })
        .await?;
        let at = live.emit(Actor::USER, Body::FeedbackRecorded(feedback))?;
        live.sequencer.committed(at.seq).await?;
        Ok(at)
    }

    /// The server goes away: no new turns, running ones have `window` to end by themselves, then
    /// they are ended; everything is written when this returns.
    pub async fn drain(&self, window: Duration) {
        self.refuse_turns();
        let turns = &self.house.runner.turns;
        turns.close();
        if tokio::time::timeout(window, turns.wait()).await.is_err() {
            for live in self.registry.running() {
                if let Some(running) = live.slot.lock().running.as_ref() {
                    running.stop.cancel();
                }
            }
            let gone =
                self.house.options.stop_wait + self.house.options.worker_wait(0) + LET_GO + ENDED;
            let _ = tokio::time::timeout(gone, turns.wait()).await;
        }
        let all = async {
            for live in self.registry.all() {
                let _ = live.sequencer.committed(live.sequencer.last().seq).await;
            }
        };
        // A full disk must not hold the end up for every session in turn.
        let _ = tokio::time::timeout(Duration::from_secs(5), all).await;
    }

    /// Says that draining has begun, before connections are told. Turns that wait stay where
    /// they are and run after the next start.
    pub fn refuse_turns(&self) {
        self.house.runner.draining.store(true, Ordering::Release);
    }
}
