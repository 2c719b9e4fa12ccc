//! The one test command: installs what the tests need, then runs what CI runs.
//!
//! On Debian as root it installs missing packages itself; anywhere else it says what to install
//! and stops. Steps run in order and the first failure ends it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Programs the tests drive, with the Debian package that has each.
const PROGRAMS: [(&str, &str); 2] = [("chromium", "chromium"), ("strace", "strace")];

/// Runs everything.
pub fn run(root: &Path) -> Result<()> {
    packages(root)?;
    if root.join("e2e/browser/package-lock.json").exists() {
        node_modules(&root.join("e2e/browser"))?;
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let steps: [&[&str]; 4] = [
        &["fmt", "--all", "--check"],
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        // Tests that start the real process look for this binary.
        &["build", "-p", "turnwire"],
        &["test", "--workspace"],
    ];
    for step in steps {
        call(root, &cargo, step)?;
    }
    Ok(())
}

/// Installs the programs that are missing, or says how.
fn packages(root: &Path) -> Result<()> {
    let missing: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !is_there("apt-get") || !is_root() {
        bail!("the tests need {names}: install them, for example `sudo apt-get install {names}`");
    }
    call(root, "apt-get", &["update", "-q"])?;
    let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
    install.extend(&missing);
    call(root, "apt-get", &install)
}

fn node_modules(dir: &Path) -> Result<()> {
    if !is_there("npm") {
        bail!("the browser tests need Node.js with npm: install it (Debian: apt-get install npm)");
    }
    call(dir, "npm", &["ci", "--no-audit", "--no-fund"])
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|done| done.stdout.trim_ascii() == b"0")
}

/// Runs one step and shows it.
fn call(dir: &Path, program: &str, args: &[&str]) -> Result<()> {
    eprintln!("xtask: {program} {}", args.join(" "));
    let status = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .with_context(|| format!("starting {program}"))?;
    if !status.success() {
        bail!("`{program} {}` failed ({status})", args.join(" "));
    }
    Ok(())
}
