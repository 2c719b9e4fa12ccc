//! The orphans of guards: processes that lose their guard become children of the server, which kills
//! them.
//!
//! ```text
//! server (subreaper) ─┬─ guard ── program ── …         listed in [`GuardTable`]
//!                     ├─ guard, killed ✗ ── X          X becomes a child of the server,
//!                     └─ X                             is in no table, and is killed
//! ```
//! The server starts no children but guards. A child that is not in the table is an orphan: it is
//! killed with all its descendants if it comes from a program, and reaped when it has died. A process
//! of a program is known by its `no_new_privs` attribute, which it inherits and cannot clear; other
//! orphans, which a server that is the first process of a container gets too, are reaped only.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use turnwire_event::metric;

use crate::program::guard::orphans as processes;

/// The shortest pause between two rounds: many guards may exit at once.
const ROUND_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two rounds while orphans are left that the system has not killed yet.
const KILL_PAUSE_MAX: Duration = Duration::from_millis(500);
/// The longest pause between two rounds. The exit of a guard starts one at once; this is for an
/// orphan that was missed.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// The time for which a program whose guard has died is waited for.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The running guards of a server, which are all its own children.
#[derive(Debug)]
pub(crate) struct GuardTable {
    /// Each with the number of its entry, because an id may be used again before the old entry is
    /// removed. Held while a guard is started, so that no round sees a guard without its entry.
    live: Mutex<GuardEntries>,
    /// A guard has died, or may have.
    died: Notify,
    /// The number of rounds without an orphan; the [`OrphanReaper`] counts them.
    empty_rounds: watch::Sender<u64>,
    reaper_runs: AtomicBool,
}

#[derive(Debug, Default)]
struct GuardEntries {
    by_pid: HashMap<Pid, u64>,
    last_entry: u64,
}

/// The entry of one guard, removed when this is dropped. The guard must have been reaped by then.
#[derive(Debug)]
pub(crate) struct GuardRegistration {
    table: Arc<GuardTable>,
    pid: Pid,
    entry: u64,
}

impl Default for GuardTable {
    fn default() -> Self {
        Self {
            live: Mutex::default(),
            died: Notify::new(),
            empty_rounds: watch::Sender::new(0),
            reaper_runs: AtomicBool::new(false),
        }
    }
}

impl GuardTable {
    /// Starts a guard with `spawn` and enters it under the id that `pid` reads from it.
    pub(crate) fn spawn<C>(
        self: &Arc<Self>,
        spawn: impl FnOnce() -> io::Result<C>,
        pid: impl FnOnce(&C) -> Option<Pid>,
    ) -> io::Result<(C, GuardRegistration)> {
        let mut live = self.live.lock();
        let child = spawn()?;
        let pid = pid(&child).ok_or(io::ErrorKind::BrokenPipe)?;
        live.last_entry += 1;
        let entry = live.last_entry;
        live.by_pid.insert(pid, entry);
        drop(live);
        let table = Arc::clone(self);
        Ok((child, GuardRegistration { table, pid, entry }))
    }
}

impl GuardRegistration {
    /// Waits until the processes that have lost this guard, which is dead, have been killed; five
    /// seconds at most.
    pub(crate) async fn settle(&self) {
        let mut rounds = self.table.empty_rounds.subscribe();
        self.table.died.notify_one();
        if !self.table.reaper_runs.load(Ordering::Relaxed) {
            return;
        }
        // The first of the two may have begun before the guard died.
        let settled = *rounds.borrow() + 2;
        let _ = timeout(SETTLE_TIMEOUT, rounds.wait_for(|count| *count >= settled)).await;
    }
}

impl Drop for GuardRegistration {
    fn drop(&mut self) {
        let mut live = self.table.live.lock();
        if live.by_pid.get(&self.pid) == Some(&self.entry) {
            live.by_pid.remove(&self.pid);
        }
    }
}

/// Kills and reaps the orphans of this process. One per process, which must start no children but
/// guards after [`OrphanReaper::adopt`].
#[derive(Debug)]
pub struct OrphanReaper {
    /// The children that this process had before it became the reaper.
    inherited: HashSet<Pid>,
}

impl OrphanReaper {
    /// Makes this process the subreaper of its descendants. Call it before the first program starts.
    pub fn adopt() -> io::Result<Self> {
        processes::become_subreaper()?;
        let inherited = processes::children().into_iter().collect();
        Ok(Self { inherited })
    }

    /// Ends the orphans of the guards in `guards` as they arrive. Never returns.
    pub(crate) async fn run(mut self, guards: Arc<GuardTable>) {
        for name in [
            metric::TOOL_GUARD_DEATHS_TOTAL,
            metric::TOOL_ORPHANS_KILLED_TOTAL,
        ] {
            metrics::counter!(name).increment(0);
        }
        guards.reaper_runs.store(true, Ordering::Relaxed);
        // Without the signal, rounds begin when a guard has died, and every second.
        let mut child_exits = signal(SignalKind::child()).ok();
        let mut burst = KillBurst::default();
        let mut pause = ROUND_PAUSE;
        loop {
            let table = Arc::clone(&guards);
            let round = tokio::task::spawn_blocking(move || {
                let killed = self.round(&table);
                (self, killed)
            });
            // The thread only breaks with the process.
            let Ok((reaper, killed)) = round.await else {
                return;
            };
            self = reaper;
            if !killed.is_empty() {
                pause = match burst.add(killed) {
                    true => ROUND_PAUSE,
                    false => (pause * 2).min(KILL_PAUSE_MAX),
                };
                sleep(pause).await;
                continue;
            }
            pause = ROUND_PAUSE;
            burst.end();
            guards.empty_rounds.send_modify(|count| *count += 1);
            sleep(ROUND_PAUSE).await;
            let child_exit = async {
                match &mut child_exits {
                    Some(exits) => exits.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = child_exit => {}
                () = guards.died.notified() => {}
                () = sleep(IDLE_PAUSE) => {}
            }
        }
    }

    /// Kills all orphans and reaps those that have died. Returns the processes that it killed.
    fn round(&mut self, guards: &GuardTable) -> Vec<Pid> {
        processes::end(|| self.orphans(guards))
    }

    /// The children of this process that are neither guards nor its own.
    fn orphans(&mut self, guards: &GuardTable) -> Vec<Pid> {
        let live = guards.live.lock();
        let children = processes::children();
        // An id that has been reaped may be used again by an orphan.
        self.inherited
            .retain(|pid| children.contains(pid) && processes::is_running(*pid));
        let is_orphan = |pid: &Pid| !live.by_pid.contains_key(pid) && !self.inherited.contains(pid);
        children.into_iter().filter(is_orphan).collect()
    }
}

/// The orphans killed in consecutive rounds, for one line in the log: a program that forks all the
/// time is killed in many rounds.
#[derive(Default)]
struct KillBurst {
    /// Those that are not in the log yet.
    count: u64,
    killed: HashSet<Pid>,
    last_round: Vec<Pid>,
    since: Option<Instant>,
}

impl KillBurst {
    /// The longest time without a line in the log.
    const LOG_INTERVAL: Duration = Duration::from_secs(10);

    /// Counts the processes of a round; true if they are others than in the last one.
    fn add(&mut self, mut round: Vec<Pid>) -> bool {
        round.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        let new = round.iter().filter(|pid| self.killed.insert(**pid)).count() as u64;
        metrics::counter!(metric::TOOL_ORPHANS_KILLED_TOTAL).increment(new);
        self.count += new;
        let are_others = round != self.last_round;
        self.last_round = round;
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= Self::LOG_INTERVAL {
            self.log();
            self.since = None;
            self.killed = self.last_round.iter().copied().collect();
        }
        are_others
    }

    fn end(&mut self) {
        self.log();
        *self = Self::default();
    }

    fn log(&mut self) {
        let count = std::mem::take(&mut self.count);
        if count > 0 {
            tracing::warn!(
                count,
                "processes of a program outlived its guard; the server killed them"
            );
        }
    }
}
