//! The workshop with guards that are none; those of the real binary are in `e2e`.

use std::fs;

use turnwire_event::Ulid;

use super::*;
use crate::guard::frame::{End, How};
use turnwire_event::code::StopOutcome;

/// A workshop in a folder that does not matter; its guard is any program.
fn workshop(guard: &[&str]) -> (Workshop, PathBuf) {
    let mut chance = std::process::id().to_string();
    chance.push_str(&format!("{:?}", std::thread::current().id()));
    let plain: String = chance.chars().filter(char::is_ascii_alphanumeric).collect();
    let dir = std::env::temp_dir().join(format!("turnwire-workshop-{plain}"));
    let guard = guard.iter().map(OsString::from).collect();
    let workshop = Workshop::new(dir.clone(), guard, Duration::from_millis(200));
    (workshop, dir)
}

fn spec() -> Spec {
    Spec {
        program: "true".to_owned(),
        args: Vec::new(),
        env: vec![("KEY".to_owned(), "secret".to_owned())],
        dir: PathBuf::from("/"),
        limits: guard::order::Limits::default(),
        input: Some("secret".to_owned()),
        output_bytes_max: 100,
    }
}

#[test]
fn a_session_has_a_folder_that_only_the_server_opens() {
    let (workshop, dir) = workshop(&[]);
    let session = SessionId(Ulid(7));
    let folder = workshop.folder(session).expect("a folder");
    assert_eq!(folder, dir.join(session.to_string()));
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
    };
    assert_eq!(mode(&folder) & 0o777, 0o700);
    fs::write(folder.join("note"), "x").expect("a file");
    assert_eq!(workshop.folder(session).expect("the same"), folder);
    assert!(folder.join("note").exists());
    let shared = workshop.shared("files").expect("a folder");
    assert_eq!(shared, dir.join("shared-files"));
    let folders = workshop.folders();
    assert_eq!(folders.sessions().collect::<Vec<_>>(), [session]);
    folders.clear(session).expect("taken away");
    assert!(!folder.exists() && shared.exists());
    folders.clear(session).expect("once more is fine");
    for bad in ["", "..", "a/b", "a b"] {
        assert!(workshop.shared(bad).is_err(), "{bad:?}");
    }
    fs::remove_dir_all(dir).expect("cleaned");
}

#[test]
fn a_program_is_found_by_name_or_absolute_path() {
    let (workshop, _) = workshop(&[]);
    let sh = workshop.find("sh").expect("a shell");
    assert!(sh.is_absolute() && sh.ends_with("sh"));
    assert_eq!(workshop.find(sh.to_str().expect("text")), Some(sh));
    for bad in [
        "no-such-program-here",
        "/no/such",
        "./sh",
        "bin/sh",
        "/",
        "",
    ] {
        assert_eq!(workshop.find(bad), None, "{bad:?}");
    }
}

#[test]
fn secrets_of_a_program_are_not_shown() {
    let told = format!("{:?}", spec());
    assert!(told.contains("true") && !told.contains("secret"), "{told}");
}

#[tokio::test]
async fn a_guard_that_is_not_there_is_an_error() {
    for guard in [&["/no/such/guard"][..], &[]] {
        let (workshop, _) = workshop(guard);
        let unstarted = workshop.call(spec()).await.expect_err("no guard");
        assert!(matches!(unstarted, Unstarted::Process(_)), "{unstarted}");
    }
}

#[tokio::test]
async fn a_guard_that_dies_or_talks_nonsense_is_an_end() {
    for script in ["exit 1", "echo nonsense; read order", "read order; exit 0"] {
        let (workshop, _) = workshop(&["/bin/sh", "-c", script]);
        let mut guarded = workshop.call(spec()).await.expect("a process");
        let done = guarded.done().await;
        assert_eq!(done.end, End::unstarted(How::Refused), "{script}");
        assert_eq!(guarded.ended().await, StopOutcome::Finished);
    }
}

#[tokio::test]
async fn programs_that_are_talked_with_leave_room_for_calls() {
    let (workshop, _) = workshop(&["/bin/sh", "-c", "read order; read end"]);
    let workshop = workshop.with_room(1);
    let talk = workshop.pipe(spec()).await.expect("a process");
    let called = tokio::time::timeout(Duration::from_secs(20), workshop.call(spec())).await;
    let called = called.expect("there is room").expect("a process");
    // One more of each waits until there is room.
    let more = tokio::time::timeout(Duration::from_millis(100), workshop.call(spec())).await;
    assert!(more.is_err());
    drop(called);
    let more = tokio::time::timeout(Duration::from_secs(20), workshop.call(spec())).await;
    more.expect("there is room").expect("a process");
    drop(talk);
}

#[tokio::test]
async fn a_guard_that_does_not_go_is_killed_with_all_below_and_its_slot_is_free_again() {
    let script = "trap '' TERM; (trap '' TERM; exec sleep 600) & echo $! > \"$0\"; exec sleep 600";
    let (_, dir) = workshop(&[]);
    fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("below");
    let path = file.to_str().expect("plain letters");
    let (workshop, _) = workshop(&["/bin/sh", "-c", script, path]);
    let workshop = workshop.with_room(1);
    let guarded = workshop.call(spec()).await.expect("a process");
    let below = loop {
        match fs::read_to_string(&file) {
            Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let ended = guarded.ended();
    drop(guarded);
    assert_eq!(ended.await, StopOutcome::Killed);
    if cfg!(target_os = "linux") {
        let state = fs::read_to_string(format!("/proc/{below}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
    let more = tokio::time::timeout(Duration::from_secs(20), workshop.call(spec())).await;
    drop(more.expect("there is room").expect("a process"));
    fs::remove_dir_all(dir).expect("cleaned");
}

/// As if the program had forged it: the guard lives, and so may what is below it.
#[tokio::test]
async fn a_guard_that_tells_the_end_and_stays_is_killed() {
    let end = guard::frame::Frame::End(End::unstarted(How::Code(0))).to_bytes();
    let (_, dir) = workshop(&[]);
    fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("end");
    fs::write(&file, end).expect("a file");
    let path = file.to_str().expect("plain letters");
    let (workshop, _) = workshop(&["/bin/sh", "-c", "cat \"$0\"; exec sleep 600", path]);
    let mut guarded = workshop.call(spec()).await.expect("a process");
    assert_eq!(guarded.done().await.end.how, How::Code(0));
    if cfg!(target_os = "linux") {
        let guard = PathBuf::from(format!("/proc/{}", guarded.id()));
        assert!(!guard.exists(), "it is gone");
    }
    fs::remove_dir_all(dir).expect("cleaned");
}
