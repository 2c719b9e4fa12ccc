//! `cargo xtask tidy` as a test: the tree keeps the rules of CONTRIBUTING.md.

use turnwire_xtask::{source, tidy, trace};

#[test]
fn workspace_is_tidy() {
    let report = tidy::run(&tidy::root()).expect("the sources and cargo metadata can be read");
    let failures: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(failures, [""; 0], "cargo xtask tidy tells the same");
}

#[test]
fn every_requirement_has_a_test_a_decision_or_an_open_point() {
    let root = tidy::root();
    let sources = source::all(&root).expect("the sources can be read");
    let untrue: Vec<_> = trace::check(&root, &sources)
        .expect("the documents can be read")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(untrue, [""; 0]);
}
