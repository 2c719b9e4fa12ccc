//! The one test command: installs what the tests need, checks the format, builds, lints and documents
//! everything in one pass, runs every test, and closes with the slowest tests and the counts.
//!
//! ```text
//! format ─▶ build, lint and document ─▶ tests in a pool ─▶ tests that measure time ─▶ N passed, N failed
//!           install programs (beside the build)
//! ```

pub mod setup;
pub mod compiler;
pub mod build;
pub mod case;
pub mod process;
pub mod run;
pub mod report;

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::source;
use crate::step::{call, cargo, step};
use crate::trace::test_index::TestIndex;
use case::{Catalog, Times};

/// Variable that sets how many tests run at once.
const JOBS: &str = "TURNWIRE_TEST_JOBS";
/// Tests with `#[ignore]`: processes that other tests start.
const HELPERS: [&str; 2] = [
    "crates/dial: dialer::tests::tls::client",
    "e2e it: process::server::server_with_programs_helper",
];
/// Tests at once for each core: most of them wait.
const JOBS_PER_CORE: usize = 3;

/// Runs everything, or only the tests whose name contains `filter`. True if all passed.
pub fn run(root: &Path, filter: Option<&str>) -> Result<bool> {
    step("format", || {
        setup::components(root)?;
        call(root, &cargo(), &["fmt", "--all", "--check"])
    })?;
    let built = std::thread::scope(|scope| {
        let installed = scope.spawn(|| step("install programs", || setup::install(root)));
        let built = step("build, lint and document", || build::build(root))?;
        installed.join().expect("the installation does not panic")?;
        anyhow::Ok(built)
    })?;
    let server = built.server.context("the server was not built")?;
    let index = TestIndex::new(&source::all(root)?);
    let mut catalog = Catalog::read(&built.tests, &index)?;
    let unknown: Vec<&String> = catalog
        .ignored
        .iter()
        .filter(|label| !HELPERS.contains(&label.as_str()))
        .collect();
    if !unknown.is_empty() {
        bail!("ignored tests that no other test starts: {unknown:?}");
    }
    let unlisted = catalog.unlisted(&index);
    if !unlisted.is_empty() {
        bail!("tests that no test binary has: {unlisted:?}");
    }
    let file = root.join("target/test-times.txt");
    let mut times = Times::read(&file);
    catalog.sort(&times);
    if let Some(filter) = filter {
        catalog.retain(filter);
    }
    let jobs = jobs()?;
    let name = format!("{} tests, {jobs} at once", catalog.cases.len());
    let outcomes = step(&name, || Ok(run::run(&catalog.cases, &server, jobs)))?;
    for outcome in &outcomes {
        times.record(outcome.label.clone(), outcome.took);
    }
    times.write(&file)?;
    for label in &catalog.ignored {
        println!("not run by itself, another test starts it: {label}");
    }
    print!("{}", report::report(&outcomes));
    Ok(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.failure.is_none()))
}

fn jobs() -> Result<usize> {
    match std::env::var(JOBS) {
        Ok(text) => {
            let jobs = text.parse().ok().filter(|jobs| *jobs > 0);
            jobs.with_context(|| format!("{JOBS} is {text:?}: write a number from 1"))
        }
        Err(_) => Ok(JOBS_PER_CORE * std::thread::available_parallelism()?.get()),
    }
}
