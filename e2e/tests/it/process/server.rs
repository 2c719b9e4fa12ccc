//! G7: the programs of a server end when the server exits or dies. The server here is a process
//! that only starts programs.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use turnwire_testkit::stubborn::{StubbornKind, StubbornPrograms, shell};

use crate::workshop::{WITHIN, at, owner, row, spec};

const DIR: &str = "TURNWIRE_TEST_DIR";
/// The file with the scripts to run. As an environment variable, it would give the server the mark
/// of the programs that it starts.
const SCRIPTS: &str = "scripts";

/// The time after the server's end in which a program may still run, as docs/tools.md documents:
/// five seconds of grace, one to wake, kill and reap.
const PROMISE: Duration = Duration::from_secs(6);
/// The time that a busy machine may add before a guard runs and before this test checks.
const SLACK: Duration = Duration::from_secs(3);

/// No test by itself: the process that the others kill. It runs every script that it is given,
/// half of them to talk with, tells that it does, and then waits for ever.
#[tokio::test]
#[ignore = "the server of the other tests"]
async fn server_with_programs_helper() {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a folder"));
    let scripts = std::fs::read_to_string(dir.join(SCRIPTS)).expect("scripts");
    let workshop = at(&dir, Duration::from_secs(5));
    let (mut calls, mut talks) = (Vec::new(), Vec::new());
    for script in scripts.lines() {
        let spec = spec(&workshop, &shell(script.as_ref()));
        calls.push(
            workshop
                .call(&owner(), spec.clone())
                .await
                .expect("a guard"),
        );
        talks.push(workshop.pipe(spec).await.expect("a guard"));
    }
    println!("running {} {}", calls.len(), talks.len());
    std::future::pending::<()>().await;
}

/// The process; a test that fails leaves it no more than one that does not.
struct GuardedServer(Child);

impl GuardedServer {
    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("it is dead");
    }
}

impl Drop for GuardedServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process with programs of these kinds, when all are set up.
async fn server(programs: &StubbornPrograms, dir: &Path, kinds: &[StubbornKind]) -> GuardedServer {
    let scripts: Vec<String> = kinds
        .iter()
        .map(|kind| programs.command(*kind)[1].clone())
        .collect();
    std::fs::write(dir.join(SCRIPTS), scripts.join("\n")).expect("a file");
    let mut child = Command::new(std::env::current_exe().expect("this file"))
        .args([
            "--ignored",
            "--exact",
            "process::server::server_with_programs_helper",
            "--nocapture",
        ])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let mut lines = output.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("running")), "it runs them");
    let count: usize = kinds.iter().map(|kind| kind.processes()).sum();
    let server = GuardedServer(child);
    programs.until_ready(2 * count).await;
    server
}

//
#[tokio::test]
async fn no_process_left_after_killed_server_and_grace() {
    let (programs, dir) = (
        StubbornPrograms::new(),
        tempfile::tempdir().expect("a folder"),
    );
    let kinds = [
        StubbornKind::Silent,
        StubbornKind::IgnoresTerm,
        StubbornKind::Grandchild,
        StubbornKind::Escapee,
        StubbornKind::Endless,
        StubbornKind::EndlessDeaf,
        StubbornKind::Headless,
        StubbornKind::Holder,
        StubbornKind::Stopper,
    ];
    let mut server = server(&programs, dir.path(), &kinds).await;
    server.kill();
    let took = programs.until_gone(WITHIN).await;
    println!("nothing is left after {took:?}");
    // Counted from the moment at which the server is dead and reaped.
    assert!(took <= PROMISE + SLACK, "{took:?}");
}

// serial: programs end within 5 s, without waiting for the grace
//
#[tokio::test]
async fn programs_heeding_term_end_at_once_after_server_kill() {
    let (programs, dir) = (
        StubbornPrograms::new(),
        tempfile::tempdir().expect("a folder"),
    );
    let mut server = server(&programs, dir.path(), &[StubbornKind::Silent]).await;
    server.kill();
    // One of the two is talked with, and has a moment to go by itself.
    let took = programs.until_gone(WITHIN).await;
    println!("nothing is left after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

//
#[tokio::test]
async fn program_dies_with_its_guard_without_a_server() {
    let (programs, dir) = (
        StubbornPrograms::new(),
        tempfile::tempdir().expect("a folder"),
    );
    // Not what a program has started: nothing binds that to the guard.
    let kinds = [
        StubbornKind::Silent,
        StubbornKind::IgnoresTerm,
        StubbornKind::EndlessDeaf,
    ];
    let mut server = server(&programs, dir.path(), &kinds).await;
    signal(server.0.id(), Signal::STOP);
    let guards = children(server.0.id());
    assert_eq!(guards.len(), 2 * kinds.len());
    for guard in guards {
        signal(guard, Signal::KILL);
    }
    programs.until_gone(WITHIN).await;
    server.kill();
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("an id"), signal).expect("a signal");
}

/// The processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    let table = std::fs::read_dir("/proc").expect("a table").flatten();
    let ids = table.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|pid| row(*pid).is_some_and(|row| row[1] == parent))
        .collect()
}
