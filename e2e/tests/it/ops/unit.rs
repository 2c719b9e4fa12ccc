//! The systemd unit: valid, hardened, and open to every system call that the server and the guards of
//! programs make.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use turnwire_testkit::environment;
use turnwire_testkit::server::{ServerOptions, binary};

use crate::shell_server::ShellServer;

fn unit() -> String {
    let path = environment::root().join("ops/systemd/turnwire.service");
    fs::read_to_string(path).expect("the unit")
}

fn analyze(arguments: &[&str], file: Option<&Path>) -> (bool, String) {
    let mut command = Command::new("systemd-analyze");
    let ran = command.args(arguments).args(file).output();
    let ran = ran.expect("systemd-analyze");
    (ran.status.success(), environment::text(&ran))
}

/// The highest exposure that is accepted; 10 is a unit without any hardening.
const EXPOSURE_MAX: f64 = 2.0;

#[test]
fn unit_is_valid_and_hardened() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("turnwire.service");
    let text = unit();
    let shipped = "ExecStart=/usr/bin/turnwire ";
    assert!(text.contains(shipped), "{text}");
    let start = format!("ExecStart={} ", binary().display());
    fs::write(&file, text.replace(shipped, &start)).expect("written");
    let (ok, said) = analyze(&["verify"], Some(&file));
    assert!(ok, "{said}");
    assert!(!said.contains("turnwire.service"), "a warning: {said}");
    let arguments = ["security", "--offline=true", "--no-pager"];
    let (ok, said) = analyze(&arguments, Some(&file));
    assert!(ok, "{said}");
    let (_, level) = said.split_once("for turnwire.service: ").expect("a level");
    let level: f64 = level
        .split(' ')
        .next()
        .and_then(|level| level.parse().ok())
        .expect("a number");
    assert!(level <= EXPOSURE_MAX, "exposure {level}");
}

/// The system calls of a set, with the sets in it.
fn calls_of(set: &str, calls: &mut BTreeSet<String>) {
    let (ok, said) = analyze(&["syscall-filter", "--no-pager", set], None);
    assert!(ok, "{said}");
    for line in said.lines().filter(|line| line.starts_with("    ")) {
        match line.trim() {
            inner if inner.starts_with('@') => calls_of(inner, calls),
            call if call.starts_with('#') => {}
            call => {
                calls.insert(call.to_owned());
            }
        }
    }
}

/// The names of the system calls in the output of `strace -f`.
fn calls_in(trace: &str) -> BTreeSet<String> {
    let lines = trace
        .lines()
        .filter_map(|line| Some(line.split_once(' ')?.1.trim_start()));
    let names = lines.filter_map(|line| {
        let name = line.strip_prefix("<... ").unwrap_or(line);
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = name.find(|letter| !is_name(letter))?;
        (end > 0).then(|| name[..end].to_owned())
    });
    names.filter(|name| name != "exit").collect()
}

/// What the unit says after `key=`.
fn setting(unit: &str, key: &str) -> String {
    let mut lines = unit.lines();
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("no {key}")).to_owned()
}

#[tokio::test]
async fn unit_admits_every_system_call_of_server_and_guards() {
    let mut admitted = BTreeSet::new();
    let filter = setting(&unit(), "SystemCallFilter");
    for set in filter.split(' ') {
        calls_of(set, &mut admitted);
    }
    assert!(admitted.len() > 200, "{filter} has {}", admitted.len());

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let strace = [
        "-f",
        "-qq",
        "--trace=all",
        "-o",
        file.to_str().expect("a path"),
    ];
    let mut server = ShellServer::start(|options| ServerOptions {
        strace: Some(strace.iter().map(|text| (*text).to_owned()).collect()),
        ..options
    })
    .await;
    // A program of two stages, and a process that leaves its group and is ended with the program.
    let command = "python3 -c 'print(6 * 7)'; setsid sleep 60 >/dev/null 2>&1 &";
    let answer = server.run(command).await;
    assert!(answer.contains("42"), "{answer}");
    server.server.sigterm();
    let status = server.server.wait(Duration::from_secs(60)).await;
    assert!(status.success(), "{status}");

    let trace = fs::read_to_string(&file).expect("a trace");
    let made = calls_in(&trace);
    for expected in ["fdatasync", "pidfd_open", "prctl", "execve"] {
        assert!(made.contains(expected), "no {expected}: {made:?}");
    }
    let refused: Vec<_> = made.difference(&admitted).collect();
    assert!(refused.is_empty(), "the unit refuses {refused:?}");
}
