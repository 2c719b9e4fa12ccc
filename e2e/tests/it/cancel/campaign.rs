//! F14, SC-23 (c): cancels at random moments.

use turnwire_e2e::cancels;
use turnwire_testkit::cancel_case::CancelCase;
use turnwire_testkit::rng::SeededRng;

/// `cargo xtask campaign stops N` makes more of them.
const CANCELS: usize = 100;

// S3-075, S3-077
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cancel_matches_a_known_case() {
    let report = cancels::run(CANCELS, SeededRng::from_env()).await;
    println!("{report:?}");
    assert!(report.values().sum::<usize>() >= CANCELS, "{report:?}");
    for case in [
        CancelCase::Silent,
        CancelCase::Llm,
        CancelCase::Tool,
        CancelCase::LaterLlm,
    ] {
        assert!(
            report.contains_key(&case),
            "{case:?} never came: {report:?}"
        );
    }
}
