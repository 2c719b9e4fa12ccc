//! F14: programs under guards of the real binary: no process of a program is left when its end is
//! reported. Each test searches the process table at that moment.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use turnwire_event::code::StopOutcome;
use turnwire_testkit::stubborn::{StubbornKind, StubbornPrograms};
use turnwire_tool::guard::frame::ProgramExit;
use turnwire_tool::guard::order::ProgramLimits;

use crate::workshop::{GRACE, Shop, WITHIN, owner, row};

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("an id"), signal).expect("a signal");
}

// S3-074
#[tokio::test]
async fn program_ignoring_term_is_killed_after_grace() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    let guarded = shop.programs(&programs, StubbornKind::IgnoresTerm).await;
    let (ended, since) = (guarded.ended(), Instant::now());
    drop(guarded);
    assert_eq!(ended.await, StopOutcome::Killed);
    assert!(since.elapsed() >= GRACE, "{:?}", since.elapsed());
    assert_eq!(programs.processes(), [0; 0]);
}

// S3-074
#[tokio::test]
async fn program_heeding_term_is_not_killed() {
    let (shop, programs) = (Shop::with_grace(WITHIN), StubbornPrograms::new());
    let guarded = shop.programs(&programs, StubbornKind::Silent).await;
    let (ended, since) = (guarded.ended(), Instant::now());
    drop(guarded);
    assert_eq!(ended.await, StopOutcome::Stopped);
    assert!(since.elapsed() < WITHIN, "it did not wait for the grace");
    assert_eq!(programs.processes(), [0; 0]);
}

// S3-074
#[tokio::test]
async fn program_gets_one_term_and_may_clean_up() {
    let (shop, programs) = (Shop::with_grace(WITHIN), StubbornPrograms::new());
    // A second TERM would end it before its file is there.
    let script = "trap 'trap \"exit 9\" TERM; sleep 0.3; : > tidied; exit 0' TERM; ready
                  while :; do sleep 0.05; done";
    let mut guarded = shop.written(&programs, script).await;
    programs.until_ready(1).await;
    guarded.stop();
    let done = guarded.finished().await;
    assert_eq!(
        (done.end.exit, done.end.killed),
        (ProgramExit::Code(0), false)
    );
    let folder = shop.spec(&["true"]).dir;
    assert!(folder.join("tidied").exists());
}

//
// serial: programs that end on SIGTERM do so within their grace
#[tokio::test]
async fn no_process_is_left_when_the_end_is_reported() {
    for kind in StubbornKind::ALL {
        let (shop, programs) = (Shop::open(), StubbornPrograms::new());
        let guarded = shop.programs(&programs, kind).await;
        let (guard, ended) = (guarded.id(), guarded.ended());
        drop(guarded);
        let outcome = ended.await;
        assert_eq!(programs.processes(), [0; 0], "{kind:?}");
        assert_eq!(row(guard), None, "{kind:?}: the guard is gone too");
        // What was about to end by itself may have been faster.
        let expected: &[StopOutcome] = match kind {
            StubbornKind::Silent | StubbornKind::Endless => &[StopOutcome::Stopped],
            StubbornKind::Leaver => &[StopOutcome::Killed, StopOutcome::Finished],
            StubbornKind::IgnoresTerm
            | StubbornKind::Grandchild
            | StubbornKind::Escapee
            | StubbornKind::EndlessDeaf
            | StubbornKind::Headless
            | StubbornKind::Holder
            | StubbornKind::Stopper => &[StopOutcome::Killed],
        };
        assert!(expected.contains(&outcome), "{kind:?}: {outcome:?}");
    }
}

//
#[tokio::test]
async fn background_processes_end_with_their_program() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    let mut guarded = shop.programs(&programs, StubbornKind::Leaver).await;
    let done = guarded.finished().await;
    assert_eq!(programs.processes(), [0; 0]);
    assert_eq!(done.end.exit, ProgramExit::Code(0));
    assert_eq!(
        (done.end.requested, done.end.killed, done.end.descendants),
        (false, true, 1)
    );
    assert_eq!(done.output, b"left\n");
    assert_eq!(guarded.ended().await, StopOutcome::Finished);
}

//
#[tokio::test]
async fn endless_output_is_ended_and_truncated() {
    for kind in [StubbornKind::Endless, StubbornKind::EndlessDeaf] {
        let (shop, programs) = (Shop::open(), StubbornPrograms::new());
        let mut guarded = shop.programs(&programs, kind).await;
        let done = guarded.finished().await;
        assert!(done.output_too_large, "{kind:?}");
        assert_eq!(done.output.len(), 100_000);
        assert_eq!(programs.processes(), [0; 0]);
    }
}

#[tokio::test]
async fn program_gets_input_and_its_exit_code_is_reported() {
    let shop = Shop::open();
    let mut spec = shop.script("cat; echo secret >&2; exit 3");
    spec.input = Some("x".repeat(90_000));
    let mut guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
    let done = guarded.finished().await;
    assert_eq!(done.output, "x".repeat(90_000).as_bytes());
    assert_eq!(done.end.exit, ProgramExit::Code(3));
    assert_eq!(
        (
            done.end.requested,
            done.end.descendants,
            done.output_too_large
        ),
        (false, 0, false)
    );
}

#[tokio::test]
async fn program_not_reading_input_blocks_nobody() {
    let (shop, programs) = (Shop::open(), StubbornPrograms::new());
    // More than any pipe holds.
    let input = Some("x".repeat(1_000_000));
    let mut spec = shop.script("exit 0");
    spec.input = input.clone();
    let mut guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
    assert_eq!(guarded.finished().await.end.exit, ProgramExit::Code(0));
    let mut spec = shop.spec(&programs.command(StubbornKind::Silent));
    spec.input = input;
    let guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
    programs.until_ready(1).await;
    let ended = guarded.ended();
    drop(guarded);
    assert_eq!(ended.await, StopOutcome::Stopped);
    assert_eq!(programs.processes(), [0; 0]);
}

#[tokio::test]
async fn unstartable_program_is_reported_at_once() {
    let shop = Shop::open();
    let folder = shop.spec(&["true"]).dir;
    let plain = folder.join("plain");
    std::fs::write(&plain, "no program").expect("a file");
    let mut lost = shop.spec(&["true"]);
    lost.dir = folder.join("missing");
    let mut nul = shop.spec(&["true"]);
    nul.args.push("a\0b".to_owned());
    let mut large = shop.spec(&["true"]);
    large.args.push("x".repeat(1_000_000));
    let cases = [
        (shop.spec(&["no-such-program"]), ProgramExit::MissingProgram),
        (
            shop.spec(&["/no/such/program"]),
            ProgramExit::MissingProgram,
        ),
        (
            shop.spec(&[plain.to_str().expect("text")]),
            ProgramExit::Refused,
        ),
        (lost, ProgramExit::MissingFolder),
        (nul, ProgramExit::Refused),
        (large, ProgramExit::Refused),
        // Its own word for the same, which is not the guard's.
        (shop.script("exit 127"), ProgramExit::Code(127)),
    ];
    for (spec, expected) in cases {
        let debug_text = format!("{spec:?}");
        let mut guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
        assert_eq!(guarded.finished().await.end.exit, expected, "{debug_text}");
    }
}

//
#[tokio::test]
async fn server_environment_does_not_reach_a_program() {
    let shop = Shop::open();
    let mut spec = shop.script("env; pwd; cat /proc/$PPID/environ | tr '\\0' '\\n'");
    spec.env = vec![("TOKEN".to_owned(), "given".to_owned())];
    let folder = spec.dir.to_str().expect("text").to_owned();
    let mut guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
    let output = String::from_utf8(guarded.finished().await.output).expect("text");
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    let path = format!("PATH={}", std::env::var("PATH").expect("a path"));
    let mut expected = vec![
        folder.clone(),
        format!("HOME={folder}"),
        "LANG=C.UTF-8".to_owned(),
        path,
        // The shell's own.
        format!("PWD={folder}"),
        format!("TMPDIR={folder}"),
        "TOKEN=given".to_owned(),
    ];
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

//
#[tokio::test]
async fn resource_limits_apply() {
    let shop = Shop::open();
    let run = async |script: &str, limits: ProgramLimits| {
        let mut spec = shop.script(script);
        spec.limits = limits;
        let mut guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
        let done = guarded.finished().await;
        let output = String::from_utf8(done.output).expect("text");
        (done.end.exit, output.trim().to_owned())
    };
    let defaults = ProgramLimits::default();
    assert_eq!(
        run("ulimit -c", defaults).await,
        (ProgramExit::Code(0), "0".to_owned())
    );
    let files = ProgramLimits {
        files: Some(50),
        ..defaults
    };
    let expected = (ProgramExit::Code(0), "50".to_owned());
    assert_eq!(run("ulimit -n", files).await, expected);
    let memory = ProgramLimits {
        memory_bytes: Some(64 * 1_024 * 1_024),
        ..defaults
    };
    let (how, output) = run("x=x; while :; do x=$x$x; done; echo alive", memory).await;
    assert!(
        how != ProgramExit::Code(0) && output.is_empty(),
        "{how:?} {output}"
    );
    let file = ProgramLimits {
        file_bytes: Some(4_096),
        ..defaults
    };
    let script = "head -c 100000 /dev/zero > large; wc -c < large";
    assert_eq!(
        run(script, file).await,
        (ProgramExit::Code(0), "4096".to_owned())
    );
    let cpu = ProgramLimits {
        cpu_s: Some(1),
        ..defaults
    };
    let (how, _) = run("while :; do :; done", cpu).await;
    assert!(matches!(how, ProgramExit::Signal(_)), "{how:?}");
}

//
#[tokio::test]
async fn process_crowd_is_killed_at_once() {
    let (shop, programs) = (Shop::with_grace(WITHIN), StubbornPrograms::new());
    // No bomb, which would hit what else runs here.
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (trap '' TERM; setsid sleep 600) & done
                  ready; wait";
    let few = ProgramLimits {
        processes: Some(4),
        ..ProgramLimits::default()
    };
    let mut spec = shop.spec(&turnwire_testkit::stubborn::shell(
        &programs.write("crowd", script),
    ));
    spec.limits = few;
    let mut guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
    let done = guarded.finished().await;
    assert!(
        done.end.too_many_processes && done.end.killed,
        "{:?}",
        done.end
    );
    assert_eq!(programs.processes(), [0; 0]);
    // Within the bound nothing happens to it.
    let mut spec = shop.script("sleep 0.6 & sleep 0.6; wait; echo done");
    spec.limits = few;
    let mut guarded = shop.workshop.call(&owner(), spec).await.expect("a guard");
    let done = guarded.finished().await;
    assert_eq!(
        (done.end.exit, done.end.too_many_processes),
        (ProgramExit::Code(0), false)
    );
}

//
#[tokio::test]
async fn guard_told_to_exit_ends_its_program_first() {
    for kind in [StubbornKind::Silent, StubbornKind::Escapee] {
        for sent in [Signal::TERM, Signal::INT, Signal::HUP] {
            let (shop, programs) = (Shop::open(), StubbornPrograms::new());
            let mut guarded = shop.programs(&programs, kind).await;
            let session = row(guarded.id()).expect("a guard")[3].clone();
            assert_eq!(session, guarded.id().to_string(), "no terminal reaches it");
            signal(guarded.id(), sent);
            let done = guarded.finished().await;
            assert!(done.end.requested, "{kind:?} {sent:?}");
            assert_eq!(programs.processes(), [0; 0], "{kind:?} {sent:?}");
        }
    }
}

//
#[tokio::test]
async fn program_dies_with_its_guard() {
    for kind in [
        StubbornKind::Silent,
        StubbornKind::IgnoresTerm,
        StubbornKind::Grandchild,
    ] {
        let (shop, programs) = (Shop::open(), StubbornPrograms::new());
        let mut guarded = shop.programs(&programs, kind).await;
        // The program runs a moment before its guard says so; a guard that dies in between has
        // started nothing, as far as the server knows.
        tokio::time::sleep(Duration::from_millis(250)).await;
        signal(guarded.id(), Signal::KILL);
        let done = guarded.finished().await;
        assert!(done.end.killed, "{kind:?}");
        programs.until_gone(WITHIN).await;
    }
}

#[tokio::test]
async fn stopped_program_can_be_ended() {
    let (shop, programs) = (Shop::with_grace(WITHIN), StubbornPrograms::new());
    let guarded = shop.programs(&programs, StubbornKind::Silent).await;
    for pid in programs.processes() {
        signal(pid, Signal::STOP);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let ended = guarded.ended();
    drop(guarded);
    assert_eq!(ended.await, StopOutcome::Stopped);
}
