//! F1: the server is killed under load; `TURNWIRE_KILLS` says how often.

use turnwire_e2e::kills;
use turnwire_testkit::dice::Dice;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_nothing_is_lost_when_the_server_is_killed_under_load() {
    let kills = std::env::var("TURNWIRE_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(20);
    let report = kills::run(kills, Dice::from_env()).await;
    println!("{report:?}");
    assert!(report.turns > 50, "{report:?}");
    assert!(
        report.swept >= kills,
        "the kills hit running turns: {report:?}"
    );
    assert!(report.cuts > 0, "{report:?}");
}
