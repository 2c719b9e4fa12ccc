//! F1 on both wires at once; `TURNWIRE_KILLS` says how often the server is killed.

use turnwire_e2e::both;
use turnwire_testkit::dice::Dice;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_both_wires_tell_one_story_when_the_server_is_killed() {
    let kills = std::env::var("TURNWIRE_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(20);
    let report = both::run(kills, Dice::from_env()).await;
    println!("{report:?}");
    assert_eq!(report.clients, 20, "{report:?}");
    assert!(report.streamed > 0 && report.posted > 0, "{report:?}");
    assert!(report.old > 0 && report.swept > 0, "{report:?}");
    assert!(report.cuts > 0, "{report:?}");
    assert_eq!(
        report.endings,
        2 * (report.streamed + report.posted),
        "both viewers of every turn are told its end: {report:?}"
    );
}
