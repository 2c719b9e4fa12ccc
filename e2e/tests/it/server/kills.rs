//! F1: the server is killed under load.

use turnwire_e2e::kills;
use turnwire_testkit::rng::SeededRng;

/// `cargo xtask campaign kills N` makes more of them.
const KILLS: usize = 5;

// F1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_server_is_killed_under_load() {
    let report = kills::run(KILLS, SeededRng::from_env()).await;
    println!("{report:?}");
    assert!(report.turns > 50, "{report:?}");
    assert!(
        report.swept >= KILLS,
        "the kills hit running turns: {report:?}"
    );
    assert!(report.cuts > 0, "{report:?}");
}
