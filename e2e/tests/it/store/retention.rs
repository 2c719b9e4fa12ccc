//! A sweep of the retention over many sessions: writes go on between its pieces, and a restart goes
//! on with it.

use std::time::{Duration, Instant};

use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

use super::big_database::{add_sessions, database, number, stop};

const SESSIONS: i64 = 6_000;
const DUE: &str = "SELECT count(*) FROM session WHERE low_seq = 0 AND low_hash = zeroblob(32)";

/// A stopped server with old sessions, whose next run sweeps every 200 ms.
async fn with_old_sessions() -> ServerFixture {
    let script = ModelScript::new().on("", [ScriptStep::text("hello")]);
    let options = ServerOptions::script(script)
        .set("store", "retention_s", 3_600)
        .set("store", "retention_sweep_ms", 200);
    let mut fixture = ServerFixture::new(options).await;
    fixture.turn("one").await;
    stop(&mut fixture.server).await;
    let age = Duration::from_secs(2 * 3_600);
    add_sessions(&fixture.server.home(), SESSIONS as u128, age);
    fixture
}

// G9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_go_on_during_a_sweep_of_many_sessions() {
    let mut fixture = with_old_sessions().await;
    fixture.server.run().await.expect("a start");
    let reader = database(&fixture.server.home());
    let started = Instant::now();
    let mut writes_during_sweep = 0;
    loop {
        let before = number(&reader, DUE);
        fixture.api.create().await.expect("a session");
        let after = number(&reader, DUE);
        // Written while the sweep had begun and was not at its end.
        if before < SESSIONS && after > 0 {
            writes_during_sweep += 1;
        }
        if after == 0 {
            break;
        }
        let waited = started.elapsed();
        assert!(
            waited < Duration::from_secs(120),
            "{after} sessions are due after {waited:?}"
        );
    }
    println!("{writes_during_sweep} writes during the sweep of {SESSIONS} sessions");
    assert!(writes_during_sweep >= 10, "{writes_during_sweep} writes");
    fixture.check_history().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweep_goes_on_after_a_kill() {
    let mut fixture = with_old_sessions().await;
    fixture.server.run().await.expect("a start");
    let reader = database(&fixture.server.home());
    let started = Instant::now();
    let mut kills = 0;
    loop {
        let due = number(&reader, DUE);
        if due == 0 {
            break;
        }
        if due < SESSIONS && kills < 3 {
            kills += 1;
            fixture.server.restart().await;
        }
        let waited = started.elapsed();
        assert!(
            waited < Duration::from_secs(120),
            "{due} sessions are due after {waited:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(kills > 0, "the sweep took one piece");
    fixture.check_history().await;
}
