//! The runner with programs in place of guards; guards of the real binary are tested in `e2e`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use turnwire_event::{SessionId, TenantId, Ulid};

use super::*;
use crate::program::guard::frame::{ProgramEnded, ProgramExit};
use crate::tests::support::LogCapture;
use turnwire_event::code::StopOutcome;

/// A runner whose guard is any program.
fn runner(guard: &[&str]) -> (ProgramRunner, PathBuf) {
    let mut unique = std::process::id().to_string();
    unique.push_str(&format!("{:?}", std::thread::current().id()));
    let plain: String = unique.chars().filter(char::is_ascii_alphanumeric).collect();
    let dir = std::env::temp_dir().join(format!("turnwire-runner-{plain}"));
    let guard = guard.iter().map(OsString::from).collect();
    let runner = ProgramRunner::new(dir.clone(), guard, Duration::from_millis(200));
    (runner, dir)
}

fn owner() -> Owner {
    Owner {
        tenant: TenantId(0),
        principal: "user-42".parse().expect("a principal"),
    }
}

fn one_at_a_time() -> FairLimits {
    FairLimits {
        total: 1,
        per_owner: 1,
        waiting: 10,
        waiting_per_owner: 10,
    }
}

fn spec() -> ProgramSpec {
    ProgramSpec {
        program: "true".to_owned(),
        args: Vec::new(),
        env: vec![("KEY".to_owned(), "secret".to_owned())],
        dir: PathBuf::from("/"),
        limits: guard::order::ProgramLimits::default(),
        input: Some("secret".to_owned()),
        output_bytes_max: 100,
    }
}

#[test]
fn session_folder_is_private_and_removable() {
    let (runner, dir) = runner(&[]);
    let session = SessionId(Ulid(7));
    let folder = runner.folders.session(session).expect("a folder");
    assert_eq!(folder, dir.join(session.to_string()));
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
    };
    assert_eq!(mode(&folder) & 0o777, 0o700);
    fs::write(folder.join("note"), "x").expect("a file");
    assert_eq!(runner.folders.session(session).expect("the same"), folder);
    assert!(folder.join("note").exists());
    let shared = runner.folders.shared("files").expect("a folder");
    assert_eq!(shared, dir.join("shared-files"));
    let folders = &runner.folders;
    assert_eq!(folders.sessions().collect::<Vec<_>>(), [session]);
    folders.remove(session).expect("removed");
    assert!(!folder.exists() && shared.exists());
    folders.remove(session).expect("removed twice");
    for bad in ["", "..", "a/b", "a b"] {
        assert!(runner.folders.shared(bad).is_err(), "{bad:?}");
    }
    fs::remove_dir_all(dir).expect("cleaned");
}

#[test]
fn program_is_found_by_name_or_absolute_path() {
    let (runner, _) = runner(&[]);
    let sh = runner.find("sh").expect("a shell");
    assert!(sh.is_absolute() && sh.ends_with("sh"));
    assert_eq!(runner.find(sh.to_str().expect("text")), Some(sh));
    for bad in [
        "no-such-program-here",
        "/no/such",
        "./sh",
        "bin/sh",
        "/",
        "",
    ] {
        assert_eq!(runner.find(bad), None, "{bad:?}");
    }
}

#[test]
fn debug_of_a_spec_has_no_secrets() {
    let message = format!("{:?}", spec());
    assert!(
        message.contains("true") && !message.contains("secret"),
        "{message}"
    );
}

#[tokio::test]
async fn missing_guard_is_a_start_error() {
    for guard in [&["/no/such/guard"][..], &[]] {
        let (runner, _) = runner(guard);
        let error = runner.call(&owner(), spec()).await.expect_err("no guard");
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }
}

#[tokio::test]
async fn guard_that_dies_or_sends_garbage_ends_the_program() {
    // The head of the last one declares more bytes than a frame may have.
    let scripts = [
        "exit 1",
        "echo nonsense; read order",
        "read order; exit 0",
        "printf '\\001\\001\\000\\001\\000'; read order",
    ];
    for script in scripts {
        let (runner, _) = runner(&["/bin/sh", "-c", script]);
        let mut program = runner.call(&owner(), spec()).await.expect("a process");
        let finished = program.finished().await;
        assert_eq!(
            finished.end,
            ProgramEnded::unstarted(ProgramExit::Refused),
            "{script}"
        );
        assert_eq!(program.ended().await, StopOutcome::Finished);
    }
}

/// A guard that handles no signal yet when the stop comes, as the real one for some milliseconds:
/// it exits by itself when its input ends.
#[tokio::test]
async fn stop_right_after_the_start_kills_no_guard() {
    let capture = LogCapture::start();
    let (runner, _) = runner(&["/bin/sh", "-c", "sleep 0.05; read -r order; exit 2"]);
    for n in 0..20 {
        let mut program = match n % 2 {
            0 => runner.call(&owner(), spec()).await.expect("a process"),
            _ => runner.pipe(spec()).await.expect("a process").program,
        };
        program.stop();
        let finished = program.finished().await;
        let expected = ProgramEnded {
            requested: true,
            ..ProgramEnded::default()
        };
        assert_eq!(finished.end, expected);
        assert_eq!(program.ended().await, StopOutcome::Stopped);
    }
    assert_eq!(capture.metrics("turnwire_tool_guard_deaths"), [""; 0]);
    assert!(!capture.log().contains("died"), "{}", capture.log());
}

#[tokio::test]
async fn piped_programs_do_not_use_the_slots_of_calls() {
    let (runner, _) = runner(&["/bin/sh", "-c", "read order; read end"]);
    let runner = runner.with_call_limits(one_at_a_time());
    let piped = runner.pipe(spec()).await.expect("a process");
    let called = tokio::time::timeout(Duration::from_secs(20), runner.call(&owner(), spec())).await;
    let called = called.expect("there is room").expect("a process");
    // One more of each waits until there is room.
    let next =
        tokio::time::timeout(Duration::from_millis(100), runner.call(&owner(), spec())).await;
    assert!(next.is_err());
    drop(called);
    let next = tokio::time::timeout(Duration::from_secs(20), runner.call(&owner(), spec())).await;
    next.expect("there is room").expect("a process");
    drop(piped);
}

#[tokio::test]
async fn hanging_guard_is_killed_and_its_slot_released() {
    let script = "trap '' TERM; (trap '' TERM; exec sleep 600) & echo $! > \"$0\"; exec sleep 600";
    let (_, dir) = runner(&[]);
    fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("descendant");
    let path = file.to_str().expect("plain letters");
    let (runner, _) = runner(&["/bin/sh", "-c", script, path]);
    let runner = runner.with_call_limits(one_at_a_time());
    let program = runner.call(&owner(), spec()).await.expect("a process");
    let descendant = loop {
        match fs::read_to_string(&file) {
            Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let ended = program.ended();
    drop(program);
    assert_eq!(ended.await, StopOutcome::Killed);
    if cfg!(target_os = "linux") {
        let state = fs::read_to_string(format!("/proc/{descendant}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
    let next = tokio::time::timeout(Duration::from_secs(20), runner.call(&owner(), spec())).await;
    drop(next.expect("there is room").expect("a process"));
    fs::remove_dir_all(dir).expect("cleaned");
}

/// As if the program had forged the frame: the guard runs, and so may its descendants.
#[tokio::test]
async fn guard_that_stays_after_its_end_frame_is_killed() {
    let end =
        guard::frame::GuardFrame::End(ProgramEnded::unstarted(ProgramExit::Code(0))).to_bytes();
    let (_, dir) = runner(&[]);
    fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("end");
    fs::write(&file, end).expect("a file");
    let path = file.to_str().expect("plain letters");
    let (runner, _) = runner(&["/bin/sh", "-c", "cat \"$0\"; exec sleep 600", path]);
    let mut program = runner.call(&owner(), spec()).await.expect("a process");
    assert_eq!(program.finished().await.end.exit, ProgramExit::Code(0));
    if cfg!(target_os = "linux") {
        let guard = PathBuf::from(format!("/proc/{}", program.id()));
        assert!(!guard.exists(), "it is gone");
    }
    fs::remove_dir_all(dir).expect("cleaned");
}
