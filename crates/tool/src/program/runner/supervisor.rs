//! The task behind one guard: it reads the frames, forwards the request to end, and reports when no
//! process of the program is left. It outlives the caller that started the program.
//!
//! ```text
//! end requested ── guard: TERM, grace period, KILL ──▶ end
//!   ╰── grace period + SLACK: the guard has failed; the server kills the descendants, then the guard
//! ```

use std::future::pending;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::codec::LengthDelimitedCodec;
use tracing::Instrument as _;
use turnwire_event::code::StopOutcome;
use turnwire_event::metric;
use turnwire_event::port::BoxFuture;

use super::GuardProcess;
use crate::program::guard::frame::{
    FRAME_BYTES_MAX, GuardFrame, HEAD_BYTES, ProgramEnded, ProgramExit, TAG_BYTES,
};
use crate::program::guard::{EXIT_USAGE, kill_descendants};
use crate::program::orphans::GuardRegistration;
use crate::tool::LiveTask;

/// Added to the grace period, until the server kills the processes itself: killing takes a moment,
/// and longer on a busy machine.
const SLACK: Duration = Duration::from_secs(1);
/// From then until the program is reported as not killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause between two rounds of killing by the server.
const KILL_PAUSE: Duration = Duration::from_millis(100);
/// Consecutive rounds without a process before none is assumed to be left: reading the process table
/// is not atomic, and a process that forks and exits may be missed. Meanwhile a slow guard has time to
/// report the end.
const EMPTY_ROUNDS: usize = 5;
/// Rounds after a guard is dead or has reported the end: five seconds.
const ROUNDS_MAX: usize = 50;
/// The time for a guard to exit after it has reported the end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of a program, from [`GuardedProgram::finished`]: no process of it is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinishedProgram {
    /// How the program ended.
    pub end: ProgramEnded,
    /// The output, up to its limit.
    pub output: Vec<u8>,
    /// The program wrote more than its limit, and was ended.
    pub output_too_large: bool,
}

/// The handle of a running program. Dropping it ends the program.
#[derive(Debug)]
pub struct GuardedProgram {
    id: u32,
    /// The [`GuardSupervisor`] holds the receiver; dropping the sender requests the end.
    stop: Option<oneshot::Sender<()>>,
    ended: watch::Receiver<Option<StopOutcome>>,
    finished: oneshot::Receiver<FinishedProgram>,
}

impl GuardedProgram {
    /// The process id of the guard, which is also the session id of the program's processes, unless
    /// they have created a session. The process id of the program is not known yet.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Waits until no process of the program is left. Resolves to [`StopOutcome::Discarded`] if the
    /// system cannot kill it in time.
    pub fn ended(&self) -> BoxFuture<'static, StopOutcome> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let outcome = ended.wait_for(Option::is_some).await;
            // An error means that the task panicked; the program ends all the same, unobserved.
            let outcome = outcome.ok().and_then(|outcome| *outcome);
            outcome.unwrap_or(StopOutcome::Discarded)
        })
    }

    /// Requests the end of the program.
    pub fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits until no process of the program is left. Cancel safe: only dropping the handle ends the
    /// program.
    pub async fn finished(&mut self) -> FinishedProgram {
        (&mut self.finished).await.unwrap_or_default()
    }
}

/// The task behind a [`GuardedProgram`].
pub(super) struct GuardSupervisor {
    child: Child,
    registration: GuardRegistration,
    guard: Pid,
    /// Writes the order, and then holds the standard input of the guard open: dropping it requests
    /// the end, besides the signal. `None` after that, and if the caller has the input.
    input: Option<BoxFuture<'static, ()>>,
    program: Option<Pid>,
    output_bytes_max: usize,
    /// The output so far; its end is not set.
    finished: FinishedProgram,
    grace: Duration,
    /// The guard was requested to end the program. It is sent signals only once it has started the
    /// program: before, it may not handle them yet, and they would end the guard itself.
    requested: bool,
    /// When the server kills the processes itself.
    kill_at: Option<Instant>,
    /// When the program is reported as not killed.
    give_up_at: Option<Instant>,
    /// The server has begun to kill.
    killing: bool,
    /// The server has killed a process.
    killed: bool,
    /// The server has killed the guard, which was alive.
    guard_killed: bool,
    /// The number of last rounds without a process.
    empty_rounds: usize,
    end: Option<ProgramEnded>,
}

impl GuardSupervisor {
    /// Supervises `guard`. `input` writes its order and holds its standard input open; `None` if
    /// the caller does.
    pub(super) fn start(
        GuardProcess {
            child,
            registration,
            frames,
        }: GuardProcess,
        input: Option<BoxFuture<'static, ()>>,
        output_bytes_max: usize,
        grace: Duration,
        slot: impl Send + 'static,
    ) -> io::Result<GuardedProgram> {
        let guard = child.id().and_then(pid);
        let guard = guard.ok_or(io::ErrorKind::BrokenPipe)?;
        let supervisor = Self {
            child,
            registration,
            guard,
            input,
            program: None,
            output_bytes_max,
            finished: FinishedProgram::default(),
            grace,
            requested: false,
            kill_at: None,
            give_up_at: None,
            killing: false,
            killed: false,
            guard_killed: false,
            empty_rounds: 0,
            end: None,
        };
        let (stop, stopped) = oneshot::channel();
        let (outcome, ended) = watch::channel(None);
        let (result, finished) = oneshot::channel();
        let live_task = LiveTask::begin();
        let supervised = async move {
            let _guards = (slot, live_task);
            let program = supervisor.run(frames, stopped, &outcome).await;
            outcome.send_replace(Some(program.end.outcome()));
            let _ = result.send(program);
        };
        // In the span of the turn, whose ids its lines have.
        tokio::spawn(supervised.in_current_span());
        Ok(GuardedProgram {
            id: guard.as_raw_nonzero().get().unsigned_abs(),
            stop: Some(stop),
            ended,
            finished,
        })
    }

    async fn run(
        mut self,
        frames: UnixStream,
        stopped: oneshot::Receiver<()>,
        outcome: &watch::Sender<Option<StopOutcome>>,
    ) -> FinishedProgram {
        // Each has its head, which is a tag and a length.
        let mut frames = LengthDelimitedCodec::builder()
            .length_field_offset(TAG_BYTES)
            .length_adjustment(HEAD_BYTES as isize)
            .num_skip(0)
            .little_endian()
            .max_frame_length(FRAME_BYTES_MAX)
            .new_read(frames);
        let mut stopped = Some(stopped);
        while self.end.is_none() {
            tokio::select! {
                frame = frames.next() => {
                    let frame = frame.and_then(|frame| GuardFrame::read(&frame.ok()?));
                    // None at the end, or after bytes that are not a frame.
                    let Some(frame) = frame else { break };
                    self.handle(frame);
                }
                // Never completes, and writes the order meanwhile.
                () = or_pending(self.input.as_mut()) => {}
                // Ends when the sender is dropped.
                _ = or_pending(stopped.as_mut()) => {
                    stopped = None;
                    self.request_end();
                }
                () = or_pending(self.give_up_at.map(sleep_until)) => {
                    self.give_up_at = None;
                    let guard = self.child.id().unwrap_or_default();
                    tracing::error!(guard, "program could not be killed");
                    outcome.send_replace(Some(StopOutcome::Discarded));
                }
                () = or_pending(self.kill_at.map(sleep_until)) => {
                    self.kill_at = Some(Instant::now() + KILL_PAUSE);
                    if self.kill().await {
                        break;
                    }
                }
            }
        }
        drop(frames);
        self.finish().await
    }

    fn handle(&mut self, frame: GuardFrame) {
        match frame {
            GuardFrame::Start(start) => {
                self.program = pid(start.pid);
                if self.requested {
                    self.signal_end();
                }
            }
            GuardFrame::Output(bytes) => {
                let finished = &mut self.finished;
                let room = self.output_bytes_max - finished.output.len();
                let kept = &bytes[..bytes.len().min(room)];
                finished.output.extend_from_slice(kept);
                if bytes.len() > room {
                    finished.output_too_large = true;
                    self.request_end();
                }
            }
            GuardFrame::ErrorOutput(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                tracing::debug!(?text, "standard error of a program");
            }
            GuardFrame::End(end) => self.end = Some(end),
        }
    }

    fn request_end(&mut self) {
        if self.requested {
            return;
        }
        self.requested = true;
        let kill_at = Instant::now() + self.grace + SLACK;
        self.kill_at = Some(kill_at);
        self.give_up_at = Some(kill_at + KILL_TIMEOUT);
        self.input = None;
        if self.program.is_some() {
            self.signal_end();
        }
    }

    /// Sends a guard that handles signals the request to end its program.
    fn signal_end(&self) {
        // Only this task reaps the guard, so the id is still its own. CONT is for a guard that the
        // program has stopped.
        for signal in [Signal::TERM, Signal::CONT] {
            let _ = kill_process(self.guard, signal);
        }
    }

    /// Kills the descendants of a guard that failed to do it, and the guard once none is left. True
    /// then.
    async fn kill(&mut self) -> bool {
        if !self.killing {
            self.killing = true;
            let guard = self.child.id().unwrap_or_default();
            tracing::warn!(guard, "guard does not end its program; the server kills it");
        }
        self.kill_round().await;
        if self.empty_rounds < EMPTY_ROUNDS {
            // The program may have stopped the guard again.
            let _ = kill_process(self.guard, Signal::CONT);
            return false;
        }
        self.kill_guard();
        true
    }

    /// Kills the guard, unless it is dead.
    fn kill_guard(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Ok(None) = waitid(WaitId::Pid(self.guard), options) {
            self.guard_killed = true;
            let _ = kill_process(self.guard, Signal::KILL);
        }
    }

    /// Kills the descendants once.
    async fn kill_round(&mut self) {
        let (guard, program) = (self.guard, self.program);
        let killed = tokio::task::spawn_blocking(move || kill_descendants(guard, program)).await;
        match killed {
            Ok(false) => self.empty_rounds += 1,
            Ok(true) => (self.empty_rounds, self.killed) = (0, true),
            // The round did not run, so a process may be left.
            Err(_) => self.empty_rounds = 0,
        }
    }

    /// Kills the descendants until none is left, [`ROUNDS_MAX`] times at most, then the guard.
    async fn kill_all(&mut self) {
        for _ in 0..ROUNDS_MAX {
            if self.empty_rounds >= EMPTY_ROUNDS {
                break;
            }
            self.kill_round().await;
            sleep(KILL_PAUSE).await;
        }
        self.kill_guard();
    }

    /// The guard has reported the end, or is dead.
    async fn finish(mut self) -> FinishedProgram {
        let may_be_unstarted =
            self.end.is_none() && self.requested && self.program.is_none() && !self.killing;
        let is_unstarted = may_be_unstarted && exits_unstarted(self.guard).await;
        let end = match self.end.take() {
            // A guard that was stopped may see the death of its program before the request to end
            // it: what the server killed was requested.
            Some(end) => ProgramEnded {
                requested: end.requested || self.killed,
                killed: end.killed || self.killed,
                ..end
            },
            None if is_unstarted => ProgramEnded {
                requested: true,
                ..ProgramEnded::default()
            },
            None => {
                // The guard was killed, or sent no valid frame: the program dies with it, its
                // session is killed here, and what left the session by the reaper of orphans.
                self.kill_all().await;
                self.registration.settle().await;
                let exit = match self.program {
                    Some(_) => ProgramExit::GuardDied,
                    None => ProgramExit::Refused,
                };
                ProgramEnded {
                    requested: self.requested,
                    killed: self.program.is_some() || self.killed,
                    exit,
                    ..ProgramEnded::default()
                }
            }
        };
        let mut exited = timeout(EXIT_TIMEOUT, self.child.wait()).await;
        if exited.is_err() {
            tracing::error!("guard has reported the end of its program and does not exit");
            self.empty_rounds = 0;
            self.kill_all().await;
            exited = timeout(EXIT_TIMEOUT, self.child.wait()).await;
        }
        match exited {
            Ok(Ok(status)) if !self.guard_killed && !is_unstarted => {
                report_death(self.guard, status);
            }
            Ok(_) => {}
            Err(_) => {
                // The system cannot kill the guard now; it stays registered until it is reaped.
                let (mut child, registration) = (self.child, self.registration);
                let reaped = async move {
                    let _ = child.wait().await;
                    drop(registration);
                };
                tokio::spawn(reaped.in_current_span());
            }
        }
        FinishedProgram {
            end,
            ..self.finished
        }
    }
}

/// Waits until a guard that has closed its frames exits. True if it started nothing, because its
/// input ended before the order was whole. It is not reaped, so that its id is not used again.
async fn exits_unstarted(guard: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let exited = tokio::task::spawn_blocking(move || waitid(WaitId::Pid(guard), options));
    // A guard that does not exit is killed by the caller, which ends the blocked thread too.
    let exited = timeout(EXIT_TIMEOUT, exited).await;
    let Ok(Ok(Ok(Some(status)))) = exited else {
        return false;
    };
    status.exit_status() == Some(i32::from(EXIT_USAGE))
}

/// Counts and logs a guard that did not exit by itself.
fn report_death(guard: Pid, status: ExitStatus) {
    if status.success() {
        return;
    }
    metrics::counter!(metric::TOOL_GUARD_DEATHS_TOTAL).increment(1);
    let guard = guard.as_raw_nonzero().get();
    let (signal, code) = (status.signal(), status.code());
    tracing::warn!(guard, signal, code, "guard of a program died");
}

/// Waits for `future`; for ever if there is none.
async fn or_pending<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

pub(super) fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}
