//! A failing or full disk (F3, F4): the server exits instead of acknowledging lost writes, and
//! continues by itself when space is free again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;
use turnwire_e2e::load;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_e2e::trace::{EventKey, StraceLog, arguments};
use turnwire_event::SessionId;
use turnwire_testkit::api::{AcceptedSubmit, ApiClient, ApiResponse};
use turnwire_testkit::history::FaultKind;
use turnwire_testkit::journal::Journal;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

/// Submits turns in a session and watches them until the server is gone.
async fn use_up(api: ApiClient, session: SessionId) -> Option<()> {
    let mut client = WatchClient::connect(&api, "watching", session).await.ok()?;
    client.subscribed(&SubscribeOptions::live()).await.ok()?;
    while api.try_submit(session, "tools").await.is_ok() {
        while !client.event().await.ok()?.body.kind().is_terminal() {}
    }
    None
}

/// A server whose n-th sync and all later ones fail, used until it ends; judges what it left.
async fn fail_sync(nth: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, home) = (folder.path().join("trace"), folder.path().join("home"));
    // The store is made by a server that nothing happens to.
    let options = ServerOptions {
        home: Some(home),
        ..ServerOptions::script(load::script())
    };
    let mut first = TestServer::start(options.clone()).await;
    first.sigterm();
    assert!(first.wait(Duration::from_secs(60)).await.success());

    let mut strace = arguments(&file);
    let fault = format!("inject=fsync,fdatasync:error=EIO:when={nth}+");
    strace.extend(["-e".to_owned(), fault]);
    let faulty = ServerOptions {
        strace: Some(strace),
        ..options.clone()
    };
    let journal = Journal::new();
    let server = TestServer::try_start(faulty, journal.clone()).await;
    let mut server = server.unwrap_or_else(|why| panic!("{why}"));
    let api = server.api();
    let sessions = load::sessions(&api, 4).await;
    let users: Vec<_> = sessions
        .iter()
        .map(|&session| tokio::spawn(use_up(api.clone(), session)))
        .collect();
    let status = server.wait(Duration::from_secs(60)).await;
    assert!(!status.success(), "it ended with {status}");
    for user in users {
        user.await.expect("a user");
    }
    let trace = StraceLog::read(&file);
    let lived = trace.last - trace.failed.expect("a sync failed");
    assert!(lived < 2.0, "it lived on for {lived} s");
    assert_eq!(trace.early(), Vec::<&EventKey>::new());
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    drop(server);

    // What was acknowledged is there when the disk is sound again. A crash it was.
    journal.fault(FaultKind::Kill);
    let sound = TestServer::try_start(options, journal).await;
    let sound = sound.unwrap_or_else(|why| panic!("{why}"));
    load::check_history(&sound.api(), &sessions).await;
}

// F3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_sync_ends_process_and_acknowledges_nothing() {
    let mut rng = SeededRng::from_env();
    for _ in 0..3 {
        fail_sync(rng.between(10, 80)).await;
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

fn script() -> ModelScript {
    let slow = [
        ScriptStep::slow("a slow answer. ", 3, 30).repeat(16),
        ScriptStep::tool(tool::ECHO, json!({"text": "x"})),
        ScriptStep::text("done"),
    ];
    ModelScript::new()
        .on("^stall", [ScriptStep::text("waiting"), ScriptStep::stall()])
        .on("^slow", slow)
        .on("", [ScriptStep::text("hello")])
}

/// Submits turns until one is answered with `status`.
async fn until_answered(fixture: &ServerFixture, status: u16) -> ApiResponse {
    let started = Instant::now();
    loop {
        let answer = fixture.api.try_submit(fixture.session, "hi").await;
        let answer = answer.expect("an answer");
        if answer.status == status {
            return answer;
        }
        assert!([202, 409, 507].contains(&answer.status), "{}", answer.body);
        let waited = started.elapsed();
        assert!(
            waited < Duration::from_secs(60),
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
    let options = ServerOptions {
        home: Some(disk.0.clone()),
        ..ServerOptions::script(script())
    };
    let fixture = ServerFixture::new(options).await;
    let api = &fixture.api;
    let busy = api.create().await.expect("a session");
    let stalled = api.create().await.expect("a session");
    fixture.turn("hi").await;
    let slow = api.submit(busy, "slow").await.expect("an answer").turn_id;
    let stall = api
        .submit(stalled, "stall")
        .await
        .expect("an answer")
        .turn_id;
    tokio::time::sleep(Duration::from_millis(300)).await;
    disk.fill();

    // New turns are refused as soon as the store notices.
    let refused = until_answered(&fixture, 507).await;
    assert_eq!(refused.code(), "storage_full");
    let after = refused.header("retry-after").parse::<u64>();
    assert!(
        after.is_ok_and(|seconds| seconds > 0),
        "{:?}",
        refused.headers
    );

    // A probe gets the same answer: the status of a code is the same everywhere.
    let probe = api.get("/readyz").await.expect("an answer");
    assert_eq!((probe.status, probe.code().as_str()), (507, "storage_full"));
    assert_eq!(probe.json()["status"], 507);
    assert_eq!(probe.json()["reasons"], json!(["storage_full"]));
    assert!(
        !probe.header("retry-after").is_empty(),
        "{:?}",
        probe.headers
    );

    // Reads work, a cancel works, what runs comes to its end.
    let read = api.get(&format!("/sessions/{busy}/events")).await;
    assert_eq!(read.expect("an answer").status, 200);
    assert_eq!(api.cancel(stall).await.expect("an answer").status, 202);
    let row = api.ended(stall).await.expect("an end");
    assert_eq!(row["state"], "cancelled");
    let row = api.ended(slow).await.expect("an end");
    assert_eq!(row["terminal"]["payload"]["status"], "ok", "{row}");
    let still = api
        .try_submit(fixture.session, "hi")
        .await
        .expect("an answer");
    assert_eq!(still.status, 507, "{}", still.body);

    // A deletion is refused like a turn, within bounded time, and deletes nothing.
    let path = format!("/sessions/{stalled}");
    let refused = api.send(Method::DELETE, &path, None).await;
    let refused = refused.expect("an answer");
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (507, "storage_full")
    );
    assert!(!refused.header("retry-after").is_empty());
    let kept = api.get(&format!("{path}/events")).await.expect("an answer");
    assert_eq!(kept.status, 200, "{}", kept.body);

    // Room again: the same process takes turns again.
    disk.free();
    let accepted = until_answered(&fixture, 202).await;
    let accepted: AcceptedSubmit = serde_json::from_str(&accepted.body).expect("an accepted turn");
    api.ended(accepted.turn_id).await.expect("an end");
    load::check_history(api, &[fixture.session, busy, stalled]).await;
    let deleted = api.send(Method::DELETE, &path, None).await;
    assert_eq!(deleted.expect("an answer").status, 204);
}

// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_without_space_for_its_record_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = SmallDisk::mount(&folder.path().join("home"), 48);
    let options = ServerOptions {
        home: Some(disk.0.clone()),
        ..ServerOptions::script(script())
    };
    let fixture = ServerFixture::new(options).await;
    let api = &fixture.api;
    let stalled = api.create().await.expect("a session");
    let stall = api.submit(stalled, "stall").await.expect("an answer");
    tokio::time::sleep(Duration::from_millis(300)).await;
    disk.fill();
    until_answered(&fixture, 507).await;
    // Another program takes the space of the reserve as well.
    disk.fill();
    let cancel = api.cancel(stall.turn_id);
    let answered = tokio::time::timeout(Duration::from_secs(15), cancel).await;
    let answered = answered.expect("answered in bounded time");
    let answer = answered.expect("an answer");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (507, "storage_full"),
        "{}",
        answer.body
    );
    assert!(!answer.header("retry-after").is_empty());
    disk.free();
    let row = api.ended(stall.turn_id).await.expect("an end");
    assert_eq!(row["state"], "cancelled");
    load::check_history(api, &[fixture.session, stalled]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletion_that_finds_the_disk_full_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = SmallDisk::mount(&folder.path().join("home"), 48);
    let options = ServerOptions {
        home: Some(disk.0.clone()),
        ..ServerOptions::script(script())
    };
    let fixture = ServerFixture::new(options).await;
    let api = &fixture.api;
    let path = format!("/sessions/{}", fixture.session);
    // Nothing else is written, so that a deletion is the first to notice.
    disk.fill();
    let answer = api.send(Method::DELETE, &path, None).await;
    let answer = answer.expect("an answer");
    assert!([204, 507].contains(&answer.status), "{}", answer.body);
    let found = api.get(&path).await.expect("an answer").status;
    match answer.status {
        204 => assert_eq!(found, 404),
        _ => assert_eq!(found, 200, "nothing is deleted"),
    }
    disk.free();
    if answer.status == 507 {
        let started = Instant::now();
        while api
            .send(Method::DELETE, &path, None)
            .await
            .expect("an answer")
            .status
            != 204
        {
            assert!(started.elapsed() < Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
