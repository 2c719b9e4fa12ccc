//! Guards in unusual conditions: a server that does not read, ignored signals, very short
//! processes, a user with many other processes.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use turnwire_testkit::server::binary;
use turnwire_testkit::stubborn::{StubbornKind, StubbornPrograms};
use turnwire_tool::ProgramRunner;
use turnwire_tool::guard::frame::{GuardFrame, HEAD_BYTES, ProgramExit};
use turnwire_tool::guard::order::{GuardMode, GuardOrder, ProgramLimits};

use crate::workshop::{GRACE, Shop, WITHIN, owner};

/// What a guard writes to the server, as it is.
fn frames(mut bytes: &[u8]) -> Vec<GuardFrame> {
    let mut frames = Vec::new();
    while let Some(head) = bytes.first_chunk::<HEAD_BYTES>() {
        let [_, length @ ..] = *head;
        let (frame, tail) = bytes.split_at(HEAD_BYTES + u32::from_le_bytes(length) as usize);
        frames.push(GuardFrame::read(frame).expect("a frame"));
        bytes = tail;
    }
    frames
}

#[test]
fn output_is_complete_when_server_reads_late() {
    let dir = tempfile::tempdir().expect("a folder");
    // As much as the two pipes hold, so that it ends long before anybody reads.
    let script = "head -c 100000 /dev/zero; : > ended";
    let order = serde_json::to_vec(&GuardOrder {
        mode: GuardMode::Call,
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: [("PATH".to_owned(), std::env::var("PATH").expect("a path"))].into(),
        dir: dir.path().to_owned(),
        limits: ProgramLimits::default(),
        grace_ms: 500,
        input: None,
    });
    let mut guard = Command::new(binary())
        .arg("__guard")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a guard");
    let mut input = guard.stdin.take().expect("its input");
    input.write_all(&order.expect("a line")).expect("an order");
    input.write_all(b"\n").expect("an order");
    let until = Instant::now() + WITHIN;
    while !dir.path().join("ended").exists() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Longer than a guard waits for output that does not come.
    std::thread::sleep(Duration::from_secs(5));
    let mut outputs = Vec::new();
    let mut output = guard.stdout.take().expect("its output");
    output.read_to_end(&mut outputs).expect("frames");
    guard.wait().expect("it goes");
    let frames = frames(&outputs);
    let bytes = |frame: &GuardFrame| match frame {
        GuardFrame::Output(bytes) => bytes.len(),
        _ => 0,
    };
    assert_eq!(frames.iter().map(bytes).sum::<usize>(), 100_000);
    let Some(GuardFrame::End(end)) = frames.last() else {
        panic!("no end: {:?}", frames.last());
    };
    assert_eq!(
        (end.exit, end.requested, end.truncated),
        (ProgramExit::Code(0), false, false)
    );
}

//
#[tokio::test]
async fn guard_sees_exits_when_parent_ignores_sigchld() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    let script = "import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])";
    let guard = ["python3", "-c", script].map(OsString::from);
    let guard = [&guard[..], &[binary().into(), "__guard".into()]].concat();
    let deaf = ProgramRunner::new(shop.dir.path().join("work"), guard, GRACE);
    let mut guarded = deaf
        .call(&owner(), shop.script("exit 3"))
        .await
        .expect("a guard");
    assert_eq!(guarded.finished().await.end.exit, ProgramExit::Code(3));
    let spec = shop.spec(&programs.command(StubbornKind::Leaver));
    let done = deaf
        .call(&owner(), spec)
        .await
        .expect("a guard")
        .finished()
        .await;
    assert_eq!(
        (done.end.exit, done.end.descendants),
        (ProgramExit::Code(0), 1)
    );
    assert_eq!(programs.processes(), [0; 0]);
}

/// Each process of it lives for a moment only and ignores TERM: it starts the next one in a session
/// of its own.
const CHAIN: &str = "trap '' TERM; ready; exec python3 -c '
import os, time
until = time.monotonic() + 120
while time.monotonic() < until:
    if os.fork():
        os._exit(0)
    os.setsid()
'";

//
#[tokio::test]
async fn chain_of_reforking_processes_is_caught() {
    for asked in [false, true] {
        let (shop, programs) = (Shop::open(), StubbornPrograms::new());
        let mut guarded = shop.written(&programs, CHAIN).await;
        programs.until_ready(1).await;
        let since = Instant::now();
        if asked {
            guarded.stop();
        }
        let done = guarded.finished().await;
        assert!(done.end.killed, "{:?}", done.end);
        assert_eq!(programs.processes(), [0; 0]);
        assert!(since.elapsed() < 3 * WITHIN, "{:?}", since.elapsed());
    }
}

/// The system counts what all programs of the user have, and their threads: with its bound one
/// would fail for what others do.
#[tokio::test]
async fn other_processes_of_the_user_do_not_count() {
    let shop = Shop::open();
    let mut spec = shop.script("grep '^Max processes' /proc/self/limits");
    spec.limits.processes = Some(4);
    let mut guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
    let output = String::from_utf8(guarded.finished().await.output).expect("text");
    let own = std::fs::read_to_string("/proc/self/limits").expect("limits");
    let own = own.lines().find(|line| line.starts_with("Max processes"));
    assert_eq!(output.lines().next(), own);
}
