//! F1 on both wires at once.

use turnwire_e2e::both_wires;
use turnwire_testkit::rng::SeededRng;

/// `cargo xtask campaign kills N` makes more of them.
const KILLS: usize = 5;

// F1, S1-118, C-02, I-18
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_wires_agree_after_a_kill() {
    let report = both_wires::run(KILLS, SeededRng::from_env()).await;
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
