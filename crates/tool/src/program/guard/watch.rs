//! Runs one program: from its start until the guard has no descendants.
//!
//! ```text
//! running ── end requested, or the program exited ──▶ TERM ── grace period ──▶ KILL, repeated
//!    ╰───────────────────── no child left ───────────────┴──────────▶ end ◀───────╯
//! ```

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::event::GuardEvent;
use super::frame::{GuardFrame, ProgramEnded, ProgramExit, ProgramStarted};
use super::order::{GuardMode, GuardOrder};
use super::pump::{self, FrameWriter};
use super::{EXEC_ARGUMENT, exec, own_binary, tree};

/// The time for a program to exit after its input is closed, before TERM.
const CLOSED_PAUSE: Duration = Duration::from_secs(2);
/// From the exit of the program to TERM for its descendants: within it the system reports that there
/// are none.
const DESCENDANTS_PAUSE: Duration = Duration::from_millis(5);
/// The pause between two rounds of killing while each finds other processes than the one before: a
/// chain of processes that fork and exit is caught only by killing faster than it forks.
const CHASE_PAUSE: Duration = Duration::from_millis(1);
/// The pause between two rounds of killing.
const KILL_PAUSE: Duration = Duration::from_millis(10);
/// The same while the system takes long to kill the processes.
const KILL_PAUSE_MAX: Duration = Duration::from_millis(500);
/// The pause between two counts of the processes, if their number is limited.
const COUNT_PAUSE: Duration = Duration::from_millis(250);
/// How long the output may pause once no process is left that could write it: then another process
/// holds the pipe open. A server that reads slowly is waited for.
const DRAIN_PAUSE: Duration = Duration::from_secs(2);

/// A program and the processes below it, from start to end.
pub(super) struct ProgramWatch {
    program: Pid,
    started_at: Instant,
    grace: Duration,
    processes_max: Option<u64>,
    events: Receiver<GuardEvent>,
    frames: FrameWriter,
    token: String,
    /// The beginning of standard error.
    errors: Arc<Mutex<Vec<u8>>>,
    /// `None` while the program runs.
    exit: Option<ProgramExit>,
    /// How the program ended, as far as it is known.
    end: ProgramEnded,
    /// The end was requested while a process was left.
    requested_late: bool,
    /// TERM was sent, which happens once.
    terminated: bool,
    no_children: bool,
    /// Outputs that have not ended.
    open_outputs: usize,
    /// The descendants that were signalled.
    descendants: HashSet<Pid>,
    /// The processes of the last round of killing.
    last_killed: Vec<Pid>,
}

impl ProgramWatch {
    /// Starts the program of `order`. Must be called on the main thread: the program dies with the
    /// thread that started it.
    pub(super) fn start(
        order: GuardOrder,
        args: &[OsString],
        frames: &FrameWriter,
        (sender, events): (Sender<GuardEvent>, Receiver<GuardEvent>),
    ) -> Result<Self, ProgramExit> {
        if !order.dir.is_dir() {
            return Err(ProgramExit::MissingFolder);
        }
        let started_at = Instant::now();
        let grace = Duration::from_millis(order.grace_ms);
        let token = token();
        let mut child = exec_command(&order, args, &token)
            .spawn()
            .map_err(|_| ProgramExit::Refused)?;
        let program = Pid::from_child(&child);
        frames.write(&GuardFrame::Start(ProgramStarted { pid: child.id() }));
        let mut open_outputs = 0;
        if let Some(output) = child.stdout.take() {
            open_outputs += 1;
            pump::forward_output(output, frames.clone(), sender.clone());
        }
        let errors = child.stderr.take().map(|errors| {
            open_outputs += 1;
            pump::forward_errors(errors, frames.clone(), sender.clone())
        });
        match (order.mode, child.stdin.take()) {
            (GuardMode::Call, stdin) => {
                if let (Some(stdin), Some(input)) = (stdin, order.input) {
                    pump::write_input(stdin, input);
                }
                pump::watch_for_end_request(sender.clone());
            }
            (GuardMode::Pipe, stdin) => {
                pump::watch_for_close(sender.clone());
                if let Some(stdin) = stdin {
                    pump::forward_input(stdin);
                }
            }
        }
        reap(sender);
        Ok(Self {
            program,
            started_at,
            grace,
            processes_max: order.limits.processes,
            events,
            frames: frames.clone(),
            token,
            errors: errors.unwrap_or_default(),
            exit: None,
            end: ProgramEnded::default(),
            requested_late: false,
            terminated: false,
            no_children: false,
            open_outputs,
            descendants: HashSet::new(),
            last_killed: Vec::new(),
        })
    }

    /// Waits until no process is left, and enforces it.
    pub(super) fn until_empty(mut self) -> ProgramEnded {
        let (mut term_at, mut kill_at) = (None, None);
        let mut count_at = self.processes_max.map(|_| self.started_at + COUNT_PAUSE);
        let mut kill_pause = KILL_PAUSE;
        while !self.no_children {
            let now = Instant::now();
            if count_at.is_some_and(|at| at <= now) {
                count_at = Some(now + COUNT_PAUSE);
                if !self.end.too_many_processes
                    && self.processes_max.is_some_and(tree::has_more_than)
                {
                    // Killed without a grace period, in which they would only multiply.
                    self.end.too_many_processes = true;
                    kill_at = Some(now);
                }
            }
            if kill_at.is_some_and(|at| at <= now) {
                let pause = if self.kill() { CHASE_PAUSE } else { kill_pause };
                kill_pause = if pause == CHASE_PAUSE {
                    KILL_PAUSE
                } else {
                    (kill_pause * 2).min(KILL_PAUSE_MAX)
                };
                // From now, so that the events of this round are handled first.
                kill_at = Some(Instant::now() + pause);
            } else if term_at.is_some_and(|at| at <= now) {
                term_at = None;
                kill_at.get_or_insert(now + self.grace);
                self.terminate();
            }
            let deadline = [term_at, kill_at, count_at].into_iter().flatten().min();
            match self.next_event(deadline) {
                Some(GuardEvent::EndRequested) => {
                    self.request_end();
                    self.frames.mute();
                    if !self.terminated {
                        term_at = Some(Instant::now());
                    }
                }
                Some(GuardEvent::InputClosed) => {
                    let is_first = !self.terminated && !self.end.requested;
                    self.request_end();
                    if is_first {
                        // The server does not need the program any more, or is dead: all processes
                        // end within the grace period.
                        let now = Instant::now();
                        term_at.get_or_insert(now + CLOSED_PAUSE.min(self.grace / 2));
                        kill_at.get_or_insert(now + self.grace);
                    }
                }
                Some(GuardEvent::Reaped(pid, status)) if pid == self.program => {
                    self.exit = Some(exit(status));
                    // Its descendants end too. Reading the process table could miss one, so TERM is
                    // sent without looking whether there are any.
                    if !self.terminated {
                        term_at = Some(Instant::now() + DESCENDANTS_PAUSE);
                    }
                }
                Some(GuardEvent::Reaped(..) | GuardEvent::NoChildren | GuardEvent::OutputEnded)
                | None => {}
            }
        }
        self.end()
    }

    /// The next event; `None` at the deadline.
    fn next_event(&mut self, deadline: Option<Instant>) -> Option<GuardEvent> {
        let timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let event = match timeout {
            None => self.events.recv().ok(),
            Some(timeout) => self.events.recv_timeout(timeout).ok(),
        };
        match &event {
            Some(GuardEvent::NoChildren) => self.no_children = true,
            Some(GuardEvent::OutputEnded) => {
                self.open_outputs = self.open_outputs.saturating_sub(1);
            }
            _ => {}
        }
        event
    }

    fn request_end(&mut self) {
        self.requested_late = true;
        self.end.requested |= self.exit.is_none();
    }

    /// The process group of the program, while its id cannot have been reused.
    fn group(&self) -> Option<Pid> {
        self.exit.is_none().then_some(self.program)
    }

    fn terminate(&mut self) {
        self.terminated = true;
        let terminated = tree::terminate(self.group());
        self.add_descendants(&terminated);
    }

    /// Kills all processes; true if they are others than in the last round.
    fn kill(&mut self) -> bool {
        let killed = tree::kill(self.group());
        self.end.killed |= !killed.is_empty();
        self.add_descendants(&killed);
        let mut pids: Vec<Pid> = killed.iter().map(|process| process.pid).collect();
        pids.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        let are_others = pids != self.last_killed;
        self.last_killed = pids;
        are_others
    }

    fn add_descendants(&mut self, processes: &[tree::ProcessEntry]) {
        let pids = processes.iter().map(|process| process.pid);
        self.descendants
            .extend(pids.filter(|pid| *pid != self.program));
    }

    /// Waits until all output is sent, as long as the server reads it.
    fn drain(&mut self) {
        let mut written = self.frames.written();
        while self.open_outputs > 0 {
            match self.next_event(Some(Instant::now() + DRAIN_PAUSE)) {
                Some(GuardEvent::EndRequested) => return self.frames.mute(),
                Some(_) => continue,
                None => {}
            }
            let now_written = self.frames.written();
            if self.frames.is_muted() || (now_written.is_some() && now_written == written) {
                return;
            }
            written = now_written;
        }
    }

    fn end(mut self) -> ProgramEnded {
        self.drain();
        let exit = self.exit.unwrap_or_default();
        let failure = exec::exec_failure(&self.token, exit, &self.errors.lock());
        let duration = self.started_at.elapsed();
        ProgramEnded {
            exit: failure.unwrap_or(exit),
            // Descendants that were killed on request did not end by themselves.
            requested: self.end.requested || (self.requested_late && self.end.killed),
            truncated: self.open_outputs > 0 && !self.frames.is_muted(),
            descendants: u32::try_from(self.descendants.len()).unwrap_or(u32::MAX),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            ..self.end
        }
    }
}

/// Reaps the program and every orphan, until no child is left.
fn reap(events: Sender<GuardEvent>) {
    thread::spawn(move || {
        loop {
            let event = match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => GuardEvent::Reaped(pid, status),
                Ok(None) | Err(rustix::io::Errno::INTR) => continue,
                Err(_) => break,
            };
            if events.send(event).is_err() {
                return;
            }
        }
        let _ = events.send(GuardEvent::NoChildren);
    });
}

/// The command of this binary that executes the program, with its folder and environment.
fn exec_command(order: &GuardOrder, args: &[OsString], token: &str) -> Command {
    let mut command = Command::new(own_binary());
    command
        .args(args)
        .arg(EXEC_ARGUMENT)
        .args(exec::arguments(token, order))
        .env_clear()
        .envs(&order.env)
        .current_dir(&order.dir)
        .process_group(0)
        .stderr(Stdio::piped());
    match (order.mode, &order.input) {
        (GuardMode::Call, Some(_)) => command.stdin(Stdio::piped()).stdout(Stdio::piped()),
        (GuardMode::Call, None) => command.stdin(Stdio::null()).stdout(Stdio::piped()),
        (GuardMode::Pipe, _) => command.stdin(Stdio::piped()).stdout(Stdio::inherit()),
    };
    command
}

fn exit(status: WaitStatus) -> ProgramExit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProgramExit::Code(code),
        (None, Some(signal)) => ProgramExit::Signal(signal),
        (None, None) => ProgramExit::Refused,
    }
}

/// A value that no program can guess.
fn token() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!(
        "{:016x}{:016x}",
        RandomState::new().hash_one(0),
        RandomState::new().hash_one(1)
    )
}
