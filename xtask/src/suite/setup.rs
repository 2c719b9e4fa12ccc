//! Installs what the tests drive: programs by Debian package, JavaScript packages by lock file,
//! Python environments by exact version, a small language model.
//!
//! On Debian as root missing programs are installed; anywhere else the command says which packages
//! to install and stops.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::step::{call, cargo};

/// Programs the tests drive, with the Debian package that has each.
const PROGRAMS: [(&str, &str); 8] = [
    ("chromium", "chromium"),
    ("strace", "strace"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("python3", "python3"),
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("systemd-analyze", "systemd"),
];

/// Installs the programs and packages that the tests drive.
pub fn install(root: &Path) -> Result<()> {
    packages(root)?;
    for folder in ["e2e/api", "e2e/browser", "e2e/clients", "e2e/mcp"] {
        node_modules(&root.join(folder))?;
    }
    let environments = [
        ("e2e", "python"),
        ("e2e", "clients"),
        ("e2e", "api"),
        ("e2e", "ops"),
        ("examples", "langgraph-upstream"),
        ("examples", "adk-upstream"),
    ];
    for (folder, name) in environments {
        let (into, list) = (
            format!("target/{name}"),
            format!("{folder}/{name}/requirements.txt"),
        );
        call(root, "sh", &["e2e/python/setup.sh", &into, &list])?;
    }
    call(
        root,
        "sh",
        &["e2e/prometheus/setup.sh", "target/prometheus"],
    )?;
    call(root, "sh", &["e2e/proxy/setup.sh", "target/proxy"])?;
    call(root, "sh", &["e2e/real/setup.sh", "target/real"])
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
pub fn components(root: &Path) -> Result<()> {
    let works = |tool: &str| {
        let output = Command::new(cargo()).args([tool, "--version"]).output();
        output.is_ok_and(|done| done.status.success())
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
    let output = Command::new("python3")
        .args(["-c", "import ensurepip, venv"])
        .output();
    output.is_ok_and(|done| done.status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|done| done.stdout.trim_ascii() == b"0")
}
