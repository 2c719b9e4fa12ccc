//! The house's own checks and chores, as a library so that `cargo test` can call them.
//!
//! `cargo xtask tidy` reads the sources and the dependency graph and names what breaks the rules
//! of CONTRIBUTING.md; `schema` writes the JSON Schemas; `test` runs everything CI runs. A check
//! is a pure function from text to findings, so each one is shown a bad example in its tests.

pub mod finding;
pub mod scan;
pub mod source;
pub mod path;
pub mod order;
pub mod words;
pub mod size;
pub mod metadata;
pub mod edges;
pub mod licence;
pub mod tidy;
pub mod schema;
pub mod trace;
pub mod suite;

pub use finding::Finding;
