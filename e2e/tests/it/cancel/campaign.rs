//! F14, SC-23 (c): cancels at random moments.

use turnwire_e2e::cancels;
use turnwire_testkit::cases::Case;
use turnwire_testkit::dice::Dice;

/// `cargo xtask campaign stops N` makes more of them.
const CANCELS: usize = 100;

// S3-075, S3-077
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cancel_matches_a_known_case() {
    let report = cancels::run(CANCELS, Dice::from_env()).await;
    println!("{report:?}");
    assert!(report.values().sum::<usize>() >= CANCELS, "{report:?}");
    for case in [Case::Silent, Case::Llm, Case::Tool, Case::LaterLlm] {
        assert!(
            report.contains_key(&case),
            "{case:?} never came: {report:?}"
        );
    }
}
