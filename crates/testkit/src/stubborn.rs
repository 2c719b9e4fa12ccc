//! Programs that resist termination, as shell scripts, and a search of the process table for their
//! processes.
//!
//! Every process of such a program has a unique mark in its environment and mostly on its command
//! line too, so that it is found after it left its process group, its session or
//! its parent. No process lives longer than ten minutes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const POLL: Duration = Duration::from_millis(20);

/// How a program resists termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StubbornKind {
    /// Sleeps without output; ends on TERM.
    Silent,
    /// Ignores TERM, as do its children.
    IgnoresTerm,
    /// Has a child and a grandchild that ignore TERM; the program itself ends on TERM.
    Grandchild,
    /// Has a descendant in a session of its own, without a parent and without open files, that
    /// ignores TERM.
    Escapee,
    /// The same, and then ends by itself with code 0.
    Leaver,
    Endless,
    /// Writes endlessly, even to a closed pipe, and ignores TERM.
    EndlessDeaf,
    /// Has a descendant in a session of its own whose first thread has ended while another
    /// runs, so that the process table shows it as dead; it ignores TERM.
    Headless,
    /// Opens the guard's file descriptors as far as permitted, prints which pipes it could open by
    /// name, and ignores TERM.
    Holder,
    /// Sends STOP to its guard once, and ignores TERM.
    Stopper,
}

impl StubbornKind {
    /// All kinds, for tests over each.
    pub const ALL: [Self; 10] = [
        Self::Silent,
        Self::IgnoresTerm,
        Self::Grandchild,
        Self::Escapee,
        Self::Leaver,
        Self::Endless,
        Self::EndlessDeaf,
        Self::Headless,
        Self::Holder,
        Self::Stopper,
    ];

    /// The start of the program's file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::IgnoresTerm => "ignores-term",
            Self::Grandchild => "grandchild",
            Self::Escapee => "escapee",
            Self::Leaver => "leaver",
            Self::Endless => "endless",
            Self::EndlessDeaf => "endless-deaf",
            Self::Headless => "headless",
            Self::Holder => "holder",
            Self::Stopper => "stopper",
        }
    }

    /// The number of lasting processes when the program is ready.
    pub fn processes(self) -> usize {
        match self {
            Self::Silent | Self::IgnoresTerm | Self::Endless | Self::EndlessDeaf => 1,
            Self::Leaver | Self::Holder | Self::Stopper => 1,
            Self::Escapee | Self::Headless => 2,
            Self::Grandchild => 3,
        }
    }

    /// `ready` marks one process as set up; `$0` is the script, which carries the mark.
    fn script(self) -> &'static str {
        match self {
            Self::Silent => "ready; exec sleep 600",
            Self::IgnoresTerm => "trap '' TERM; ready; exec sleep 600",
            Self::Grandchild => {
                "case ${1-} in
                '') sh \"$0\" child & trap 'exit 0' TERM; ready; wait;;
                child) trap '' TERM; sh \"$0\" last & ready; wait;;
                last) trap '' TERM; ready; exec sleep 600;;
                esac"
            }
            Self::Escapee => {
                "case ${1-} in
                '') (setsid sh \"$0\" out </dev/null >/dev/null 2>&1 &); ready; exec sleep 600;;
                out) trap '' TERM; ready; exec sleep 600;;
                esac"
            }
            Self::Leaver => {
                "case ${1-} in
                '') (setsid sh \"$0\" out </dev/null >/dev/null 2>&1 &)
                    while [ ! -e \"$out\" ]; do sleep 0.02; done; echo left;;
                out) trap '' TERM; ready; : > \"$out\"; exec sleep 600;;
                esac"
            }
            Self::Endless => "ready; exec yes \"$MARK\"",
            Self::EndlessDeaf => {
                "trap '' TERM PIPE; ready; while :; do echo \"$MARK\"; done 2>/dev/null"
            }
            Self::Headless => {
                "case ${1-} in
                '') (setsid sh \"$0\" out </dev/null >/dev/null 2>&1 &); ready; exec sleep 600;;
                out) trap '' TERM; exec python3 -c '
import ctypes, os, sys, threading, time
def rest():
    while \") Z \" not in open(\"/proc/self/stat\").read():
        time.sleep(0.01)
    open(os.path.dirname(sys.argv[1]) + \"/\" + str(os.getpid()), \"w\").close()
    time.sleep(600)
threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)
' \"$out\";;
                esac"
            }
            // The numbers are those of pidfd_open and pidfd_getfd.
            Self::Holder => {
                "trap '' TERM; exec python3 -c '
import ctypes, os, stat, sys, time
system = ctypes.CDLL(None).syscall
guard, held = os.getppid(), []
handle = system(434, guard, 0)
for stream in range(3):
    try:
        held.append(os.open(f\"/proc/{guard}/fd/{stream}\", os.O_WRONLY))
        if stat.S_ISFIFO(os.fstat(held[-1]).st_mode):
            print(stream, flush=True)
    except OSError:
        pass
    system(438, handle, stream, 0)
open(os.path.dirname(sys.argv[1]) + \"/\" + str(os.getpid()), \"w\").close()
time.sleep(600)
' \"$out\""
            }
            Self::Stopper => {
                "trap '' TERM
                grep -qa __guard /proc/$PPID/cmdline && kill -STOP $PPID
                ready; exec sleep 600"
            }
        }
    }
}

/// A folder with one program of every [`StubbornKind`], all with one mark.
#[derive(Debug)]
pub struct StubbornPrograms {
    dir: TempDir,
    mark: String,
}

impl StubbornPrograms {
    /// Writes all programs. Dropping the value removes the files and kills their processes.
    pub fn new() -> Self {
        let mut chance = [0; 8];
        getrandom::fill(&mut chance).expect("random bytes");
        let mark = format!("nasty-{:016x}", u64::from_le_bytes(chance));
        let dir = tempfile::tempdir().expect("a folder for programs");
        let programs = Self { dir, mark };
        for kind in StubbornKind::ALL {
            programs.write(kind.name(), kind.script());
        }
        programs
    }

    /// The mark of all processes.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// The file of a program.
    pub fn program(&self, kind: StubbornKind) -> PathBuf {
        self.file(kind.name())
    }

    /// The command that runs a program, through `sh`: executing a file that was just written fails
    /// while a process forked meanwhile still has it open for writing.
    pub fn command(&self, kind: StubbornKind) -> [String; 2] {
        shell(&self.program(kind))
    }

    /// Writes another program with the same mark: a shell script that calls `ready` when it is
    /// set up.
    pub fn write(&self, name: &str, script: &str) -> PathBuf {
        let path = self.file(name);
        let ready = self.dir.path().join("ready");
        fs::create_dir_all(&ready).expect("a folder for signs");
        let text = format!(
            "#!/bin/sh\nMARK={mark}; export MARK\nready() {{ : > \"{ready}/$$\"; }}\nout={ready}/out\n{script}\n",
            mark = self.mark,
            ready = ready.display(),
        );
        fs::write(&path, text).expect("a program is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it may be run");
        path
    }

    /// The number of processes that called `ready`.
    pub fn ready(&self) -> usize {
        let signs = fs::read_dir(self.dir.path().join("ready")).expect("a folder of signs");
        let pid = |name: &str| name.parse::<u32>().is_ok();
        let names = signs.flatten().map(|sign| sign.file_name());
        names.filter(|name| name.to_str().is_some_and(pid)).count()
    }

    /// Waits until `count` processes are ready.
    ///
    /// # Panics
    /// If they are not within half a minute.
    pub async fn until_ready(&self, count: usize) {
        let until = Instant::now() + Duration::from_secs(30);
        while self.ready() < count {
            assert!(
                Instant::now() < until,
                "{} of {count} are set up",
                self.ready()
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// The ids of all running processes with the mark.
    pub fn processes(&self) -> Vec<u32> {
        processes(&self.mark)
    }

    /// Waits until no process is left, and returns how long that took.
    ///
    /// # Panics
    /// If some are left after `within`.
    pub async fn until_gone(&self, within: Duration) -> Duration {
        let since = Instant::now();
        loop {
            let remaining = self.processes();
            if remaining.is_empty() {
                return since.elapsed();
            }
            assert!(since.elapsed() < within, "left: {}", describe(&remaining));
            tokio::time::sleep(POLL).await;
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}-{}", self.mark))
    }
}

impl Default for StubbornPrograms {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for StubbornPrograms {
    /// Kills the processes that a failed test left, by their ids.
    fn drop(&mut self) {
        for pid in self.processes() {
            let pid = i32::try_from(pid)
                .ok()
                .and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// The command that runs a script with `sh`.
pub fn shell(script: &Path) -> [String; 2] {
    let script = script.to_str().expect("a path in plain letters");
    ["/bin/sh".to_owned(), script.to_owned()]
}

/// The processes with `mark` on their command line or in their environment, except this one.
/// A zombie has neither, and an ended thread has neither, so all threads of a process are
/// searched.
pub fn processes(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    let table = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = table.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|pid| *pid != own && has_mark_in_threads(*pid, mark))
        .collect()
}

fn has_mark_in_threads(pid: u32, mark: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let has_mark = |bytes: &[u8]| {
        bytes
            .windows(mark.len())
            .any(|part| part == mark.as_bytes())
    };
    let marked = |thread: &Path| {
        let of = |file: &&str| fs::read(thread.join(file)).is_ok_and(|bytes| has_mark(&bytes));
        ["cmdline", "environ"].iter().any(of)
    };
    threads
        .map(|thread| thread.path())
        .any(|path| marked(&path))
}

fn describe(pids: &[u32]) -> String {
    let line = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!(
            "{pid} {}",
            String::from_utf8_lossy(&line).replace('\0', " ")
        )
    };
    pids.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
