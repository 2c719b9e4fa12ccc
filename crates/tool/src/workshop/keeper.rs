//! The keeper of one guard: a task that reads its frames, passes on the wish to end, and tells
//! when nothing of the program is left. It outlives whoever asked for the program.
//!
//! ```text
//! wish ── guard: TERM, grace, KILL ──▶ end
//!   ╰──── grace + SLACK: the guard has not, so the server kills the rest, then the guard ──▶ end
//! ```

use std::future::pending;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use turnwire_event::code::StopOutcome;
use turnwire_event::port::BoxFuture;

use super::frames::Frames;
use super::{Guard, Unstarted};
use crate::guard::frame::{End, Frame, How};
use crate::guard::kill_rest;
use crate::live::Live;

/// Beyond the grace, until the server kills what a guard has not: killing takes the system a
/// moment, and a machine that is busy another.
const SLACK: Duration = Duration::from_secs(1);
/// From then until it is told that a program may still be there.
const KILLING: Duration = Duration::from_secs(1);
/// Between two rounds of killing by the server.
const ROUND: Duration = Duration::from_millis(100);
/// Rounds in a row in which nothing was found, before it is taken that nothing is there: a look
/// through the table of processes is not one moment, and one that forks and goes may slip through.
/// Meanwhile a guard that is only slow has time to tell the end.
const EMPTY_ROUNDS: usize = 5;
/// Rounds for what is left of a guard that is dead or has told the end: five seconds.
const ROUNDS_MAX: usize = 50;
/// How long a guard may take to go once it has told the end.
const LEAVE: Duration = Duration::from_secs(5);

/// What a program gave, when nothing of it is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// How it ended.
    pub end: End,
    /// What it wrote, at most what it may.
    pub output: Vec<u8>,
    /// Whether it wrote more than it may, and was ended for that.
    pub over: bool,
}

/// A program under guard. Dropping this ends the program; a task sees to it.
#[derive(Debug)]
pub struct Guarded {
    id: u32,
    /// The keeper holds the other end; dropping this one is the wish to end.
    stop: Option<oneshot::Sender<()>>,
    ended: watch::Receiver<Option<StopOutcome>>,
    done: oneshot::Receiver<Done>,
}

impl Guarded {
    /// The id of the guard's process, and of the session that the program's processes belong to
    /// unless they made one of their own. The program's own id is not known when it must be named.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Resolves when nothing of the program is left, and says how it ended. Where the system
    /// cannot kill it, it says so after the grace: `Discarded`.
    pub fn ended(&self) -> BoxFuture<'static, StopOutcome> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let told = ended.wait_for(Option::is_some).await;
            // The task broke, which ends the program all the same; only nobody saw it.
            told.map_or(StopOutcome::Discarded, |told| {
                told.unwrap_or(StopOutcome::Discarded)
            })
        })
    }

    /// Ends the program.
    pub fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits until nothing of the program is left; dropping what waits ends nothing, only dropping
    /// the handle does.
    pub async fn done(&mut self) -> Done {
        let done = (&mut self.done).await;
        done.unwrap_or_else(|_| Done {
            end: End::unstarted(How::Refused),
            output: Vec::new(),
            over: false,
        })
    }
}

/// What is held of a guard's input, and so how the wish to end reaches it.
enum Hold {
    /// The order is being written.
    Writing(BoxFuture<'static, UnixStream>),
    /// The guard has its order; closing this is the wish to end, beside the signal.
    Open { _input: UnixStream },
    /// It is closed.
    Closed,
    /// The input is somebody else's: the wish is a signal alone.
    Given,
}

/// What is known of a program so far.
pub(super) struct Keeper {
    child: Child,
    guard: Pid,
    hold: Hold,
    program: Option<Pid>,
    output: Vec<u8>,
    most: usize,
    over: bool,
    grace: Duration,
    /// Whether the guard was told to end it.
    asked: bool,
    /// When the server does what the guard has not.
    kill_at: Option<Instant>,
    /// When it is told that this did not help.
    late_at: Option<Instant>,
    /// Whether it has begun to.
    begun: bool,
    /// Whether it killed anything.
    forced: bool,
    /// The newest rounds in a row in which nothing was left to kill.
    empty: usize,
    end: Option<End>,
}

impl Keeper {
    /// Keeps a guard that is to run one call.
    pub(super) fn call(
        guard: Guard,
        order: Vec<u8>,
        most: usize,
        grace: Duration,
        slot: OwnedSemaphorePermit,
    ) -> Result<Guarded, Unstarted> {
        let mut input = guard.input;
        let hold = Hold::Writing(Box::pin(async move {
            // A guard that does not take it is seen by the end of its frames.
            let _ = input.write_all(&order).await;
            input
        }));
        let frames = Frames::new(guard.frames);
        let keeper = Self::new(guard.child, hold, most, grace)?;
        Ok(keeper.start(frames, slot))
    }

    /// Keeps a guard whose program others talk with, on what is given back.
    pub(super) fn pipe(
        guard: Guard,
        grace: Duration,
        slot: OwnedSemaphorePermit,
    ) -> Result<(UnixStream, Guarded), Unstarted> {
        let frames = Frames::new(guard.frames);
        let keeper = Self::new(guard.child, Hold::Given, 0, grace)?;
        Ok((guard.input, keeper.start(frames, slot)))
    }

    fn new(child: Child, hold: Hold, most: usize, grace: Duration) -> Result<Self, Unstarted> {
        let guard = child.id().and_then(pid);
        Ok(Self {
            guard: guard.ok_or_else(|| Unstarted::Process(io::ErrorKind::BrokenPipe.into()))?,
            child,
            hold,
            program: None,
            output: Vec::new(),
            most,
            over: false,
            grace,
            asked: false,
            kill_at: None,
            late_at: None,
            begun: false,
            forced: false,
            empty: 0,
            end: None,
        })
    }

    fn start(self, frames: Frames<UnixStream>, slot: OwnedSemaphorePermit) -> Guarded {
        let id = self.guard.as_raw_nonzero().get().unsigned_abs();
        let (stop, stopped) = oneshot::channel();
        let (tell_ended, ended) = watch::channel(None);
        let (tell_done, done) = oneshot::channel();
        let live = Live::begin();
        tokio::spawn(async move {
            let _held = (slot, live);
            let done = self.keep(frames, stopped, &tell_ended).await;
            tell_ended.send_replace(Some(done.end.outcome()));
            let _ = tell_done.send(done);
        });
        Guarded {
            id,
            stop: Some(stop),
            ended,
            done,
        }
    }

    async fn keep(
        mut self,
        mut frames: Frames<UnixStream>,
        stopped: oneshot::Receiver<()>,
        ended: &watch::Sender<Option<StopOutcome>>,
    ) -> Done {
        let mut stopped = Some(stopped);
        while self.end.is_none() {
            tokio::select! {
                frame = frames.next() => match frame {
                    Some(frame) => self.take(frame),
                    None => break,
                },
                input = written(&mut self.hold) => self.hold = Hold::Open { _input: input },
                () = wished(&mut stopped) => {
                    stopped = None;
                    self.ask();
                }
                () = due(self.late_at) => {
                    self.late_at = None;
                    let guard = self.child.id().unwrap_or_default();
                    tracing::error!(guard, "a program cannot be killed");
                    ended.send_replace(Some(StopOutcome::Discarded));
                }
                () = due(self.kill_at) => {
                    self.kill_at = Some(Instant::now() + ROUND);
                    if self.kill().await {
                        break;
                    }
                }
            }
        }
        drop(frames);
        self.leave().await
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Start(start) => self.program = pid(start.pid),
            Frame::Output(bytes) => {
                let room = self.most - self.output.len();
                self.over |= bytes.len() > room;
                self.output
                    .extend_from_slice(&bytes[..bytes.len().min(room)]);
                if self.over {
                    self.ask();
                }
            }
            Frame::ErrorOutput(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                tracing::debug!(?text, "a program wrote to its standard error");
            }
            Frame::End(end) => self.end = Some(end),
        }
    }

    fn ask(&mut self) {
        if self.asked {
            return;
        }
        self.asked = true;
        let kill_at = Instant::now() + self.grace + SLACK;
        self.kill_at = Some(kill_at);
        self.late_at = Some(kill_at + KILLING);
        if !matches!(self.hold, Hold::Given) {
            self.hold = Hold::Closed;
        }
        // The guard is not reaped before this task does it, so the id is its own. The program may
        // have stopped it: then it goes on.
        for signal in [Signal::TERM, Signal::CONT] {
            let _ = kill_process(self.guard, signal);
        }
    }

    /// Does what the guard has not: kills what is left of the program, and where that is nothing,
    /// the guard. Says whether nothing is left.
    async fn kill(&mut self) -> bool {
        if !self.begun {
            self.begun = true;
            let guard = self.child.id().unwrap_or_default();
            tracing::warn!(guard, "a guard does not end its program; it is ended here");
        }
        self.kill_rest().await;
        if self.empty < EMPTY_ROUNDS {
            // The program may have stopped it again.
            let _ = kill_process(self.guard, Signal::CONT);
            return false;
        }
        let _ = kill_process(self.guard, Signal::KILL);
        true
    }

    /// One round: kills what is left of the program.
    async fn kill_rest(&mut self) {
        let (guard, program) = (self.guard, self.program);
        let killed = tokio::task::spawn_blocking(move || kill_rest(guard, program)).await;
        match killed {
            Ok(false) => self.empty += 1,
            Ok(true) => (self.empty, self.forced) = (0, true),
            // Where nobody looked, something may be there.
            Err(_) => self.empty = 0,
        }
    }

    /// The same until nothing is left, or until it seems that the system cannot do it.
    async fn kill_all(&mut self) {
        for _ in 0..ROUNDS_MAX {
            if self.empty >= EMPTY_ROUNDS {
                break;
            }
            self.kill_rest().await;
            sleep(ROUND).await;
        }
        let _ = kill_process(self.guard, Signal::KILL);
    }

    /// The guard has told the end, or is dead.
    async fn leave(mut self) -> Done {
        let end = match self.end.take() {
            // A guard that was stopped meanwhile may find its program dead before it finds that it
            // was asked to end it: what the server killed was asked for.
            Some(end) => End {
                asked: end.asked || self.forced,
                killed: end.killed || self.forced,
                ..end
            },
            None => {
                // It was killed, or talks nonsense: the program dies with it, and here goes the
                // rest of its session.
                self.kill_all().await;
                End {
                    asked: self.asked,
                    killed: self.program.is_some() || self.forced,
                    ..End::unstarted(How::Refused)
                }
            }
        };
        if timeout(LEAVE, self.child.wait()).await.is_err() {
            tracing::error!("a guard has told the end of its program and does not go");
            self.empty = 0;
            self.kill_all().await;
            let _ = timeout(LEAVE, self.child.wait()).await;
        }
        Done {
            end,
            output: self.output,
            over: self.over,
        }
    }
}

/// The input of a guard, once it has its order.
async fn written(hold: &mut Hold) -> UnixStream {
    match hold {
        Hold::Writing(writing) => writing.await,
        Hold::Open { .. } | Hold::Closed | Hold::Given => pending().await,
    }
}

async fn wished(stopped: &mut Option<oneshot::Receiver<()>>) {
    match stopped {
        Some(stopped) => drop(stopped.await),
        None => pending().await,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}
