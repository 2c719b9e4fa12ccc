//! A start with a wrong clock removes nothing: expiry follows the time that has passed, until the
//! operator confirms the clock.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{self, ServerOptions, TestServer};

use super::big_database::{database, number, stop};

/// A library that shifts the wall clock of a process by `CLOCK_SHIFT_S` seconds.
const SHIFT_SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    int result = syscall(SYS_clock_gettime, id, at);
    const char *shift = getenv("CLOCK_SHIFT_S");
    if (result == 0 && id == CLOCK_REALTIME && shift) at->tv_sec += atol(shift);
    return result;
}
"#;

const EVENTS: &str = "SELECT count(*) FROM event";
const DAY_S: i64 = 24 * 3_600;

fn build_shift(dir: &Path) -> PathBuf {
    let (source, library) = (dir.join("shift.c"), dir.join("shift.so"));
    std::fs::write(&source, SHIFT_SOURCE).expect("a source");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .status()
        .expect("cc runs");
    assert!(built.success());
    library
}

fn options(home: &Path, sweep_ms: u64) -> ServerOptions {
    let script = ModelScript::new().on("", [ScriptStep::text("hello")]);
    let options = ServerOptions {
        home: Some(home.to_owned()),
        ..ServerOptions::script(script)
    };
    options.set("store", "retention_sweep_ms", sweep_ms)
}

fn shifted(options: ServerOptions, library: &Path, shift_s: i64) -> ServerOptions {
    let env = vec![
        ("LD_PRELOAD".to_owned(), library.display().to_string()),
        ("CLOCK_SHIFT_S".to_owned(), shift_s.to_string()),
    ];
    ServerOptions { env, ..options }
}

/// Waits until a server has written `text` to its log.
async fn logged(server: &TestServer, text: &str) {
    let started = Instant::now();
    while !server.stderr().contains(text) {
        let waited = started.elapsed();
        let log = server.stderr();
        assert!(waited < Duration::from_secs(30), "no {text:?} in:\n{log}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_that_leaps_ahead_removes_nothing_until_confirmed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (home, library) = (folder.path().join("home"), build_shift(folder.path()));
    let mut fixture = ServerFixture::new(options(&home, 100)).await;
    for _ in 0..5 {
        fixture.turn("hi").await;
    }
    stop(&mut fixture.server).await;
    let reader = database(&home);
    let events = number(&reader, EVENTS);
    assert!(events > 20, "{events}");

    // The clock is 40 days ahead, and sweeps are as frequent as they can be.
    let mut wrong = TestServer::start(shifted(options(&home, 100), &library, 40 * DAY_S)).await;
    logged(&wrong, "turnwire retention confirm").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(number(&reader, EVENTS), events);
    // Once more, killed: nothing is learned from being started.
    wrong.restart().await;
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    assert_eq!(number(&reader, EVENTS), events);

    // The operator says that the clock is right.
    let confirmed = Command::new(server::binary())
        .args(["retention", "confirm", "--home"])
        .arg(&home)
        .env("LD_PRELOAD", &library)
        .env("CLOCK_SHIFT_S", (40 * DAY_S).to_string())
        .output()
        .expect("it runs");
    assert!(confirmed.status.success(), "{confirmed:?}");
    let started = Instant::now();
    while number(&reader, EVENTS) > 0 {
        let waited = started.elapsed();
        let log = wrong.stderr();
        assert!(
            waited < Duration::from_secs(30),
            "kept after {waited:?}:\n{log}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop(&mut wrong).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_clock_that_was_behind_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let (home, library) = (folder.path().join("home"), build_shift(folder.path()));
    let behind = shifted(options(&home, 100), &library, -40 * DAY_S);
    let mut fixture = ServerFixture::new(behind).await;
    fixture.turn("hi").await;
    stop(&mut fixture.server).await;
    let reader = database(&home);
    let events = number(&reader, EVENTS);
    let mut right = TestServer::start(options(&home, 100)).await;
    logged(&right, "turnwire retention confirm").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(number(&reader, EVENTS), events);
    stop(&mut right).await;
}
