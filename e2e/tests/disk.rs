//! A disk that fails or is full (F3, F4): the server stops rather than lie, and goes on by itself
//! when there is room again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_e2e::load;
use turnwire_e2e::scene::Scene;
use turnwire_e2e::trace::{Trace, arguments};
use turnwire_event::EventType;
use turnwire_testkit::dice::Dice;
use turnwire_testkit::journal::Journal;
use turnwire_testkit::script::{Script, Step, tool};
use turnwire_testkit::server::{Options, Server};
use turnwire_testkit::watch::Ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_a_sync_that_fails_ends_the_process_and_nothing_is_acknowledged_after_it() {
    let mut dice = Dice::from_env();
    for _ in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, home) = (folder.path().join("trace"), folder.path().join("home"));
        // The store is made by a server that nothing happens to.
        let script = load::script();
        let options = Options {
            home: Some(home.clone()),
            ..Options::script(script)
        };
        let mut first = Server::start(options.clone()).await;
        first.sigterm();
        assert!(first.wait(Duration::from_secs(15)).await.success());

        let when = dice.between(10, 80);
        let mut strace = arguments(&file);
        strace.extend([
            "-e".to_owned(),
            format!("inject=fsync,fdatasync:error=EIO:when={when}+"),
        ]);
        let journal = Journal::new();
        let faulty = Options {
            strace: Some(strace),
            ..options.clone()
        };
        let mut server = Server::try_start(faulty, journal.clone())
            .await
            .unwrap_or_else(|why| panic!("{why}"));
        let rest = server.rest();
        let halt = load::Halt::default();
        let sessions = load::sessions(&rest, 4).await;
        let watchers: Vec<_> = sessions
            .iter()
            .map(|&session| {
                let (rest, halt, mut dice) = (rest.clone(), halt.clone(), dice.fork());
                tokio::spawn(async move {
                    let mut client =
                        turnwire_testkit::watch::Client::connect(&rest, "watching", session)
                            .await
                            .ok()?;
                    client.subscribed(&Ask::live()).await.ok()?;
                    while !halt.is_halted() {
                        let turn = rest.try_submit(session, "tools").await;
                        if turn.is_err() {
                            break;
                        }
                        tokio::time::sleep(dice.millis(5, 20)).await;
                        while client.event().await.ok()?.body.kind() != EventType::TurnCompleted {}
                    }
                    Some(())
                })
            })
            .collect();
        let status = server.wait(Duration::from_secs(60)).await;
        assert!(!status.success(), "it ended with {status}");
        halt.halt();
        for watcher in watchers {
            let _ = watcher.await.expect("a watcher");
        }
        let trace = Trace::read(&file);
        let failed = trace.failed.expect("a sync failed");
        assert!(
            trace.last - failed < 2.0,
            "it lived on for {} s",
            trace.last - failed
        );
        assert_eq!(trace.early(), Vec::<&turnwire_e2e::trace::Key>::new());
        assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
        drop(server);

        // What was acknowledged is there when the disk is sound again. A crash it was.
        journal.fault(turnwire_testkit::history::FaultKind::Kill);
        let sound = Server::try_start(options, journal)
            .await
            .unwrap_or_else(|why| panic!("{why}"));
        load::judge(&sound.rest(), &sessions).await;
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
            match file.write(&vec![0; size]) {
                Ok(_) => {}
                Err(_) => size /= 2,
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_a_full_disk_refuses_new_turns_ends_running_ones_and_recovers() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = SmallDisk::mount(&folder.path().join("home"), 48);
    let script = Script::new()
        .on("^stall", [Step::text("waiting"), Step::stall()])
        .on(
            "^slow",
            [
                Step::slow("a slow answer. ", 3, 30).repeat(16),
                Step::tool(tool::ECHO, json!({"text": "x"})),
                Step::text("done"),
            ],
        )
        .on("", [Step::text("hello")]);
    let options = Options {
        home: Some(disk.0.clone()),
        ..Options::script(script)
    };
    let scene = Scene::new(options).await;
    let (busy, stalled) = (
        scene.rest.create().await.expect("a session"),
        scene.rest.create().await.expect("a session"),
    );
    scene.turn("hi").await;
    let slow = scene
        .rest
        .submit(busy, "slow")
        .await
        .expect("an answer")
        .turn_id;
    let stall = scene
        .rest
        .submit(stalled, "stall")
        .await
        .expect("an answer")
        .turn_id;
    tokio::time::sleep(Duration::from_millis(300)).await;
    disk.fill();

    // New turns are refused as soon as the store notices.
    let begun = Instant::now();
    let refused = loop {
        let answer = scene
            .rest
            .try_submit(scene.session, "hi")
            .await
            .expect("an answer");
        match answer.status {
            507 => break answer,
            202 | 409 => tokio::time::sleep(Duration::from_millis(20)).await,
            status => panic!("{status}: {}", answer.body),
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "turns are still accepted on a full disk"
        );
        disk.fill();
    };
    assert_eq!(refused.code(), "storage_full");
    assert!(
        refused
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|s| s > 0),
        "{:?}",
        refused.headers
    );

    // Reads work, a cancel works, what runs comes to its end.
    assert_eq!(
        scene
            .rest
            .get(&format!("/sessions/{busy}/events"))
            .await
            .expect("an answer")
            .status,
        200
    );
    assert_eq!(
        scene.rest.cancel(stall).await.expect("an answer").status,
        202
    );
    let row = scene.rest.ended(stall).await.expect("an end");
    assert_eq!(row["state"], "cancelled");
    let row = scene.rest.ended(slow).await.expect("an end");
    assert_eq!(
        (&row["state"], &row["terminal"]["payload"]["status"]),
        (&json!("completed"), &json!("ok")),
        "{row}"
    );
    let still = scene
        .rest
        .try_submit(scene.session, "hi")
        .await
        .expect("an answer");
    assert_eq!(still.status, 507, "{}", still.body);

    // Room again: the same process takes turns again.
    disk.free();
    let begun = Instant::now();
    let turn = loop {
        let answer = scene
            .rest
            .try_submit(scene.session, "hi")
            .await
            .expect("an answer");
        if answer.status == 202 {
            break serde_json::from_str::<turnwire_testkit::rest::Accepted>(&answer.body)
                .expect("accepted")
                .turn_id;
        }
        assert_eq!(answer.status, 507, "{}", answer.body);
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "it does not recover"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    scene.rest.ended(turn).await.expect("an end");
    load::judge(&scene.rest, &[scene.session, busy, stalled]).await;
    drop(scene);
}
