//! Programs of a real server that kill their guard: everything that they started is ended, counted
//! and logged.

use std::time::Duration;

use turnwire_testkit::stubborn::StubbornPrograms;

use crate::shell_server::ShellServer;
use crate::workshop::{WITHIN, row};

/// How a program tries to leave a process behind. `$out` exists when that process is set up.
const ATTACKS: [(&str, &str); 4] = [
    (
        "a child in its own session",
        "case ${1-} in
        '') setsid sh \"$0\" out </dev/null >/dev/null 2>&1 &
            while [ ! -e \"$out\" ]; do sleep 0.02; done; kill -9 $PPID; sleep 600;;
        out) trap '' TERM HUP; ready; : > \"$out\"; exec sleep 600;;
        esac",
    ),
    (
        "a session within a session",
        "case ${1-} in
        '') setsid sh \"$0\" middle </dev/null >/dev/null 2>&1 &
            while [ ! -e \"$out\" ]; do sleep 0.02; done; kill -9 $PPID; sleep 600;;
        middle) setsid sh \"$0\" out & ;;
        out) trap '' TERM HUP; ready; : > \"$out\"; exec sleep 600;;
        esac",
    ),
    (
        "a tree with a reaper of its own, in three sessions",
        "case ${1-} in
        '') setsid sh \"$0\" top </dev/null >/dev/null 2>&1 &
            while [ ! -e \"$out\" ]; do sleep 0.02; done; kill -9 $PPID; sleep 600;;
        top) exec python3 -c '
import ctypes, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.run([\"setsid\", \"sh\", sys.argv[1], \"middle\"])
time.sleep(600)' \"$0\";;
        middle) setsid sh \"$0\" out & ;;
        out) trap '' TERM HUP; ready; : > \"$out\"; exec sleep 600;;
        esac",
    ),
    (
        "a process that forks all the time",
        "case ${1-} in
        '') setsid sh \"$0\" out </dev/null >/dev/null 2>&1 &
            while [ ! -e \"$out\" ]; do sleep 0.02; done; kill -9 $PPID; sleep 600;;
        out) trap '' TERM HUP; ready; exec python3 -c '
import os, sys, time
end = time.monotonic() + 600
open(sys.argv[1], \"w\").close()
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()' \"$out\";;
        esac",
    ),
];

// R-17, D-83
#[tokio::test]
async fn processes_of_a_killed_guard_are_ended_and_counted() {
    let server = ShellServer::start(|options| options).await;
    let mut turns = Vec::new();
    for (n, (attack, script)) in (1..).zip(ATTACKS) {
        let programs = StubbornPrograms::new();
        let path = programs.write("attack", script);
        let command = format!("exec sh {}", path.display());
        let turn = server.submit(&server.api, &command).await;
        programs.until_ready(1).await;
        let took = programs.until_gone(WITHIN).await;
        turns.push(turn);
        println!("{attack}: nothing is left after {took:?}");
        let answer = server.answer(&server.api, turn).await;
        assert!(
            answer.contains("The guard of the program died"),
            "{attack}: {answer}"
        );
        assert_eq!(server.metric("turnwire_tool_guard_deaths_total").await, n);
    }
    // A process that is killed together with its guard arrives dead, and is not counted.
    assert!(server.metric("turnwire_tool_orphans_killed_total").await > 0);
    for turn in turns {
        let session = turn.session.to_string();
        // No request has a trace.
        let trace_id = format!("trace_id=\"{}\"", turn.turn.trace_id());
        let turn = turn.turn.to_string();
        let parts = ["guard of a program died", &session, &turn, &trace_id];
        server.until_line(&parts).await;
    }
    server.until_logged("outlived its guard").await;
    // Not even a dead process is left that nobody has waited for.
    until_childless(server.server.pid()).await;
    assert_eq!(server.run("echo still here").await, "still here");
    let deaths = server.metric("turnwire_tool_guard_deaths_total").await;
    assert_eq!(deaths, ATTACKS.len() as u64);
}

/// Waits until the process has no child, running or dead.
async fn until_childless(parent: u32) {
    let is_child = |pid: &u32| row(*pid).is_some_and(|row| row[1] == parent.to_string());
    for _ in 0..400 {
        let table = std::fs::read_dir("/proc").expect("a table").flatten();
        let ids = table.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let children: Vec<u32> = ids.filter(is_child).collect();
        if children.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server has children");
}
