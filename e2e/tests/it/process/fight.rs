//! Programs that attack their guard, with the real binary. They have its rights, so they can stop
//! and kill it; they are ended nevertheless.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use turnwire_event::code::StopOutcome;
use turnwire_testkit::server::binary;
use turnwire_testkit::stubborn::{StubbornKind, StubbornPrograms};
use turnwire_tool::ProgramRunner;
use turnwire_tool::guard::frame::ProgramExit;

use crate::workshop::{GRACE, ONE_AT_A_TIME, Shop, WITHIN, owner, row};

//
#[tokio::test]
async fn program_cannot_hold_guard_pipe_open() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    let mut guarded = shop.programs(&programs, StubbornKind::Holder).await;
    guarded.stop();
    let done = guarded.finished().await;
    assert_eq!(programs.processes(), [0; 0]);
    assert_eq!((done.end.requested, done.end.killed), (true, true));
    assert_eq!(String::from_utf8_lossy(&done.output), "", "it opened none");
}

//
#[tokio::test]
async fn interactive_program_attacking_its_guard_is_ended() {
    for kind in [StubbornKind::Holder, StubbornKind::Stopper] {
        let (shop, programs) = (Shop::open(), StubbornPrograms::new());
        let spec = shop.spec(&programs.command(kind));
        let piped = shop.workshop.pipe(spec).await.expect("a guard");
        programs.until_ready(kind.processes()).await;
        let ended = piped.program.ended();
        drop(piped);
        assert_eq!(ended.await, StopOutcome::Killed, "{kind:?}");
        assert_eq!(programs.processes(), [0; 0], "{kind:?}");
    }
}

/// A guard that never comes to do anything again: the server does it, and the slot is free.
//
#[tokio::test]
async fn server_ends_what_a_guard_cannot() {
    let (mut shop, programs) = (Shop::open(), StubbornPrograms::new());
    shop.workshop = shop.workshop.with_call_limits(ONE_AT_A_TIME);
    let script = "case ${1-} in
        '') (setsid sh \"$0\" out </dev/null >/dev/null 2>&1 &)
            trap '' TERM; ready; while :; do kill -STOP $PPID; done;;
        out) trap '' TERM; ready; exec sleep 600;;
        esac";
    let guarded = shop.written(&programs, script).await;
    programs.until_ready(2).await;
    let (guard, ended) = (guarded.id(), guarded.ended());
    drop(guarded);
    assert_eq!(ended.await, StopOutcome::Killed);
    assert_eq!(programs.processes(), [0; 0]);
    assert_eq!(row(guard), None, "the guard is gone too");
    let next =
        tokio::time::timeout(WITHIN, shop.workshop.call(&owner(), shop.script("exit 0"))).await;
    let mut next = next.expect("there is room").expect("a guard");
    assert_eq!(next.finished().await.end.exit, ProgramExit::Code(0));
}

//
#[tokio::test]
async fn program_killing_its_guard_dies_with_its_session() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    // One child in the group of the program, and one in a group of its own.
    let script = "case ${1-} in
        '') sh \"$0\" near & sh \"$0\" far &
            while [ ! -e \"$out-near\" ] || [ ! -e \"$out-far\" ]; do sleep 0.02; done
            ready; kill -KILL $PPID; exec sleep 600;;
        near) trap '' TERM; ready; : > \"$out-near\"; exec sleep 600;;
        far) trap '' TERM; ready; exec python3 -c '
import os, sys, time
os.setpgid(0, 0)
open(sys.argv[1], \"w\").close()
time.sleep(600)' \"$out-far\";;
        esac";
    let mut guarded = shop.written(&programs, script).await;
    programs.until_ready(3).await;
    let done = guarded.finished().await;
    assert_eq!((done.end.requested, done.end.killed), (false, true));
    assert_eq!(done.end.exit, ProgramExit::GuardDied);
    programs.until_gone(WITHIN).await;
}

/// The program is done; a stop comes while what it left behind has its grace.
#[tokio::test]
async fn killed_program_is_not_reported_as_finished() {
    // Long enough for the stop to come in it, on a busy machine too.
    let (shop, programs) = (Shop::with_grace(WITHIN / 4), StubbornPrograms::new());
    let guarded = shop.programs(&programs, StubbornKind::Leaver).await;
    while programs.processes().len() > 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ended = guarded.ended();
    drop(guarded);
    assert_eq!(ended.await, StopOutcome::Killed);
    assert_eq!(programs.processes(), [0; 0]);
}

/// As a plain user, which a server should be: root may look into everything.
//
#[tokio::test]
async fn unprivileged_program_cannot_inspect_its_guard() {
    let shop = Shop::open();
    let mut guard: Vec<OsString> = vec![binary().into(), "__guard".into()];
    if rustix::process::geteuid().is_root() {
        let nobody = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        guard = nobody
            .map(OsString::from)
            .into_iter()
            .chain(guard)
            .collect();
    }
    let plain = ProgramRunner::new(shop.dir.path().join("work"), guard, GRACE);
    let script = "ls /proc/$PPID/fd; cat /proc/$PPID/environ; echo looked";
    let mut spec = shop.script(script);
    spec.dir = PathBuf::from("/");
    let done = plain
        .call(&owner(), spec)
        .await
        .expect("a guard")
        .finished()
        .await;
    assert_eq!(String::from_utf8_lossy(&done.output), "looked\n");
}
