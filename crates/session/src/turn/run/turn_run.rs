//! The task of a running turn: it runs the producer, waits until the producer and its children have
//! ended, and ends the turn. Dropped before that, it still ends the turn.
//!
//! ```text
//!   producer ──▶ done, cancelled, panicked ──▶ sealed ──▶ ended ──▶ children ended ──▶ terminal
//!                                             1 s at most ┘      └ `stop_wait` at most
//! ```

use std::sync::Arc;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use turnwire_event::body::turn::{CancelRequested, TurnCancelled, TurnCompleted};
use turnwire_event::code::CancelCode;
use turnwire_event::port::{TurnContext, TurnOutcome, TurnWork};
use turnwire_event::{Message, Position, TurnId, metric};

use crate::live::child_tasks::{ChildTasks, StopReport};
use crate::live::session::LiveSession;
use crate::live::turn_slot::TurnEndGuard;
use crate::options::PRODUCER_STOP_WAIT;
use crate::submit::input_bytes::TurnPermit;
use crate::turn::cancel::request::request_cancel;
use crate::turn::emitter::TurnEmitter;
use crate::turn::ending::{EndingContext, abort_turn, finish_turn};

/// A turn that has started.
pub(crate) struct TurnRun {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) turn: TurnId,
    /// The span of every log line of the turn: its session, its id and its trace (D-83).
    pub(crate) span: tracing::Span,
    pub(crate) emitter: Arc<TurnEmitter>,
    pub(crate) stop: CancellationToken,
    pub(crate) children: Arc<ChildTasks>,
    /// The producer's work and its input, until the producer is spawned.
    pub(crate) work: Option<(TurnWork, TurnContext)>,
    pub(crate) producer: Option<JoinHandle<TurnOutcome>>,
    pub(crate) ended: bool,
    /// Its drop cancels the token of the turn's end.
    pub(crate) end_guard: Arc<TurnEndGuard>,
    /// The position of the session before the turn.
    pub(crate) started_after: Position,
    /// The messages that were stored with the start of the turn.
    pub(crate) opening_messages: Vec<Arc<Message>>,
    /// Counts the turn for its owner; the next one may start when the task ends.
    pub(crate) _permit: TurnPermit,
}

impl TurnRun {
    /// Spawns the task. Not under the lock of the slot: a runtime that shuts down drops the task
    /// inside `spawn`.
    pub(crate) fn spawn(self) {
        let live = self.live.clone();
        let runner = &live.services.runner;
        let span = self.span.clone();
        let task = self.run().instrument(span);
        runner.turn_tasks.spawn_on(task, &runner.runtime);
    }

    async fn run(mut self) {
        let runner = &self.live.services.runner;
        // A turn that was cancelled before its producer is spawned does nothing.
        let work = self.work.take().filter(|_| !self.stop.is_cancelled());
        if let Some((work, context)) = work {
            // Inside a task: a panic before the first await fails this turn alone, too.
            let work = async move { work(context).await };
            let span = self.span.clone();
            self.producer = Some(runner.runtime.spawn(work.instrument(span)));
        }
        let timeout = tokio::time::sleep(self.live.services.options.turn_timeout);
        tokio::pin!(timeout);
        let (live, emitter) = (self.live.clone(), self.emitter.clone());
        let idle = idle_window_over(live, self.turn, emitter);
        tokio::pin!(idle);
        let mut timed_out = false;
        let outcome = loop {
            let Some(producer) = &mut self.producer else {
                break None;
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break None,
                result = producer => break Some(result),
                () = &mut timeout, if !timed_out => {
                    timed_out = true;
                    request_cancel(&self.live, self.turn, CancelRequested::SYSTEM, TurnCancelled::TURN_TIMEOUT);
                }
                () = &mut idle, if !timed_out => {
                    timed_out = true;
                    request_cancel(&self.live, self.turn, CancelRequested::SYSTEM, TurnCancelled::IDLE_TIMEOUT);
                }
            }
        };
        if let Some(Ok(TurnOutcome {
            cancelled: Some(code),
            ..
        })) = &outcome
        {
            self.cancel_for_producer(*code);
        }
        self.emitter.seal();
        self.children.refuse_new();
        self.end(outcome).await;
        self.ended = true;
        self.release_claim();
        self.live.presence.touch();
        self.live.start_next_turn();
    }

    /// Releases the id of the turn's response once the row with it is stored.
    fn release_claim(&self) {
        if let Some(claim) = self.emitter.take_claim() {
            let live = self.live.clone();
            self.live.services.runner.runtime.spawn(async move {
                let _ = live.all_committed().await;
                drop(claim);
            });
        }
    }

    /// Requests the cancel of a turn whose producer says that it did not end by itself. A cancel that
    /// came first stays.
    fn cancel_for_producer(&self, code: CancelCode) {
        let reason = match code {
            CancelCode::IdleTimeout => TurnCancelled::IDLE_TIMEOUT,
            CancelCode::RequestCancelled => TurnCancelled::UPSTREAM_CANCELLED,
        };
        request_cancel(&self.live, self.turn, CancelRequested::SYSTEM, reason);
    }

    async fn end(&mut self, outcome: Option<Result<TurnOutcome, JoinError>>) {
        let context = self.stop_all(outcome.is_none()).await;
        let reason = match outcome {
            Some(Ok(outcome)) => {
                if let Some(at) = finish_turn(&self.live, self.turn, outcome, context) {
                    self.cache_messages(at);
                }
                return;
            }
            Some(Err(error)) => {
                // The panic's text is only in the server's log.
                tracing::error!(session = %self.live.id, turn = %self.turn, panic = error.is_panic(), "a producer panicked");
                None
            }
            None => Some(TurnCompleted::SERVER_SHUTDOWN),
        };
        abort_turn(&self.live, self.turn, reason, context);
    }

    /// Appends the messages of the turn, which ended at `at`, to the history. If a blocking thread has
    /// the lock, the cache stays complete up to an earlier position: the next turn reads the rest.
    fn cache_messages(&mut self, at: Position) {
        if let Some(mut history) = self.live.history.try_lock() {
            let opening = std::mem::take(&mut self.opening_messages);
            let emitted = self.emitter.take_messages().into_iter();
            let messages = opening.into_iter().chain(emitted.map(Arc::new)).collect();
            let budget = self.live.services.runner.producer.history();
            history.append_turn((self.started_after, at), messages, budget);
        }
    }

    /// Waits until the producer, its parts and its children have ended, each within its time. The
    /// turn still occupies the slot: a cancel request is accepted meanwhile.
    async fn stop_all(&mut self, abort_producer: bool) -> EndingContext {
        let deadline = Instant::now() + PRODUCER_STOP_WAIT;
        let mut left_behind = abort_producer && !self.abort_producer(deadline).await;
        // Parts on tasks of their own were dropped with the producer, or before: one may still
        // be in a blocking step.
        left_behind |= !self.children.wait_for_parts(deadline).await;
        if left_behind {
            metrics::counter!(metric::TURN_LET_GO_TIMEOUT_TOTAL).increment(1);
            tracing::error!(session = %self.live.id, turn = %self.turn, "a producer did not end after its abort");
        }
        let producer_ended = self.live.services.clock.now();
        let options = &self.live.services.options;
        let worker_extra = options.extra_worker_wait(self.live.depth);
        let children = &self.children;
        children
            .wait_for_children(options.stop_wait, worker_extra)
            .await;
        let mut context = self.emitter.ending_context();
        context.stop_report = Some(StopReport {
            producer_ended,
            producer_left_behind: left_behind,
            children: self.children.finish(),
        });
        context.worker_ends = self.children.worker_ends();
        context
    }

    /// Aborts the producer. False if it has not ended at the deadline.
    async fn abort_producer(&mut self, deadline: Instant) -> bool {
        let Some(producer) = &mut self.producer else {
            return true;
        };
        producer.abort();
        timeout_at(deadline, producer).await.is_ok()
    }
}

/// Resolves when the turn has been idle for `turn.idle_ms`: it has emitted nothing, and nothing of it
/// runs that has a time limit of its own.
async fn idle_window_over(live: Arc<LiveSession>, turn: TurnId, emitter: Arc<TurnEmitter>) {
    let window = live.services.options.turn_idle;
    let mut idle_since = Instant::now();
    loop {
        tokio::time::sleep_until(idle_since + window).await;
        let last_event = Instant::from_std(emitter.last_event_at());
        if last_event > idle_since {
            idle_since = last_event;
            continue;
        }
        match live.open_turn(turn) {
            Some(open) if open.has_timed_work() => idle_since = Instant::now(),
            Some(_) | None => return,
        }
    }
}

impl Drop for TurnRun {
    fn drop(&mut self) {
        if !self.ended {
            self.emitter.seal();
            if let Some(producer) = &self.producer {
                producer.abort();
            }
            let mut context = self.emitter.ending_context();
            context.worker_ends = self.children.worker_ends();
            let reason = Some(TurnCompleted::SERVER_SHUTDOWN);
            abort_turn(&self.live, self.turn, reason, context);
            self.release_claim();
            self.live.start_next_turn();
        }
    }
}
