//! Where the server's binary is: `TURNWIRE_BIN`, else beside the test in the target folder,
//! where it is built if it is not there or older than its sources.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The binary, looked for and built once a process.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(find)
}

fn find() -> PathBuf {
    if let Some(given) = std::env::var_os("TURNWIRE_BIN") {
        return given.into();
    }
    let exe = std::env::current_exe().expect("a running test knows its file");
    let folder = exe
        .ancestors()
        .skip(1)
        .find(|folder| !folder.ends_with("deps") && !folder.ends_with("examples"))
        .expect("a test lies in the target folder");
    let binary = folder.join("turnwire");
    if is_stale(&binary) {
        build(folder);
    }
    binary
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_stale(binary: &Path) -> bool {
    let Ok(built) = binary.metadata().and_then(|meta| meta.modified()) else {
        return true;
    };
    let members = ["crates", "apps"].map(|folder| root().join(folder));
    let members = members.iter().flat_map(|folder| entries(folder));
    // The test kit is no part of the server.
    let sources = members.filter(|member| !member.ends_with("testkit"));
    let sources = sources.map(|member| newest(&member.join("src")));
    // The committed schemas are built in.
    let schemas = std::iter::once(newest(&root().join("schema")));
    sources.chain(schemas).max() > Some(built)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten().flatten();
    read.map(|entry| entry.path()).collect()
}

fn newest(path: &Path) -> SystemTime {
    let own = path.metadata().and_then(|meta| meta.modified());
    let own = own.unwrap_or(SystemTime::UNIX_EPOCH);
    if path.is_dir() {
        entries(path)
            .iter()
            .map(|path| newest(path))
            .fold(own, SystemTime::max)
    } else {
        own
    }
}

fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(cargo)
        .args(["build", "-q", "-p", "turnwire", "--profile", profile])
        .current_dir(root())
        .status()
        .expect("cargo runs");
    assert!(done.success(), "turnwire could not be built");
}
