//! Installs the non-Rust dependencies of tests: Python environments and JavaScript packages, by exact
//! version, under the repository's `target/` and `e2e/`. `cargo xtask test` installs them before the
//! tests; a test that runs alone installs its own here. A failed installation fails the test.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use parking_lot::Mutex;

/// Folders installed by this process, to check each only once.
static MADE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the Python environment `target/{name}`, made from `e2e/{name}/requirements.txt`
/// if it is not there or out of date. Its programs are in `bin`.
pub fn python(name: &str) -> PathBuf {
    python_in("e2e", name)
}

/// Like [`python`], for `examples/{name}/requirements.txt`.
pub fn example(name: &str) -> PathBuf {
    python_in("examples", name)
}

fn python_in(folder: &str, name: &str) -> PathBuf {
    let into = root().join("target").join(name);
    let list = root().join(folder).join(name).join("requirements.txt");
    let mut setup = Command::new("sh");
    setup.arg(root().join("e2e/python/setup.sh"));
    once(&into, setup.arg(&into).arg(list));
    into
}

/// The folder with the server and the weights of a real small model.
pub(crate) fn real_model() -> PathBuf {
    let into = root().join("target/real");
    let mut setup = Command::new("sh");
    setup.arg(root().join("e2e/real/setup.sh"));
    once(&into, setup.arg(&into));
    into
}

/// The folder with Prometheus' `promtool`.
pub fn prometheus() -> PathBuf {
    let into = root().join("target/prometheus");
    let mut setup = Command::new("sh");
    setup.arg(root().join("e2e/prometheus/setup.sh"));
    once(&into, setup.arg(&into));
    into
}

/// The folder with the programs `nginx`, `haproxy` and `caddy`.
pub fn proxies() -> PathBuf {
    let into = root().join("target/proxy");
    let mut setup = Command::new("sh");
    setup.arg(root().join("e2e/proxy/setup.sh"));
    once(&into, setup.arg(&into));
    into.join("bin")
}

/// The folder `e2e/{name}` with the JavaScript packages of its lock file installed.
pub fn javascript(name: &str) -> PathBuf {
    let folder = root().join("e2e").join(name);
    let modules = folder.join("node_modules");
    let mut setup = Command::new("npm");
    setup.args(["ci", "--no-audit", "--no-fund"]);
    once_unless(&modules, setup.current_dir(&folder), || {
        is_installed(&folder)
    });
    folder
}

/// Whether the packages are those of the lock file: npm writes its own list when it is done, so
/// one that is there and not older is of a whole install.
fn is_installed(folder: &Path) -> bool {
    let written = |path: PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    let done = written(folder.join("node_modules/.package-lock.json"));
    done.is_some() && done >= written(folder.join("package-lock.json"))
}

fn once(made_here: &Path, setup: &mut Command) {
    once_unless(made_here, setup, || false);
}

fn once_unless(made_here: &Path, setup: &mut Command, is_there: impl FnOnce() -> bool) {
    // Held during the creation: other tests, here and in other processes, wait for it.
    let mut made = MADE.lock();
    if made.contains(made_here) {
        return;
    }
    let lock = File::create(root().join("target/environment.lock")).expect("a lock file");
    lock.lock().expect("a lock on it");
    if is_there() {
        made.insert(made_here.to_owned());
        return;
    }
    let name = made_here.display();
    let done = setup
        .output()
        .unwrap_or_else(|why| panic!("{name}: the programs of the tests are needed: {why}"));
    assert!(
        done.status.success(),
        "{name} cannot be installed; are python3-venv and npm there?\n{}",
        text(&done)
    );
    made.insert(made_here.to_owned());
}

/// Standard output and error of a program as text.
pub fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}
