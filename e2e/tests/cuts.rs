//! F5: lines are cut anywhere and readers resume; `TURNWIRE_CUTS` says how often.

use turnwire_e2e::cuts;
use turnwire_testkit::dice::Dice;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f5_nothing_is_lost_or_sent_twice_when_lines_are_cut() {
    let cuts = std::env::var("TURNWIRE_CUTS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000);
    let report = cuts::run(cuts, Dice::from_env()).await;
    println!("{report:?}");
    assert!(report.cuts >= cuts, "{report:?}");
    assert!(
        report.inside * 2 >= report.cuts,
        "half of them inside a message: {report:?}"
    );
    assert!(
        report.restarted * 2 >= report.cuts,
        "half of them before a restart: {report:?}"
    );
}
