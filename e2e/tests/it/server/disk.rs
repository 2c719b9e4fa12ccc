//! A disk that fails or is full (F3, F4): the server stops rather than lie, and goes on by itself
//! when there is room again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_e2e::load;
use turnwire_e2e::scene::Scene;
use turnwire_e2e::trace::{Key, Trace, arguments};
use turnwire_event::SessionId;
use turnwire_testkit::dice::Dice;
use turnwire_testkit::history::FaultKind;
use turnwire_testkit::journal::Journal;
use turnwire_testkit::rest::{Accepted, Answer, Rest};
use turnwire_testkit::script::{Script, Step, tool};
use turnwire_testkit::server::{Options, Server};
use turnwire_testkit::watch::{Ask, Client};

/// Submits turns in a session and watches them until the server is gone.
async fn use_up(rest: Rest, session: SessionId) -> Option<()> {
    let mut client = Client::connect(&rest, "watching", session).await.ok()?;
    client.subscribed(&Ask::live()).await.ok()?;
    while rest.try_submit(session, "tools").await.is_ok() {
        while !client.event().await.ok()?.body.kind().is_terminal() {}
    }
    None
}

/// A server whose n-th sync and all later ones fail, used until it ends; judges what it left.
async fn fail_sync(nth: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, home) = (folder.path().join("trace"), folder.path().join("home"));
    // The store is made by a server that nothing happens to.
    let options = Options {
        home: Some(home),
        ..Options::script(load::script())
    };
    let mut first = Server::start(options.clone()).await;
    first.sigterm();
    assert!(first.wait(Duration::from_secs(15)).await.success());

    let mut strace = arguments(&file);
    let fault = format!("inject=fsync,fdatasync:error=EIO:when={nth}+");
    strace.extend(["-e".to_owned(), fault]);
    let faulty = Options {
        strace: Some(strace),
        ..options.clone()
    };
    let journal = Journal::new();
    let server = Server::try_start(faulty, journal.clone()).await;
    let mut server = server.unwrap_or_else(|why| panic!("{why}"));
    let rest = server.rest();
    let sessions = load::sessions(&rest, 4).await;
    let users: Vec<_> = sessions
        .iter()
        .map(|&session| tokio::spawn(use_up(rest.clone(), session)))
        .collect();
    let status = server.wait(Duration::from_secs(60)).await;
    assert!(!status.success(), "it ended with {status}");
    for user in users {
        user.await.expect("a user");
    }
    let trace = Trace::read(&file);
    let lived = trace.last - trace.failed.expect("a sync failed");
    assert!(lived < 2.0, "it lived on for {lived} s");
    assert_eq!(trace.early(), Vec::<&Key>::new());
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    drop(server);

    // What was acknowledged is there when the disk is sound again. A crash it was.
    journal.fault(FaultKind::Kill);
    let sound = Server::try_start(options, journal).await;
    let sound = sound.unwrap_or_else(|why| panic!("{why}"));
    load::judge(&sound.rest(), &sessions).await;
}

// F3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_sync_ends_process_and_acknowledges_nothing() {
    let mut dice = Dice::from_env();
    for _ in 0..3 {
        fail_sync(dice.between(10, 80)).await;
    }
}

/// A small disk of its own.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, megabytes: u32) -> Self {
        std::fs::create_dir_all(at).expect("a folder");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(at)
            .status()
            .expect("mount runs");
        assert!(
            done.success(),
            "this test mounts a small tmpfs, for which it must be root"
        );
        Self(at.to_owned())
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Writes until there is no room.
    fn fill(&self) {
        use std::io::Write as _;
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.filler())
            .expect("a file");
        let mut size = 1 << 20;
        while size > 0 {
            if file.write_all(&vec![0; size]).is_err() {
                size /= 2;
            }
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).expect("removed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn script() -> Script {
    let slow = [
        Step::slow("a slow answer. ", 3, 30).repeat(16),
        Step::tool(tool::ECHO, json!({"text": "x"})),
        Step::text("done"),
    ];
    Script::new()
        .on("^stall", [Step::text("waiting"), Step::stall()])
        .on("^slow", slow)
        .on("", [Step::text("hello")])
}

/// Submits turns until one is answered with `status`.
async fn until_answered(scene: &Scene, status: u16) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = scene.rest.try_submit(scene.session, "hi").await;
        let answer = answer.expect("an answer");
        if answer.status == status {
            return answer;
        }
        assert!([202, 409, 507].contains(&answer.status), "{}", answer.body);
        let waited = begun.elapsed();
        assert!(
            waited < Duration::from_secs(15),
            "no {status} in {waited:?}: {}",
            answer.body
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_refuses_new_turns_ends_running_and_recovers() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = SmallDisk::mount(&folder.path().join("home"), 48);
    let options = Options {
        home: Some(disk.0.clone()),
        ..Options::script(script())
    };
    let scene = Scene::new(options).await;
    let rest = &scene.rest;
    let busy = rest.create().await.expect("a session");
    let stalled = rest.create().await.expect("a session");
    scene.turn("hi").await;
    let slow = rest.submit(busy, "slow").await.expect("an answer").turn_id;
    let stall = rest
        .submit(stalled, "stall")
        .await
        .expect("an answer")
        .turn_id;
    tokio::time::sleep(Duration::from_millis(300)).await;
    disk.fill();

    // New turns are refused as soon as the store notices.
    let refused = until_answered(&scene, 507).await;
    assert_eq!(refused.code(), "storage_full");
    let after = refused.header("retry-after").parse::<u64>();
    assert!(
        after.is_ok_and(|seconds| seconds > 0),
        "{:?}",
        refused.headers
    );

    // Reads work, a cancel works, what runs comes to its end.
    let read = rest.get(&format!("/sessions/{busy}/events")).await;
    assert_eq!(read.expect("an answer").status, 200);
    assert_eq!(rest.cancel(stall).await.expect("an answer").status, 202);
    let row = rest.ended(stall).await.expect("an end");
    assert_eq!(row["state"], "cancelled");
    let row = rest.ended(slow).await.expect("an end");
    assert_eq!(row["terminal"]["payload"]["status"], "ok", "{row}");
    let still = rest
        .try_submit(scene.session, "hi")
        .await
        .expect("an answer");
    assert_eq!(still.status, 507, "{}", still.body);

    // Room again: the same process takes turns again.
    disk.free();
    let accepted = until_answered(&scene, 202).await;
    let accepted: Accepted = serde_json::from_str(&accepted.body).expect("an accepted turn");
    rest.ended(accepted.turn_id).await.expect("an end");
    load::judge(rest, &[scene.session, busy, stalled]).await;
}
