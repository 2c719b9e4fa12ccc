//! `cargo xtask tidy` as a test: the tree keeps the rules of the house.

use turnwire_xtask::{schema, tidy};

#[test]
fn the_tree_is_tidy() {
    let report = tidy::run(&tidy::root()).expect("the sources and cargo metadata can be read");
    let failures: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(failures, [""; 0], "cargo xtask tidy tells the same");
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let drifted: Vec<_> = schema::drifted(&tidy::root())
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(drifted, [""; 0]);
}
