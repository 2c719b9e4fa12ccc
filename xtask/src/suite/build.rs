//! One compiler pass for lints, documentation and tests: `cargo test --no-run` with the [`Compiler`]
//! in the place of rustc for our own crates. `cargo clippy` and `cargo doc` would check every crate
//! again and share nothing with the build.
//!
//! `schemagen` turns on the feature `schema` of the crates that it reads, the fuzz targets the feature
//! `fuzzing`, and cargo unifies features over what it builds at once. So each has a pass of its own, and
//! the other tests run on the features that ship.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::compiler::Compiler;
use crate::step::cargo;

/// What is built for the tests, in the order it is built: arguments of cargo, and what is added to the
/// labels of the binaries.
const PASSES: [(&[&str], &str); 3] = [
    (
        &[
            "--workspace",
            "--exclude",
            "turnwire-schemagen",
            "--exclude",
            "turnwire-fuzz-targets",
            "--all-targets",
        ],
        "",
    ),
    // The generator of the OpenAPI document stands in the crate of the wires, with its tests.
    (
        &[
            "--package",
            "turnwire-schemagen",
            "--package",
            "turnwire-wire",
            "--features",
            "turnwire-wire/schema",
            "--lib",
            "--bins",
        ],
        " schema",
    ),
    (&["--package", "turnwire-fuzz-targets", "--all-targets"], ""),
];

/// A test binary that cargo built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestBinary {
    /// The folder of its crate from the root, and the target if it is not the crate's own unit
    /// tests: `crates/log`, `e2e it`.
    pub label: String,
    pub path: PathBuf,
    /// The folder of its crate, in which cargo would run it.
    pub dir: PathBuf,
}

/// Everything the tests run.
#[derive(Debug, Default)]
pub struct Built {
    pub tests: Vec<TestBinary>,
    /// The server, built with the same features as the tests.
    pub server: Option<PathBuf>,
}

/// Builds, lints and documents everything; warnings and broken links are errors.
pub fn build(root: &Path) -> Result<Built> {
    let compiler = Compiler::install(root)?;
    let mut built = Built::default();
    for (pass, suffix) in PASSES {
        let mut command = Command::new(cargo());
        command
            .args([
                "test",
                "--no-run",
                "--message-format=json-render-diagnostics",
            ])
            .args(pass)
            .current_dir(root)
            .stdout(Stdio::piped());
        compiler.use_in(&mut command);
        let mut child = command.spawn().context("starting cargo")?;
        let stdout = child.stdout.take().context("cargo has no output")?;
        for line in BufReader::new(stdout).lines() {
            built.add(root, &line?, suffix);
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("`cargo test --no-run {}` failed ({status})", pass.join(" "));
        }
    }
    if built.tests.is_empty() || built.server.is_none() {
        bail!("cargo named no test binaries, or no server");
    }
    Ok(built)
}

/// The part of a message of cargo that matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Built {
    fn add(&mut self, root: &Path, line: &str, suffix: &str) {
        let Ok(message) = serde_json::from_str::<Message>(line) else {
            return;
        };
        let (Some(target), Some(profile), Some(path)) =
            (message.target, message.profile, message.executable)
        else {
            return;
        };
        if message.reason != "compiler-artifact" {
            return;
        }
        let kind = target.kind.first().map(String::as_str).unwrap_or_default();
        match (profile.test, kind) {
            (true, "lib" | "bin" | "test") => {
                let dir = message.manifest_path.parent().unwrap_or(root).to_owned();
                let folder = dir.strip_prefix(root).unwrap_or(&dir);
                let folder = folder.to_string_lossy().replace('\\', "/");
                let label = match kind {
                    "test" => format!("{folder} {}{suffix}", target.name),
                    _ => format!("{folder}{suffix}"),
                };
                self.tests.push(TestBinary { label, path, dir });
            }
            (false, "bin") if target.name == "turnwire" => self.server = Some(path),
            // Benchmarks and examples are built and linted, and not run.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(crate_dir: &str, kind: &str, name: &str, test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/r/{crate_dir}/Cargo.toml",
            "target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},
            "executable":"/r/target/{name}"}}"#
        )
    }

    #[test]
    fn test_binaries_and_the_server_are_collected() {
        let mut built = Built::default();
        for line in [
            artifact("crates/log", "lib", "turnwire_log", true),
            artifact("e2e", "test", "it", true),
            artifact("apps/cli", "bin", "turnwire", false),
            artifact("apps/cli", "bin", "turnwire", true),
            artifact("bench", "bench", "policy", true),
            artifact("e2e", "example", "echo", false),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "no JSON".to_owned(),
        ] {
            built.add(Path::new("/r"), &line, "");
        }
        let labels: Vec<&str> = built.tests.iter().map(|test| test.label.as_str()).collect();
        assert_eq!(labels, ["crates/log", "e2e it", "apps/cli"]);
        assert_eq!(built.tests[1].dir, Path::new("/r/e2e"));
        assert_eq!(
            built.server.as_deref(),
            Some(Path::new("/r/target/turnwire"))
        );
    }
}
