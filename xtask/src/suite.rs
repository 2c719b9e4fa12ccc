//! The one test command: installs what the tests need, then runs what CI runs.
//!
//! On Debian as root it installs missing packages itself; anywhere else it says what to install
//! and stops. Steps run in order and the first failure ends it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Programs the tests drive, with the Debian package that has each.
const PROGRAMS: [(&str, &str); 6] = [
    ("chromium", "chromium"),
    ("strace", "strace"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("python3", "python3"),
    ("curl", "curl"),
];

/// Runs everything.
pub fn run(root: &Path) -> Result<()> {
    packages(root)?;
    for folder in ["e2e/browser", "e2e/clients", "e2e/mcp"] {
        node_modules(&root.join(folder))?;
    }
    for name in ["python", "clients"] {
        let (into, list) = (
            format!("target/{name}"),
            format!("e2e/{name}/requirements.txt"),
        );
        call(root, "sh", &["e2e/python/setup.sh", &into, &list])?;
    }
    call(root, "sh", &["e2e/real/setup.sh", "target/real"])?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    components(root, &cargo)?;
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
    let mut missing: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| package)
        .collect();
    if !has_venv() {
        missing.push("python3-venv");
    }
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

/// Installs what the tests in JavaScript import, by the lock file, unless it is there already.
fn node_modules(dir: &Path) -> Result<()> {
    let changed = |file: &str| {
        dir.join(file)
            .metadata()
            .and_then(|meta| meta.modified())
            .ok()
    };
    let installed = changed("node_modules/.package-lock.json");
    if installed.is_some() && installed >= changed("package-lock.json") {
        return Ok(());
    }
    call(dir, "npm", &["ci", "--no-audit", "--no-fund"])
}

/// Adds the formatter and the linter where the toolchain came without them.
fn components(root: &Path, cargo: &str) -> Result<()> {
    let works = |tool: &str| {
        let asked = Command::new(cargo).args([tool, "--version"]).output();
        asked.is_ok_and(|done| done.status.success())
    };
    if works("fmt") && works("clippy") {
        return Ok(());
    }
    if !is_there("rustup") {
        bail!("the checks need rustfmt and clippy: install them with your Rust toolchain");
    }
    call(root, "rustup", &["component", "add", "rustfmt", "clippy"])
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Whether Python can make an environment: Debian ships that apart.
fn has_venv() -> bool {
    let asked = Command::new("python3")
        .args(["-c", "import ensurepip, venv"])
        .output();
    asked.is_ok_and(|done| done.status.success())
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
