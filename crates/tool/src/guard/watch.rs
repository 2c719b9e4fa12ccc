//! One program under watch: from its start to the moment when nothing below the guard is left.
//!
//! ```text
//! running ── asked, or the program ended and left others ──▶ TERM ── grace ──▶ KILL, again and
//!    ╰──────────────────────── no child left ──────────────────┴──▶ end ◀──── again
//! ```

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::event::Event;
use super::frame::{End, How, Start};
use super::order::{Mode, Order};
use super::pump::{self, Report};
use super::{EXEC, stage, tree};

/// What a program has to end by itself when its input is closed, before it is asked.
const CLOSED: Duration = Duration::from_secs(2);
/// From a program's end until what it left behind is asked to end: the system says within it that
/// nothing is, where that is so.
const LEFT: Duration = Duration::from_millis(5);
/// Between two rounds of killing while each finds others than the one before: a chain of processes
/// that hand on to each other is caught by looking faster than it goes on.
const CHASE: Duration = Duration::from_millis(1);
/// Between two rounds of killing.
const ROUND: Duration = Duration::from_millis(10);
/// The same when killing seems to take the system long.
const ROUND_MAX: Duration = Duration::from_millis(500);
/// Between two looks at the number of processes, where it is bound.
const LOOK: Duration = Duration::from_millis(250);
/// How long nothing may come of the output once no process is left that could write it: then
/// somebody else holds the other end. A server that takes its time to read is waited for.
const DRAIN: Duration = Duration::from_secs(2);

/// A program that runs.
pub(super) struct Watch {
    program: Pid,
    began: Instant,
    grace: Duration,
    /// How many processes there may be.
    most: Option<u64>,
    hear: Receiver<Event>,
    report: Report,
    token: String,
    /// The beginning of what the program wrote to its standard error.
    errors: Arc<Mutex<Vec<u8>>>,
    /// How the program ended, when it has.
    how: Option<How>,
    /// Whether somebody wanted the end before the program had come to its own.
    asked: bool,
    /// Whether somebody wanted it while anything was left.
    wished: bool,
    /// Whether TERM was sent, which is done once.
    told: bool,
    killed: bool,
    crowd: bool,
    empty: bool,
    /// Outputs that are not at their end.
    open: usize,
    /// What had to be told to end, but for the program.
    ended: HashSet<Pid>,
    /// What the last round of killing found.
    found: Vec<Pid>,
}

impl Watch {
    /// Starts the program of `order`. Must be called on the thread that lives longest: the
    /// program is bound to it, not to the whole guard.
    pub(super) fn start(
        order: Order,
        words: &[OsString],
        report: &Report,
        (tell, hear): (Sender<Event>, Receiver<Event>),
    ) -> Result<Self, How> {
        if !order.dir.is_dir() {
            return Err(How::MissingFolder);
        }
        let began = Instant::now();
        let grace = order.grace();
        let token = token();
        let mut child = second_stage(&order, words, &token)
            .spawn()
            .map_err(|_| How::Refused)?;
        let program = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let program = program.ok_or(How::Refused)?;
        report.start(Start { pid: child.id() });
        let mut open = 0;
        if let Some(output) = child.stdout.take() {
            open += 1;
            pump::output(output, report.clone(), tell.clone());
        }
        let errors = child.stderr.take().map(|errors| {
            open += 1;
            pump::errors(errors, report.clone(), tell.clone())
        });
        match (order.mode, child.stdin.take(), order.input) {
            (Mode::Call, Some(stdin), Some(input)) => pump::feed(stdin, input),
            (Mode::Call, _, _) => {}
            (Mode::Pipe, stdin, _) => {
                pump::closing(tell.clone());
                if let Some(stdin) = stdin {
                    pump::forward(stdin);
                }
            }
        }
        if order.mode == Mode::Call {
            pump::wish(tell.clone());
        }
        reap(tell);
        Ok(Self {
            program,
            began,
            grace,
            most: order.limits.processes,
            hear,
            report: report.clone(),
            token,
            errors: errors.unwrap_or_default(),
            how: None,
            asked: false,
            wished: false,
            told: false,
            killed: false,
            crowd: false,
            empty: false,
            open,
            ended: HashSet::new(),
            found: Vec::new(),
        })
    }

    /// Waits for the end, and sees to it.
    pub(super) fn until_empty(mut self) -> End {
        // When the program is asked, when it is killed, and when it is looked at.
        let (mut ask_at, mut kill_at) = (None, None);
        let mut look_at = self.most.map(|_| self.began + LOOK);
        let mut round = ROUND;
        while !self.empty {
            let now = Instant::now();
            if look_at.is_some_and(|at| at <= now) {
                look_at = Some(now + LOOK);
                if !self.crowd && self.most.is_some_and(tree::is_crowd) {
                    // It would only grow in the grace.
                    self.crowd = true;
                    kill_at = Some(now);
                }
            }
            if kill_at.is_some_and(|at| at <= now) {
                let pause = if self.kill() { CHASE } else { round };
                round = if pause == CHASE {
                    ROUND
                } else {
                    (round * 2).min(ROUND_MAX)
                };
                // Counted from here, so that what has happened meanwhile is heard first.
                kill_at = Some(Instant::now() + pause);
            } else if ask_at.is_some_and(|at| at <= now) {
                ask_at = None;
                kill_at.get_or_insert(now + self.grace);
                self.ask();
            }
            let next = [ask_at, kill_at, look_at].into_iter().flatten().min();
            match self.next(next) {
                Some(Event::Asked) => {
                    self.wish();
                    self.report.hush();
                    if !self.told {
                        ask_at = Some(Instant::now());
                    }
                }
                Some(Event::Closed) => {
                    let first = !self.told && !self.asked;
                    self.wish();
                    if first {
                        // The server is done with it, or dead: all is over within the grace.
                        let now = Instant::now();
                        ask_at.get_or_insert(now + CLOSED.min(self.grace / 2));
                        kill_at.get_or_insert(now + self.grace);
                    }
                }
                Some(Event::Gone(pid, status)) if pid == self.program => {
                    self.how = Some(how(status));
                    // What it leaves behind goes too. No look decides whether that is anything,
                    // for it may be missed: it is asked whoever is there.
                    if !self.told {
                        ask_at = Some(Instant::now() + LEFT);
                    }
                }
                Some(Event::Gone(..) | Event::Empty | Event::Drained) | None => {}
            }
        }
        self.end()
    }

    /// The next event; none when `until` has come.
    fn next(&mut self, until: Option<Instant>) -> Option<Event> {
        let event = match until {
            None => self.hear.recv().ok(),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                self.hear.recv_timeout(left).ok()
            }
        };
        match &event {
            Some(Event::Empty) => self.empty = true,
            Some(Event::Drained) => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        event
    }

    fn wish(&mut self) {
        self.wished = true;
        self.asked |= self.how.is_none();
    }

    /// The program's group, as long as the id is surely its own.
    fn group(&self) -> Option<Pid> {
        self.how.is_none().then_some(self.program)
    }

    fn ask(&mut self) {
        self.told = true;
        let asked = tree::ask(self.group());
        self.count(&asked);
    }

    /// Kills all that live; says whether there were others than the last time.
    fn kill(&mut self) -> bool {
        let killed = tree::kill(self.group());
        self.killed |= !killed.is_empty();
        self.count(&killed);
        let mut found: Vec<Pid> = killed.iter().map(|found| found.pid).collect();
        found.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        let others = found != self.found;
        self.found = found;
        others
    }

    fn count(&mut self, ended: &[tree::Found]) {
        let others = ended.iter().map(|found| found.pid);
        self.ended.extend(others.filter(|pid| *pid != self.program));
    }

    /// Waits for the rest of the output, as long as there is any on its way to the server.
    fn drain(&mut self) {
        let mut seen = self.report.settled();
        while self.open > 0 {
            match self.next(Some(Instant::now() + DRAIN)) {
                Some(Event::Asked) => return self.report.hush(),
                Some(_) => continue,
                None => {}
            }
            let now = self.report.settled();
            if self.report.is_quiet() || (now.is_some() && now == seen) {
                return;
            }
            seen = now;
        }
    }

    fn end(mut self) -> End {
        self.drain();
        let how = self.how.unwrap_or(How::Refused);
        let how = stage::said(&self.token, how, &self.errors.lock()).unwrap_or(how);
        End {
            how,
            // What a program left behind and somebody had killed did not end by itself.
            asked: self.asked || (self.wished && self.killed),
            killed: self.killed,
            crowd: self.crowd,
            cut: self.open > 0 && !self.report.is_quiet(),
            left: u32::try_from(self.ended.len()).unwrap_or(u32::MAX),
            ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Reaps whatever dies, the program and every orphan, until no child is left.
fn reap(tell: Sender<Event>) {
    thread::spawn(move || {
        loop {
            let event = match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => Event::Gone(pid, status),
                Ok(None) | Err(rustix::io::Errno::INTR) => continue,
                Err(_) => break,
            };
            if tell.send(event).is_err() {
                return;
            }
        }
        let _ = tell.send(Event::Empty);
    });
}

/// This binary again, in the place and the surroundings of the program.
fn second_stage(order: &Order, words: &[OsString], token: &str) -> Command {
    let mut command = Command::new(own());
    command
        .args(words)
        .arg(EXEC)
        .args(stage::words(
            token,
            &order.limits,
            &order.program,
            &order.args,
        ))
        .env_clear()
        .envs(&order.env)
        .current_dir(&order.dir)
        .process_group(0)
        .stderr(Stdio::piped());
    match (order.mode, &order.input) {
        (Mode::Call, Some(_)) => command.stdin(Stdio::piped()).stdout(Stdio::piped()),
        (Mode::Call, None) => command.stdin(Stdio::null()).stdout(Stdio::piped()),
        (Mode::Pipe, _) => command.stdin(Stdio::piped()).stdout(Stdio::inherit()),
    };
    command
}

/// The file of this process, which is there even if another has taken its place on the disk.
fn own() -> OsString {
    if cfg!(target_os = "linux") {
        return OsStr::new("/proc/self/exe").to_owned();
    }
    let exe: io::Result<_> = std::env::current_exe();
    exe.map(Into::into).unwrap_or_default()
}

fn how(status: WaitStatus) -> How {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => How::Code(code),
        (None, Some(signal)) => How::Signal(signal),
        (None, None) => How::Refused,
    }
}

/// A word that no program can guess.
fn token() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!(
        "{:016x}{:016x}",
        RandomState::new().hash_one(0),
        RandomState::new().hash_one(1)
    )
}
