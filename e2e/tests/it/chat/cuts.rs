//! F5 on the chat wire: connections are cut at any byte and viewers resume.

use turnwire_e2e::chat_cuts;
use turnwire_testkit::rng::SeededRng;

/// `cargo xtask campaign cuts N` makes more of them.
const CUTS: usize = 300;

// F5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_chat_viewer_gets_each_frame_once_and_the_end() {
    let report = chat_cuts::run(CUTS, SeededRng::from_env()).await;
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
    let seams = [report.opening, report.ending, report.over];
    assert!(seams.iter().all(|&n| n > 0), "at every seam: {report:?}");
    assert!(report.swept > 0, "{report:?}");
    assert!(
        report.old > 0 && report.old < report.turns,
        "both versions: {report:?}"
    );
}
