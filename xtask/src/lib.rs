//! Checks and tasks of this repository, as a library so that `cargo test` can call them.
//!
//! `cargo xtask tidy` reads the sources and the dependency graph and names what breaks the rules
//! of CONTRIBUTING.md; `schema` writes the JSON Schemas; `test` runs everything CI runs; `campaign`
//! runs long fault campaigns; `size` reports lines, crates and build time. A check is a pure function
//! from text to findings, so each one is shown a bad example in its tests.

pub mod finding;
pub mod scan;
pub mod source;
pub mod metadata;
pub mod tidy;
pub mod trace;
pub mod step;
pub mod size;
pub mod campaign;
pub mod fuzz;
pub mod suite;

pub use finding::Finding;
