//! The Python environment that some tests drive: `e2e/python/requirements.txt` in `target/python`.
//! `cargo xtask test` makes it before the tests; a test that is run alone makes it itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The programs of the environment, which is made if it is not there or is out of date.
pub fn programs() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let into = root.join("target/python");
        let mut setup = Command::new("sh");
        setup.arg(root.join("e2e/python/setup.sh")).arg(&into);
        let made = setup.output().expect("sh starts");
        assert!(
            made.status.success(),
            "the Python environment of the tests cannot be made; is python3-venv installed?\n{}",
            text(&made)
        );
        into.join("bin")
    })
}

/// Everything that a program said.
pub fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}
