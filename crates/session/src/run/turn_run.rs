//! A running turn: the task that lets its producer work, waits until all of it is gone, and ends
//! the turn; and the guard that ends it if nothing else does.
//!
//! ```text
//!   work ──▶ done, stopped or broken ──▶ sealed ──▶ let go ──▶ wards gone ──▶ terminal
//!                                          1 s at most ┘    └ `stop_wait` at most
//! ```

use std::sync::Arc;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use turnwire_event::code::ErrorCode;
use turnwire_event::port::{Outcome, TurnContext, Work};
use turnwire_event::{Message, Position, TurnId, metric};

use crate::cancel::request;
use crate::live::child_tasks::{ChildTasks, StopReport};
use crate::live::session::LiveSession;
use crate::live::turn_slot::TurnEndGuard;
use crate::options::LET_GO;
use crate::turn::emitter::TurnEmitter;
use crate::turn::ending::{self, EndingContext};

/// A running turn. Dropped before its end, as when the runtime goes away, it still ends the turn.
pub(crate) struct TurnRun {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) turn: TurnId,
    pub(crate) emitter: Arc<TurnEmitter>,
    pub(crate) stop: CancellationToken,
    /// Those who do not end with the producer.
    pub(crate) wards: Arc<ChildTasks>,
    /// What the producer does, and what it is given; none when it has begun.
    pub(crate) ready: Option<(Work, TurnContext)>,
    pub(crate) work: Option<JoinHandle<Outcome>>,
    pub(crate) ended: bool,
    #[expect(dead_code, reason = "whoever waits is told when it is dropped")]
    pub(crate) over: Arc<TurnEndGuard>,
    /// Where the session stood before the turn, and what was said with its start.
    pub(crate) begun: Position,
    pub(crate) heard: Vec<Message>,
}

impl TurnRun {
    /// Lets the producer work. Not under the session's lock: a runtime that goes away drops what
    /// it is given at once.
    pub(crate) fn go(self) {
        let live = self.live.clone();
        let runner = &live.house.runner;
        runner.turns.spawn_on(self.end(), &runner.runtime);
    }

    async fn end(mut self) {
        let runner = &self.live.house.runner;
        // One that was cancelled before it could begin does nothing at all.
        let ready = self.ready.take().filter(|_| !self.stop.is_cancelled());
        if let Some((work, context)) = ready {
            // Inside the task: what breaks before the first await breaks this turn alone, too.
            let work = async move { work(context).await };
            self.work = Some(runner.runtime.spawn(work));
        }
        let timeout = tokio::time::sleep(self.live.house.options.turn_timeout);
        tokio::pin!(timeout);
        let mut timed_out = false;
        let outcome = loop {
            let Some(work) = &mut self.work else {
                break None;
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break None,
                result = work => break Some(result),
                () = &mut timeout, if !timed_out => {
                    timed_out = true;
                    request::request(&self.live, self.turn, "system", "turn_timeout");
                }
            }
        };
        self.emitter.seal();
        self.wards.shut();
        self.close(outcome).await;
        self.ended = true;
        *self.live.idle_since.lock() = std::time::Instant::now();
        self.live.kick();
    }

    async fn close(&mut self, outcome: Option<Result<Outcome, JoinError>>) {
        let known = self.rest(outcome.is_none()).await;
        let reason = match outcome {
            Some(Ok(outcome)) => {
                if let Some(at) = ending::finish(&self.live, self.turn, outcome, known) {
                    let said = self.emitter.take_messages();
                    let heard = std::mem::take(&mut self.heard);
                    let messages = heard.into_iter().chain(said).collect();
                    self.live.memory.lock().learn(self.begun, at, messages);
                }
                return;
            }
            Some(Err(error)) => {
                // The panic's text stays in the server's log.
                tracing::error!(session = %self.live.id, turn = %self.turn, panic = error.is_panic(), "a producer broke");
                None
            }
            None => Some("server_shutdown"),
        };
        let error = ErrorCode::InternalError.into();
        ending::close(&self.live, self.turn, error, reason, known);
    }

    /// Waits until the producer and all that it started are gone, each no longer than it may
    /// take. The turn still holds its session: whoever asks it to stop now is heard.
    async fn rest(&mut self, stopped: bool) -> EndingContext {
        let until = Instant::now() + LET_GO;
        let mut left_behind = stopped && !self.let_go(until).await;
        // What it had on tasks of their own was dropped with it, or before: one may be in the
        // middle of something all the same.
        left_behind |= !self.wards.let_go(until).await;
        if left_behind {
            metrics::counter!(metric::TURN_LET_GO_TIMEOUT_TOTAL).increment(1);
            tracing::error!(session = %self.live.id, turn = %self.turn, "a producer does not let go");
        }
        let let_go = self.live.house.clock.now();
        let options = &self.live.house.options;
        let more = options.worker_wait(self.live.depth);
        self.wards.gone(options.stop_wait, more).await;
        let mut known = self.emitter.known();
        known.rest = Some(StopReport {
            let_go,
            left_behind,
            wards: self.wards.close(),
        });
        known
    }

    /// Stops the producer. False if it has not let go in time.
    async fn let_go(&mut self, until: Instant) -> bool {
        let Some(work) = &mut self.work else {
            return true;
        };
        work.abort();
        timeout_at(until, work).await.is_ok()
    }
}

impl Drop for TurnRun {
    fn drop(&mut self) {
        if !self.ended {
            self.emitter.seal();
            if let Some(work) = &self.work {
                work.abort();
            }
            let known = self.emitter.known();
            ending::close(
                &self.live,
                self.turn,
                ErrorCode::InternalError.into(),
                Some("server_shutdown"),
                known,
            );
            self.live.kick();
        }
    }
}
