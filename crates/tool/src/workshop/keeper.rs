//! The keeper of one guard: a task that reads its frames, passes on the wish to end, and tells
//! when nothing of the program is left. It outlives whoever asked for the program.

use std::future::pending;
use std::io;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use turnwire_event::code::StopOutcome;
use turnwire_event::port::BoxFuture;

use super::Unstarted;
use crate::guard::frame::{End, Frame, HEAD_BYTES, How};
use crate::live::Live;

/// Beyond the grace, until it is told that a program may still be there: killing takes the system
/// a moment, and a machine that is busy another.
const SLACK: Duration = Duration::from_secs(2);
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
    Writing(BoxFuture<'static, ChildStdin>),
    /// The guard has its order; closing this is the wish to end.
    Open { _input: ChildStdin },
    /// It is closed.
    Closed,
    /// The input is somebody else's: the wish is a signal.
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
    /// Whether the guard was told to end it.
    asked: bool,
    end: Option<End>,
}

impl Keeper {
    /// Keeps a guard that is to run one call.
    pub(super) fn call(
        mut child: Child,
        order: Vec<u8>,
        most: usize,
        grace: Duration,
        slot: OwnedSemaphorePermit,
    ) -> Result<Guarded, Unstarted> {
        let frames = child.stdout.take();
        let hold = child.stdin.take().map_or(Hold::Closed, |mut input| {
            Hold::Writing(Box::pin(async move {
                // A guard that does not take it is seen by the end of its frames.
                let _ = input.write_all(&order).await;
                input
            }))
        });
        Self::start(child, frames, hold, most, grace, slot)
    }

    /// Keeps a guard whose program others talk with.
    pub(super) fn pipe(
        mut child: Child,
        grace: Duration,
        slot: OwnedSemaphorePermit,
    ) -> Result<Guarded, Unstarted> {
        let frames = child.stderr.take();
        Self::start(child, frames, Hold::Given, 0, grace, slot)
    }

    fn start(
        child: Child,
        frames: Option<impl AsyncRead + Unpin + Send + 'static>,
        hold: Hold,
        most: usize,
        grace: Duration,
        slot: OwnedSemaphorePermit,
    ) -> Result<Guarded, Unstarted> {
        let gone = || Unstarted::Process(io::ErrorKind::BrokenPipe.into());
        let frames = frames.ok_or_else(gone)?;
        let id = child.id().ok_or_else(gone)?;
        let keeper = Self {
            guard: pid(id).ok_or_else(gone)?,
            child,
            hold,
            program: None,
            output: Vec::new(),
            most,
            over: false,
            asked: false,
            end: None,
        };
        let (stop, stopped) = oneshot::channel();
        let (tell_ended, ended) = watch::channel(None);
        let (tell_done, done) = oneshot::channel();
        let live = Live::begin();
        tokio::spawn(async move {
            let _held = (slot, live);
            let done = keeper
                .keep(Frames::new(frames), stopped, grace, &tell_ended)
                .await;
            tell_ended.send_replace(Some(done.end.outcome()));
            let _ = tell_done.send(done);
        });
        Ok(Guarded {
            id,
            stop: Some(stop),
            ended,
            done,
        })
    }

    async fn keep(
        mut self,
        mut frames: Frames<impl AsyncRead + Unpin>,
        stopped: oneshot::Receiver<()>,
        grace: Duration,
        ended: &watch::Sender<Option<StopOutcome>>,
    ) -> Done {
        let mut stopped = Some(stopped);
        let mut late = None;
        while self.end.is_none() {
            tokio::select! {
                frame = frames.next() => match frame {
                    Some(frame) => self.take(frame),
                    None => break,
                },
                input = written(&mut self.hold) => self.hold = Hold::Open { _input: input },
                () = wished(&mut stopped) => {
                    stopped = None;
                    late = Some(Instant::now() + grace + SLACK);
                    self.ask();
                }
                () = due(late) => {
                    late = None;
                    let guard = self.child.id().unwrap_or_default();
                    tracing::error!(guard, "a program cannot be killed");
                    ended.send_replace(Some(StopOutcome::Discarded));
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
                if self.over && !self.asked {
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
        self.asked = true;
        match self.hold {
            Hold::Writing(_) | Hold::Open { .. } | Hold::Closed => self.hold = Hold::Closed,
            // The guard is not reaped before this task does it, so the id is its own.
            Hold::Given => drop(kill_process(self.guard, Signal::TERM)),
        }
    }

    /// The guard has told the end, or is dead.
    async fn leave(mut self) -> Done {
        let end = self.end.take().unwrap_or_else(|| {
            // It was killed: the program died with it, and here goes the rest of its group.
            if let Some(program) = self.program {
                let _ = kill_process_group(program, Signal::KILL);
            }
            End {
                asked: self.asked,
                killed: self.program.is_some(),
                ..End::unstarted(How::Refused)
            }
        });
        if tokio::time::timeout(LEAVE, self.child.wait())
            .await
            .is_err()
        {
            tracing::error!("a guard has told the end of its program and does not go");
        }
        Done {
            end,
            output: self.output,
            over: self.over,
        }
    }
}

/// Frames out of bytes, also when waiting for one is given up in between.
struct Frames<R> {
    from: R,
    read: BytesMut,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    fn new(from: R) -> Self {
        let read = BytesMut::new();
        Self { from, read }
    }

    /// The next one; none at the end, or when what comes is none.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(head) = self.read.first_chunk::<HEAD_BYTES>() {
                let (tag, length) = Frame::head(*head).ok()?;
                if self.read.len() >= HEAD_BYTES + length {
                    self.read.advance(HEAD_BYTES);
                    return Frame::read(tag, self.read.split_to(length).to_vec()).ok();
                }
            }
            if self.from.read_buf(&mut self.read).await.ok()? == 0 {
                return None;
            }
        }
    }
}

/// The input of a guard, once it has its order.
async fn written(hold: &mut Hold) -> ChildStdin {
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
