//! F5: connections are cut at any byte and readers resume.

use turnwire_e2e::cuts;
use turnwire_testkit::rng::SeededRng;

/// `cargo xtask campaign cuts N` makes more of them.
const CUTS: usize = 300;

// S3-035, F5, S3-100
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_lose_and_repeat_nothing() {
    let report = cuts::run(CUTS, SeededRng::from_env()).await;
    println!("{report:?}");
    assert!(report.cuts >= CUTS, "{report:?}");
    assert!(
        report.inside * 2 >= report.cuts,
        "half of them inside a message: {report:?}"
    );
    assert!(
        report.restarted * 2 >= report.cuts,
        "half of them before a restart: {report:?}"
    );
}
