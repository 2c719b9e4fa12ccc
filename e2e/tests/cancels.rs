//! F14, SC-23 (c): cancels at random moments; `TURNWIRE_CANCELS` says how many.

use turnwire_e2e::cancels;
use turnwire_testkit::cases::Case;
use turnwire_testkit::dice::Dice;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_077_every_cancel_is_one_of_the_cases() {
    let cancels = std::env::var("TURNWIRE_CANCELS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(500);
    let report = cancels::run(cancels, Dice::from_env()).await;
    println!("{report:?}");
    assert!(report.values().sum::<usize>() >= cancels, "{report:?}");
    for case in [Case::Silent, Case::Llm, Case::Tool, Case::LaterLlm] {
        assert!(
            report.contains_key(&case),
            "{case:?} never came: {report:?}"
        );
    }
}
