//! The workshop: where programs of tools run, each under a guard (S3-074, R-17).
//!
//! ```text
//! tool ── Spec ──▶ Workshop ──▶ Guarded (a handle: dropping it ends the program)
//!                     ╰ task ── frames ── guard process ── program
//! ```
//! A task of its own owns each guard, so a program's end is seen to and told also when nobody
//! waits for its result any more. No environment of the server reaches a program, and none runs
//! outside the folder it was given.

mod folders;
mod spec;
mod frames;
mod keeper;
mod talk;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnwire_event::SessionId;

use crate::guard;
use crate::guard::order::{Mode, Order};

use keeper::Keeper;

pub use folders::Folders;
pub use keeper::{Done, Guarded};
pub use spec::Spec;
pub use talk::Piped;

/// Programs at once where nobody says otherwise. Each may be as large as its limits allow, so this
/// bounds the machine's load; those that come later wait, within the time of their own call.
const PROGRAMS_MAX: usize = 64;

/// A program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Unstarted {
    /// The system gave no process, or no pipe to it.
    #[error("no process can be started")]
    Process(#[source] io::Error),
    /// The server is going down.
    #[error("the workshop is closed")]
    Closed,
}

/// Where programs run.
#[derive(Debug)]
pub struct Workshop {
    folders: Folders,
    /// The command that makes a guard.
    guard: Vec<OsString>,
    grace: Duration,
    /// Of calls.
    calls: Arc<Semaphore>,
    /// Of programs that are talked with: they keep theirs for life, so calls have their own.
    talks: Arc<Semaphore>,
    /// Where programs look for others; all that they share with the server.
    path: String,
}

impl Workshop {
    /// A workshop with folders below `dir`, whose programs have `grace` between TERM and KILL.
    /// `guard` is the command of a guard; [`Self::guard`] is this very binary.
    pub fn new(dir: PathBuf, guard: Vec<OsString>, grace: Duration) -> Self {
        let path = std::env::var("PATH").ok().filter(|path| !path.is_empty());
        Self {
            folders: Folders::new(dir),
            guard,
            grace,
            calls: Arc::new(Semaphore::new(PROGRAMS_MAX)),
            talks: Arc::new(Semaphore::new(PROGRAMS_MAX)),
            path: path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned()),
        }
    }

    /// The same with room for `most` calls at once, and for as many programs to talk with.
    pub fn with_room(self, most: usize) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(most)),
            talks: Arc::new(Semaphore::new(most)),
            ..self
        }
    }

    /// The command that makes a guard of this binary, also after another one was put in its place
    /// on the disk.
    pub fn guard() -> Vec<OsString> {
        let own = if cfg!(target_os = "linux") {
            OsString::from("/proc/self/exe")
        } else {
            let exe = std::env::current_exe().unwrap_or_default();
            exe.into_os_string()
        };
        vec![own, OsString::from(guard::WORD)]
    }

    /// What a program has between TERM and KILL.
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// Where they work.
    pub fn folders(&self) -> &Folders {
        &self.folders
    }

    /// The folder of a session, made if it is not there.
    pub fn folder(&self, session_id: SessionId) -> io::Result<PathBuf> {
        self.folders.session(session_id)
    }

    /// A folder for what belongs to no session, such as a tool server; `name` is one plain word.
    pub fn shared(&self, name: &str) -> io::Result<PathBuf> {
        self.folders.shared(name)
    }

    /// The file that `program` is: an absolute path, or a name found where programs look.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        let runs = |path: &Path| {
            let about = path.metadata();
            about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
        };
        if program.contains('/') {
            let path = PathBuf::from(program);
            return (path.is_absolute() && runs(&path)).then_some(path);
        }
        let folders = self.path.split(':').filter(|folder| !folder.is_empty());
        let mut files = folders.map(|folder| Path::new(folder).join(program));
        files.find(|path| path.is_absolute() && runs(path))
    }

    /// Runs a program to its end. It waits for a free slot and for nothing else: when this
    /// returns, the program is starting, and whoever has the handle can take charge of it at once.
    pub async fn call(&self, spec: Spec) -> Result<Guarded, Unstarted> {
        let slot = self.slot().await?;
        self.begin(spec, slot)
    }

    /// A free slot for a program that runs to its end.
    pub(crate) async fn slot(&self) -> Result<OwnedSemaphorePermit, Unstarted> {
        slot(&self.calls).await
    }

    /// Runs a program that has its slot.
    pub(crate) fn begin(
        &self,
        spec: Spec,
        slot: OwnedSemaphorePermit,
    ) -> Result<Guarded, Unstarted> {
        let most = spec.output_bytes_max;
        let order = line(&self.order(Mode::Call, spec));
        let guard = self.spawn(Mode::Call)?;
        Keeper::call(guard, order, most, self.grace, slot)
    }

    /// Runs a program to talk with on its standard streams, such as a tool server. When this
    /// returns it is starting: what is wrong with it is told by [`Guarded::done`], and its output
    /// ends.
    ///
    /// To end it, close `input` and go on holding `program` until it is gone: it has up to two
    /// seconds to go by itself, and the workshop's grace in all. Dropping `program`, or
    /// [`Guarded::stop`], asks it at once. Nothing outlives the grace, whoever still holds an end
    /// of a stream.
    pub async fn pipe(&self, spec: Spec) -> Result<Piped, Unstarted> {
        let slot = slot(&self.talks).await?;
        let order = line(&self.order(Mode::Pipe, spec));
        let mut guard = self.spawn(Mode::Pipe)?;
        let gone = || Unstarted::Process(io::ErrorKind::BrokenPipe.into());
        let output = guard.child.stdout.take().ok_or_else(gone)?;
        let (mut input, program) = Keeper::pipe(guard, self.grace, slot)?;
        // Dropped here, the guard never reads a whole order and starts nothing.
        input.write_all(&order).await.map_err(Unstarted::Process)?;
        Ok(Piped {
            input,
            output,
            program,
        })
    }

    fn order(&self, mode: Mode, spec: Spec) -> Order {
        let dir = spec.dir.to_string_lossy().into_owned();
        let mut env = BTreeMap::from([
            ("PATH".to_owned(), self.path.clone()),
            ("HOME".to_owned(), dir.clone()),
            ("TMPDIR".to_owned(), dir),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ]);
        env.extend(spec.env);
        Order {
            mode,
            program: spec.program,
            args: spec.args,
            env,
            dir: spec.dir,
            limits: spec.limits,
            grace_ms: u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX),
            input: spec.input,
        }
    }

    /// A guard without an order. It is not killed when its handle is dropped, for then nobody
    /// would see to what is below it: it sees its input closed and does that itself.
    fn spawn(&self, mode: Mode) -> Result<Guard, Unstarted> {
        // Where whoever started the server had the ends of children ignored, the system would reap
        // guards itself, and an id could be another's by the time it is signalled. What is set by
        // this stays set.
        drop(signal(SignalKind::child()).map_err(Unstarted::Process)?);
        let (program, args) = self
            .guard
            .split_first()
            .ok_or_else(|| Unstarted::Process(io::ErrorKind::NotFound.into()))?;
        let (input, reads) = socket().map_err(Unstarted::Process)?;
        let (frames, tells) = socket().map_err(Unstarted::Process)?;
        let mut command = Command::new(program);
        command.args(args).env_clear().stdin(reads);
        match mode {
            Mode::Call => command.stdout(tells).stderr(Stdio::null()),
            // The program's own, which may open it by name: a pipe.
            Mode::Pipe => command.stdout(Stdio::piped()).stderr(tells),
        };
        Ok(Guard {
            child: command.spawn().map_err(Unstarted::Process)?,
            input,
            frames,
        })
    }
}

/// A guard that was started, and the server's ends of what leads to it.
struct Guard {
    child: Child,
    /// What the guard reads; its end is the wish to end.
    input: UnixStream,
    /// What the guard tells.
    frames: UnixStream,
}

/// Two ends, ours and the guard's. A program can open a pipe of its guard through the process
/// table, and hold it or write to it; a socket it cannot.
fn socket() -> io::Result<(UnixStream, Stdio)> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = theirs.into_std()?;
    theirs.set_nonblocking(false)?;
    Ok((ours, Stdio::from(OwnedFd::from(theirs))))
}

async fn slot(slots: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Unstarted> {
    let slot = Arc::clone(slots).acquire_owned().await;
    slot.map_err(|_| Unstarted::Closed)
}

/// The one line that an order is.
fn line(order: &Order) -> Vec<u8> {
    let mut line = serde_json::to_vec(order).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
