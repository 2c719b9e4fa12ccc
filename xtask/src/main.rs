//! `cargo xtask tidy | schema | trace | test`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use turnwire_xtask::{schema, source, suite, tidy, trace};

const HELP: &str = "\
cargo xtask tidy     check the rules of the house; reports large files and functions
cargo xtask schema   write schema/*.json from the types
cargo xtask trace    write which tests answer which requirement into docs/wires/*.md
cargo xtask test     install what the tests need, then format check, lints and all tests
";

fn main() -> Result<ExitCode> {
    let root = tidy::root();
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            let report = tidy::run(&root)?;
            for remark in &report.remarks {
                println!("large: {remark}");
            }
            for failure in &report.failures {
                println!("wrong: {failure}");
            }
            println!(
                "tidy: {} wrong, {} large",
                report.failures.len(),
                report.remarks.len()
            );
            Ok(ExitCode::from(u8::from(!report.failures.is_empty())))
        }
        Some("schema") => schema::write(&root).map(|()| ExitCode::SUCCESS),
        Some("trace") => trace::write(&root, &source::all(&root)?).map(|()| ExitCode::SUCCESS),
        Some("test") => suite::run(&root).map(|()| ExitCode::SUCCESS),
        Some("help" | "--help" | "-h") | None => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        Some(other) => bail!("no such task: {other}\n{HELP}"),
    }
}
