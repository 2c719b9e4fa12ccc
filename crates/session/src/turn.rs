//! A turn from submit to terminal: the lock, the start, the task that runs the producer, and the
//! guard that ends the turn if nothing else does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwire_event::body::turn::Started;
use turnwire_event::code::{ErrorCode, OnDisconnect, TurnKind, TurnState};
use turnwire_event::port::{HistoryBudget, Interceptor, Outcome, Producer, TurnContext, TurnInput};
use turnwire_event::row::{NewMessage, RowChange};
use turnwire_event::{
    Actor, Body, ContentBlock, Message, MessageId, MessageStatus, Position, Role, Seq, Trace,
    TurnId, metric,
};
use turnwire_log::{Draft, Room};

use crate::cancel;
use crate::emitter::TurnEmitter;
use crate::ending;
use crate::error::Error;
use crate::history::{Past, weigh};
use crate::live::{Live, Running};
use crate::replay::blocking;

/// What a person asks for.
#[derive(Clone, Debug)]
pub struct Submit {
    /// What they say.
    pub content: Vec<ContentBlock>,
    /// In which language they want the answer.
    pub locale: String,
    /// What happens when the last watcher leaves.
    pub on_disconnect: OnDisconnect,
    /// How long they may be away.
    pub disconnect_grace_ms: u64,
    /// The caller's trace.
    pub trace: Option<Trace>,
}

/// An accepted turn: durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its id.
    pub turn_id: TurnId,
    /// Where it stands.
    pub state: TurnState,
    /// The tail before it: a cursor that gives the whole turn.
    pub position: Position,
}

/// How long a stopped producer may take to let go before the turn is ended without it. Its
/// events are refused from the first moment on, so nothing depends on this but tidiness.
const LET_GO: Duration = Duration::from_secs(1);

/// Frees the session's lock if the turn never started.
struct SlotGuard<'a>(&'a Live, bool);

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        if !self.1 {
            *self.0.slot.lock() = None;
        }
    }
}

impl Live {
    /// Accepts a turn and runs it. Returns when `turn.started` is durable.
    pub async fn turn(
        self: &Arc<Self>,
        submit: Submit,
        interceptor: Arc<dyn Interceptor>,
        producer: Arc<dyn Producer>,
        tasks: &TaskTracker,
    ) -> Result<Accepted, Error> {
        let turn_id = TurnId(self.house.mint.ulid());
        let stop = CancellationToken::new();
        let trace = submit.trace.clone().map(Arc::new);
        let departures = self.departures.load(Ordering::Acquire);
        {
            let mut slot = self.slot.lock();
            if let Some(running) = slot.as_ref() {
                return Err(Error::TurnInFlight(running.id));
            }
            *slot = Some(Running {
                id: turn_id,
                stop: stop.clone(),
                on_disconnect: submit.on_disconnect,
                grace_ms: submit.disconnect_grace_ms,
                trace: trace.clone(),
            });
        }
        let mut guard = SlotGuard(self, false);
        let budget = producer.history();
        let (mut past, total, begun) = self.past(budget).await?;
        let user = self.user_message(turn_id, submit.content.clone());
        past.push(weigh(user.clone()));
        let shown = Past::new(past, budget);
        let omitted = (total + 1).saturating_sub(shown.len() as u64);
        let at = self.start(turn_id, &submit, &user, omitted, producer.as_ref())?;
        guard.1 = true;
        metrics::counter!(metric::TURN_STARTED_TOTAL).increment(1);
        // Whoever left while the turn was being accepted left before it could be cancelled.
        if self.departures.load(Ordering::Acquire) != departures
            && self.watchers.load(Ordering::Acquire) == 0
        {
            self.left();
        }
        let input = TurnInput {
            session_id: self.id,
            turn_id,
            owner: self.owner.clone(),
            locale: submit.locale,
            content: submit.content,
        };
        let emitter = Arc::new(TurnEmitter::new(self.clone(), turn_id, trace, interceptor));
        let context = TurnContext {
            input,
            emitter: emitter.clone(),
            history: Arc::new(shown),
        };
        let work = tokio::spawn(producer.run(context));
        let run = Run {
            live: self.clone(),
            turn: turn_id,
            emitter,
            stop,
            work,
            ended: false,
            begun,
            user: Some(user),
        };
        tasks.spawn(run.end());
        self.sequencer.committed(at.seq).await?;
        let position = Position::persisted(at.epoch, Seq(at.seq.0 - 1));
        Ok(Accepted {
            turn_id,
            state: TurnState::Running,
            position,
        })
    }

    /// The newest messages, and how many there are in all.
    async fn past(
        self: &Arc<Self>,
        budget: HistoryBudget,
    ) -> Result<(Vec<(Arc<Message>, usize)>, u64, Position), Error> {
        // The turn before may have its terminal placed and not yet released: its messages count.
        self.sequencer.committed(self.sequencer.last().seq).await?;
        let (id, upto, fresh) = self
            .ring
            .look(|transcript, tail, _| (self.id, tail, transcript.row.turn_count == 0));
        {
            let mut memory = self.memory.lock();
            if fresh {
                memory.begin(upto);
            }
            if memory.knows(upto) {
                memory.forget(budget);
                let (past, total) = memory.recall();
                return Ok((past, total, upto));
            }
        }
        let memory = self.memory.clone();
        blocking(self.house.store(), move |store| {
            let mut memory = memory.lock();
            memory.refresh(store, id, upto, budget)?;
            let (past, total) = memory.recall();
            Ok((past, total, upto))
        })
        .await
    }

    fn user_message(&self, turn_id: TurnId, content: Vec<ContentBlock>) -> Message {
        Message {
            id: MessageId(self.house.mint.ulid()),
            session_id: self.id,
            turn_id,
            role: Role::User,
            status: MessageStatus::Complete,
            content,
            model: None,
            stop_reason: None,
            usage: None,
            created_at: self.house.clock.now(),
            metadata: serde_json::Map::new(),
        }
    }

    fn start(
        &self,
        turn: TurnId,
        submit: &Submit,
        user: &Message,
        omitted: u64,
        producer: &dyn Producer,
    ) -> Result<Position, Error> {
        let episode_id = self.ring.look(|transcript, _, _| transcript.row.episode_id);
        let body = Body::TurnStarted(Started {
            user_message_id: user.id,
            input: submit.content.clone(),
            kind: TurnKind::Chat,
            episode_id,
            locale: submit.locale.clone(),
            wire_version: None,
            history_omitted: omitted,
            versions: producer.versions(),
        });
        let mut draft = Draft::new(Some(turn), Actor::USER, body);
        draft.trace = submit.trace.clone().map(Arc::new);
        draft.rows = vec![
            RowChange::TurnStarted {
                turn_id: turn,
                kind: TurnKind::Chat,
                on_disconnect: submit.on_disconnect,
                disconnect_grace_ms: submit.disconnect_grace_ms,
                trace: submit.trace.clone(),
            },
            RowChange::MessagePut(
                turn,
                NewMessage {
                    id: user.id,
                    role: Role::User,
                    content: user.content.clone(),
                    metadata: user.metadata.clone(),
                },
            ),
        ];
        let (at, _) = self.sequencer.emit_one(draft, Room::Reserved)?;
        Ok(at)
    }
}

/// A running turn. Dropped before its end, as when the runtime goes away, it still ends the turn.
struct Run {
    live: Arc<Live>,
    turn: TurnId,
    emitter: Arc<TurnEmitter>,
    stop: CancellationToken,
    work: JoinHandle<Outcome>,
    ended: bool,
    /// Where the session stood before the turn, and what the person said.
    begun: Position,
    user: Option<Message>,
}

impl Run {
    async fn end(mut self) {
        let timeout = tokio::time::sleep(self.live.house.options.turn_timeout);
        tokio::pin!(timeout);
        let mut timed_out = false;
        let outcome = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break None,
                result = &mut self.work => break Some(result),
                () = &mut timeout, if !timed_out => {
                    timed_out = true;
                    cancel::request(&self.live, self.turn, "system", "turn_timeout");
                }
            }
        };
        self.emitter.seal();
        let known = self.emitter.known();
        match outcome {
            Some(Ok(outcome)) => {
                if let Some(at) = ending::finish(&self.live, self.turn, outcome, &known) {
                    let messages = self
                        .user
                        .take()
                        .into_iter()
                        .chain(self.emitter.take_messages());
                    self.live
                        .memory
                        .lock()
                        .learn(self.begun, at, messages.collect());
                }
            }
            Some(Err(error)) => {
                // The panic's text stays in the server's log.
                tracing::error!(session = %self.live.id, turn = %self.turn, panic = error.is_panic(), "a producer broke");
                ending::close(
                    &self.live,
                    self.turn,
                    ErrorCode::InternalError.into(),
                    None,
                    &known,
                );
            }
            None => {
                self.work.abort();
                let _ = tokio::time::timeout(LET_GO, &mut self.work).await;
                ending::close(
                    &self.live,
                    self.turn,
                    ErrorCode::InternalError.into(),
                    Some("server_shutdown"),
                    &known,
                );
            }
        }
        self.ended = true;
        *self.live.idle_since.lock() = std::time::Instant::now();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended {
            self.emitter.seal();
            self.work.abort();
            let known = self.emitter.known();
            ending::close(
                &self.live,
                self.turn,
                ErrorCode::InternalError.into(),
                Some("server_shutdown"),
                &known,
            );
        }
    }
}
