//! Runs tests, each in a process of its own: a test that hangs or aborts is known by its
//! name, and the tests of all binaries share one pool.
//!
//! Most tests wait for sockets and clocks more than they compute, so more of them run at once than
//! there are cores. Those of the serial group run afterwards, one at a time.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::case::Case;
use super::process::kill_tree;
use crate::step::{cargo, clock};

/// Deadline of a test: ten times the longest. Then it is killed and has failed.
const DEADLINE: Duration = Duration::from_secs(900);
/// Poll interval of a running test.
const POLL: Duration = Duration::from_millis(3);
/// How often progress is printed.
const PROGRESS: Duration = Duration::from_secs(15);

/// The result of one test.
#[derive(Debug)]
pub struct Outcome {
    pub label: String,
    /// The run time of the test.
    pub took: Duration,
    /// The output, if the test failed.
    pub failure: Option<String>,
}

/// Runs every case, `jobs` at once; failures are printed as they happen.
pub fn run(cases: &[Case], server: &Path, jobs: usize) -> Vec<Outcome> {
    let (serial, shared): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| case.serial);
    let pool = Pool {
        server,
        total: cases.len(),
        outcomes: Mutex::default(),
        progress: Mutex::new(Instant::now()),
    };
    pool.run(&shared, jobs);
    pool.run(&serial, 1);
    pool.outcomes.into_inner().unwrap_or_default()
}

struct Pool<'a> {
    server: &'a Path,
    total: usize,
    outcomes: Mutex<Vec<Outcome>>,
    progress: Mutex<Instant>,
}

impl Pool<'_> {
    fn run(&self, cases: &[&Case], jobs: usize) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(cases.len()) {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.record(run_case(case, self.server));
                    }
                });
            }
        });
    }

    fn record(&self, outcome: Outcome) {
        if let Some(output) = &outcome.failure {
            eprintln!("\n--- FAILED {} ({})", outcome.label, clock(outcome.took));
            eprintln!("{}\n---", output.trim_end());
        }
        let (done, failed) = {
            let mut outcomes = self.outcomes.lock().expect("no test thread panics");
            outcomes.push(outcome);
            let failed = outcomes
                .iter()
                .filter(|run_case| run_case.failure.is_some())
                .count();
            (outcomes.len(), failed)
        };
        let mut last = self.progress.lock().expect("no test thread panics");
        if last.elapsed() >= PROGRESS {
            *last = Instant::now();
            eprintln!("xtask: tests: {done} of {}, {failed} failed", self.total);
        }
    }
}

/// Runs one test in a process.
fn run_case(case: &Case, server: &Path) -> Outcome {
    let started = Instant::now();
    let failure = match attempt(case, server) {
        Ok(None) => None,
        Ok(Some(output)) => Some(output),
        Err(error) => Some(format!("the test could not be run: {error:#}")),
    };
    Outcome {
        label: case.label(),
        took: started.elapsed(),
        failure,
    }
}

/// The output of the test if it failed.
fn attempt(case: &Case, server: &Path) -> Result<Option<String>> {
    // A file instead of a pipe: a process that outlives its test would keep a pipe open.
    let mut output = unnamed_file()?;
    let mut child = Command::new(&case.binary.path)
        .args(["--exact", &case.name, "--test-threads=1"])
        .current_dir(&case.binary.dir)
        .env("CARGO", cargo())
        .env("TURNWIRE_BIN", server)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .spawn()
        .with_context(|| format!("starting {}", case.binary.path.display()))?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if started.elapsed() > DEADLINE {
            kill_tree(child.id());
            child.wait()?;
            break None;
        }
        std::thread::sleep(POLL);
    };
    let mut bytes = Vec::new();
    output.seek(SeekFrom::Start(0))?;
    output.read_to_end(&mut bytes)?;
    Ok(failure_message(status, &String::from_utf8_lossy(&bytes)))
}

/// The failure message of a test, or `None` if it passed. A process that ran no test has failed.
fn failure_message(status: Option<ExitStatus>, output: &str) -> Option<String> {
    let Some(status) = status else {
        let limit = clock(DEADLINE);
        return Some(format!("{output}\nstopped: it ran for more than {limit}"));
    };
    let passed = status.success() && output.contains("test result: ok. 1 passed");
    (!passed).then(|| format!("{output}\nthe test's process ended with {status}"))
}

/// A file without a name, which is deleted when it is closed.
fn unnamed_file() -> Result<File> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("xtask-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .with_context(|| format!("making {}", path.display()))?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    const ONE: &str = "running 1 test\ntest result: ok. 1 passed; 0 failed";

    #[test]
    fn process_without_a_run_test_has_failed() {
        let ended = |code: i32| Some(ExitStatus::from_raw(code << 8));
        assert_eq!(failure_message(ended(0), ONE), None);
        assert!(failure_message(ended(101), ONE).is_some());
        let no_tests = "running 0 tests\ntest result: ok. 0 passed; 0 failed";
        assert!(failure_message(ended(0), no_tests).is_some());
        let late = failure_message(None, "so far").expect("failed");
        assert_eq!(late, "so far\nstopped: it ran for more than 15 min 00 s");
    }
}
