//! All checks over the whole tree: what fails, and what is only told.

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

/// What tidy has to say.
#[derive(Debug, Default)]
pub struct Report {
    /// What must be put right.
    pub failures: Vec<Finding>,
    /// What deserves a look.
    pub remarks: Vec<Finding>,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask stands one below the root")
        .to_owned()
}

/// Runs every check.
pub fn run(root: &Path) -> Result<Report> {
    let sources = source::all(root)?;
    let metadata = Metadata::read(root)?;
    Ok(judge(&sources, &metadata))
}

/// Runs every check over what was read.
pub fn judge(sources: &[Source], metadata: &Metadata) -> Report {
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
