//! The write-ahead log stays bounded while reads overlap, whatever is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

const BOUND: u64 = 1 << 20;
/// What must be written: many times the bound.
const WRITTEN: u64 = 12 * BOUND;
const READERS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wal_stays_bounded_while_reads_overlap() {
    let script = ModelScript::new().on("", [ScriptStep::text("hello")]);
    let options = ServerOptions::script(script).set("store", "wal_bytes_max", BOUND);
    let fixture = ServerFixture::new(options).await;
    for _ in 0..5 {
        fixture.turn(&"x".repeat(50_000)).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (api, stop) = (fixture.server.api(), stop.clone());
            let path = format!("/sessions/{}/events?limit=1000", fixture.session);
            tokio::spawn(async move {
                let mut reads = 0;
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(api.get(&path).await.expect("an answer").status, 200);
                    reads += 1;
                }
                reads
            })
        })
        .collect();
    let wal = fixture.server.home().join("turnwire.sqlite3-wal");
    // The row of a session carries its metadata: as much as the server takes.
    let metadata = json!({"metadata": {"note": "m".repeat(15_000)}});
    let (mut written, mut largest) = (0, 0);
    while written < WRITTEN {
        let answer = fixture.api.post("/sessions", metadata.clone()).await;
        assert_eq!(answer.expect("an answer").status, 201);
        written += 15_000;
        largest = largest.max(std::fs::metadata(&wal).map_or(0, |file| file.len()));
    }
    stop.store(true, Ordering::Relaxed);
    let mut reads = 0;
    for reader in readers {
        reads += reader.await.expect("a reader");
    }
    println!("{largest} bytes of WAL, {written} written beside {reads} reads");
    assert!(largest < 6 * BOUND, "{largest} bytes of WAL");
}
