//! `cargo xtask tidy | schema | trace | test | campaign | fuzz | size`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use turnwire_xtask::step::{call, cargo};
use turnwire_xtask::{campaign, fuzz, size, source, suite, tidy, trace};

const HELP: &str = "\
cargo xtask tidy              check the rules of CONTRIBUTING.md; reports large files and functions
cargo xtask schema            write schema/*.json from the types
cargo xtask trace             write docs/requirements.md; fails on a requirement without an answer
cargo xtask test [NAME]       install test dependencies, then format check, lints and all tests,
                              or those whose name contains NAME
cargo xtask campaign KIND N   N trials of kills, cuts, stops, workers or api, or N rounds of fairness;
                              --binary FILE tests another server
cargo xtask fuzz [TARGET] [--seconds N]
                              run the fuzz targets with libFuzzer, each for N seconds (default 60)
cargo xtask size [--no-build] lines, crates, binary size and the time of a cold release build
";

fn main() -> Result<ExitCode> {
    if let Some(compiled) = suite::compiler::run_as_compiler() {
        return compiled;
    }
    let root = tidy::root();
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            let report = tidy::run(&root)?;
            for remark in &report.remarks {
                println!("large: {remark}");
            }
            for failure in &report.failures {
                println!("error: {failure}");
            }
            println!(
                "tidy: {} errors, {} large",
                report.failures.len(),
                report.remarks.len()
            );
            Ok(ExitCode::from(u8::from(!report.failures.is_empty())))
        }
        Some("schema") => {
            let generator = ["run", "-q", "-p", "turnwire-schemagen", "--", "."];
            call(&root, &cargo(), &generator).map(|()| ExitCode::SUCCESS)
        }
        Some("trace") => {
            let findings = trace::write(&root, &source::all(&root)?)?;
            for finding in &findings {
                println!("error: {finding}");
            }
            Ok(ExitCode::from(u8::from(!findings.is_empty())))
        }
        Some("test") => {
            let passed = suite::run(&root, std::env::args().nth(2).as_deref())?;
            Ok(ExitCode::from(u8::from(!passed)))
        }
        Some("campaign") => {
            let arguments: Vec<String> = std::env::args().skip(2).collect();
            campaign::run(&root, &arguments).map(|()| ExitCode::SUCCESS)
        }
        Some("fuzz") => {
            let arguments: Vec<String> = std::env::args().skip(2).collect();
            fuzz::run(&root, &arguments).map(|()| ExitCode::SUCCESS)
        }
        Some("size") => {
            let build = std::env::args().nth(2).as_deref() != Some("--no-build");
            size::run(&root, build).map(|()| ExitCode::SUCCESS)
        }
        Some("help" | "--help" | "-h") | None => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        Some(other) => bail!("no such task: {other}\n{HELP}"),
    }
}
