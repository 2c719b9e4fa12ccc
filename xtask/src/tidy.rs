//! Runs all checks over the workspace: failures and remarks.

pub mod debt;
pub mod path;
pub mod order;
pub mod folder;
pub mod words;
pub mod docs;
pub mod large;
pub mod edges;
pub mod licence;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::finding::Finding;
use crate::metadata::Metadata;
use crate::source::{self, Source};

/// The findings of all checks.
#[derive(Debug, Default)]
pub struct Report {
    /// Violations of a rule; each must be fixed.
    pub failures: Vec<Finding>,
    /// Large files and functions; no failure.
    pub remarks: Vec<Finding>,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the root")
        .to_owned()
}

/// Reads the workspace and runs every check.
pub fn run(root: &Path) -> Result<Report> {
    let sources = source::all(root)?;
    let metadata = Metadata::read(root)?;
    Ok(check(&sources, &metadata))
}

/// Runs every check over these sources and packages.
pub fn check(sources: &[Source], metadata: &Metadata) -> Report {
    let mut failures = source::undocumented(sources);
    failures.extend(order::backward(sources));
    failures.extend(folder::crowded(sources));
    failures.extend(words::forbidden(sources));
    failures.extend(docs::findings(sources));
    failures.extend(edges::forbidden(metadata));
    failures.extend(licence::not_allowed(metadata));
    failures.extend(licence::refused(metadata));
    Report {
        failures,
        remarks: large::all(sources),
    }
}
