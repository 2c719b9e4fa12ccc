//! Folders that break the rule of their size today and are to be grouped: a list that only gets
//! shorter.
//!
//! An entry that nothing needs any more is a finding, so that a grouped folder stays grouped. New
//! folders get no entry.

/// This file, for findings about its entries.
pub const FILE: &str = "xtask/src/tidy/debt.rs";

/// Folders with more files than [`super::folder::FILES_MAX`].
pub const FOLDERS: &[&str] = &[
    "bench/src",
    "crates/testkit/src",
    "crates/testkit/src/history",
    "crates/testkit/src/provider",
    "e2e/src",
];
