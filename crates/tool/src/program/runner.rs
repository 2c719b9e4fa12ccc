//! Runs the programs of tools, each under a guard process (S3-074, R-17).
//!
//! ```text
//! tool ── ProgramSpec ──▶ ProgramRunner ──▶ GuardedProgram (a handle: dropping it ends the program)
//!                              ╰ GuardSupervisor task ── frames ── guard process ── program
//! ```
//! Each guard belongs to a task, so that a program ends, and its end is reported, also when nobody
//! waits for its result any more. A program gets no environment of the server and runs in the folder
//! of its [`ProgramSpec`].

mod remove;
mod folders;
mod quota;
mod spec;
mod supervisor;
mod piped;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnwire_event::Owner;
use turnwire_fair::{FairLimits, FairRefusal, FairSlot, FairSlots};

use crate::program::guard;
use crate::program::guard::order::{GuardMode, GuardOrder};
use crate::program::lookup::{find_in, server_path};
use crate::program::orphans::{GuardRegistration, GuardTable, OrphanReaper};

use quota::{FolderOverfull, FolderQuota};
use supervisor::{GuardSupervisor, pid};

pub use folders::ProgramFolders;
pub use piped::PipedProgram;
pub use quota::FolderLimits;
pub use spec::ProgramSpec;
pub use supervisor::{FinishedProgram, GuardedProgram};

/// The default limits of the folder of a session: a checked-out repository fits.
const FOLDER_LIMITS: FolderLimits = FolderLimits {
    bytes: 1 << 30,
    entries: 20_000,
};
/// The default limits of concurrent programs. Each may be as large as its limits allow, so this
/// bounds the load of the machine; further programs wait, within the timeout of their call.
const CALL_LIMITS: FairLimits = FairLimits {
    total: 64,
    per_owner: 16,
    waiting: 1_024,
    waiting_per_owner: 128,
};

/// The variable that keeps the allocator of a guard from using huge pages: with them, each guard
/// takes 6 MB more. A program never gets this variable.
const SMALL_ALLOCATOR: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");

/// Starts programs, each under a guard, and limits how many run at the same time.
pub struct ProgramRunner {
    /// The folders of the programs.
    pub folders: ProgramFolders,
    /// The command of a guard.
    guard_command: Vec<OsString>,
    /// The time between TERM and KILL.
    pub(crate) grace: Duration,
    /// One for each call, shared fairly by the owners of turns.
    call_slots: Arc<FairSlots<Owner>>,
    /// Separate from those of calls, because a piped program runs for long.
    pipe_slots: Arc<Semaphore>,
    /// The `PATH` of programs; all that they share with the server.
    path: String,
    guards: Arc<GuardTable>,
    folder_limits: FolderLimits,
}

impl std::fmt::Debug for ProgramRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramRunner")
            .field("folders", &self.folders)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

impl ProgramRunner {
    /// Runs programs in folders below `dir`, with `grace` between TERM and KILL. `guard_command`
    /// starts a guard; [`Self::own_guard`] is the one of this binary.
    pub fn new(dir: PathBuf, guard_command: Vec<OsString>, grace: Duration) -> Self {
        Self {
            folders: ProgramFolders::new(dir),
            guard_command,
            grace,
            call_slots: FairSlots::new(CALL_LIMITS),
            pipe_slots: Arc::new(Semaphore::new(CALL_LIMITS.total)),
            path: server_path(),
            guards: Arc::default(),
            folder_limits: FOLDER_LIMITS,
        }
    }

    /// Limits the folder of each session.
    pub fn with_folder_limits(self, folder_limits: FolderLimits) -> Self {
        Self {
            folder_limits,
            ..self
        }
    }

    /// The quota of `dir`, for a program that starts there now; an error if none may start there.
    pub(crate) async fn quota(&self, dir: PathBuf) -> Result<FolderQuota, FolderOverfull> {
        FolderQuota::new(dir, self.folder_limits).await
    }

    /// Limits the concurrent calls, and in the same number all piped programs.
    pub fn with_call_limits(self, limits: FairLimits) -> Self {
        Self {
            call_slots: FairSlots::new(limits),
            pipe_slots: Arc::new(Semaphore::new(limits.total)),
            ..self
        }
    }

    /// Ends the processes that lose a guard of this runner, with the `reaper` of this process. Never
    /// ends.
    pub fn end_orphans(&self, reaper: OrphanReaper) -> impl Future<Output = ()> + use<> {
        reaper.run(Arc::clone(&self.guards))
    }

    /// The command that starts this binary as a guard, also after it was replaced on disk.
    pub fn own_guard() -> Vec<OsString> {
        vec![guard::own_binary(), OsString::from(guard::ARGUMENT)]
    }

    /// The executable file of `program`: an absolute path, or a name in `PATH`.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        find_in(&self.path, program)
    }

    /// Starts a program that runs to its end. Waits for a free slot of `owner` only: when this
    /// returns, the program is starting.
    pub async fn call(&self, owner: &Owner, spec: ProgramSpec) -> io::Result<GuardedProgram> {
        let slot = self.slot(owner).await;
        let slot = slot.map_err(|_| io::ErrorKind::ResourceBusy)?;
        self.start(spec, slot)
    }

    /// Waits for a free slot of a call of `owner`; an error if too many wait already.
    pub(crate) async fn slot(&self, owner: &Owner) -> Result<FairSlot<Owner>, FairRefusal> {
        self.call_slots.acquire(owner).await
    }

    /// Starts a program that has its slot.
    pub(crate) fn start(
        &self,
        spec: ProgramSpec,
        slot: FairSlot<Owner>,
    ) -> io::Result<GuardedProgram> {
        let output_bytes_max = spec.output_bytes_max;
        let order = self.order(GuardMode::Call, spec);
        let (guard, mut input) = self.spawn_guard(GuardMode::Call)?;
        let input = Box::pin(async move {
            // A guard that does not read the order exits, which ends its frames.
            let _ = input.write_all(&order).await;
            // The input stays open until this future is dropped.
            pending().await
        });
        GuardSupervisor::start(guard, Some(input), output_bytes_max, self.grace, slot)
    }

    /// Starts a program with open standard streams, such as an MCP server. When this returns, the
    /// program is starting: if it fails, [`GuardedProgram::finished`] says why, and its output ends.
    ///
    /// To end it, close `input` and hold `program` until it has exited: it gets TERM after two
    /// seconds and KILL after the grace period. Dropping `program`, or [`GuardedProgram::stop`],
    /// sends TERM at once. No process outlives the grace period, whoever holds an end of a stream.
    pub async fn pipe(&self, spec: ProgramSpec) -> io::Result<PipedProgram> {
        let slot = slot(&self.pipe_slots).await;
        let order = self.order(GuardMode::Pipe, spec);
        let (mut guard, mut input) = self.spawn_guard(GuardMode::Pipe)?;
        let output = guard.child.stdout.take();
        let output = output.ok_or(io::ErrorKind::BrokenPipe)?;
        let program = GuardSupervisor::start(guard, None, 0, self.grace, slot)?;
        // If this future is dropped here, the guard never gets a whole order and starts nothing.
        input.write_all(&order).await?;
        Ok(PipedProgram {
            input,
            output,
            program,
        })
    }

    /// The order to run `spec`, as one line of JSON.
    fn order(&self, mode: GuardMode, spec: ProgramSpec) -> Vec<u8> {
        let dir = spec.dir.to_string_lossy().into_owned();
        let mut env = BTreeMap::from([
            ("PATH".to_owned(), self.path.clone()),
            ("HOME".to_owned(), dir.clone()),
            ("TMPDIR".to_owned(), dir),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ]);
        env.extend(spec.env);
        let order = GuardOrder {
            mode,
            program: spec.program,
            args: spec.args,
            env,
            dir: spec.dir,
            limits: spec.limits,
            grace_ms: u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX),
            input: spec.input,
        };
        let mut line = serde_json::to_vec(&order).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Starts a guard without an order, and returns its standard input. The guard is not killed when
    /// its handle is dropped, because its program would survive: it sees that its input is closed
    /// and ends the program itself.
    fn spawn_guard(&self, mode: GuardMode) -> io::Result<(GuardProcess, UnixStream)> {
        // If the server was started with CHLD ignored, the system would reap guards itself, and an
        // id could be reused before it is signalled. The handler stays installed after this.
        drop(signal(SignalKind::child())?);
        let command = self.guard_command.split_first();
        let (program, args) = command.ok_or(io::ErrorKind::NotFound)?;
        let (input, guard_input) = socket()?;
        let (frames, guard_frames) = socket()?;
        let mut command = Command::new(program);
        command.args(args).env_clear().stdin(guard_input);
        let (name, value) = SMALL_ALLOCATOR;
        command.env(name, value);
        match mode {
            GuardMode::Call => command.stdout(guard_frames).stderr(Stdio::null()),
            // A pipe, because the program may open its standard output by name.
            GuardMode::Pipe => command.stdout(Stdio::piped()).stderr(guard_frames),
        };
        let (child, registration) = self
            .guards
            .spawn(|| command.spawn(), |child| child.id().and_then(pid))?;
        let guard = GuardProcess {
            child,
            registration,
            frames,
        };
        Ok((guard, input))
    }
}

/// A running guard and the server's end of the socket for its frames.
struct GuardProcess {
    child: Child,
    registration: GuardRegistration,
    frames: UnixStream,
}

/// The server's end and the guard's end of a socket. A program could open a pipe of its guard through
/// `/proc`, and hold it or write to it, but not a socket.
fn socket() -> io::Result<(UnixStream, Stdio)> {
    let (server_end, guard_end) = UnixStream::pair()?;
    let guard_end = guard_end.into_std()?;
    guard_end.set_nonblocking(false)?;
    Ok((server_end, Stdio::from(OwnedFd::from(guard_end))))
}

async fn slot(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let slot = Arc::clone(slots).acquire_owned().await;
    slot.expect("the slots are never closed")
}

#[cfg(test)]
mod tests;
