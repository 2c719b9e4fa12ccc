//! The compiler of our own crates while the tests are built: clippy's driver, and rustdoc after it.
//!
//! ```text
//! cargo ─▶ xtask rustc ARGUMENTS ─▶ clippy-driver ─▶ rustdoc of the same crate, thrown away
//! ```
//! cargo runs it as `RUSTC_WORKSPACE_WRAPPER`. So lints and links are checked in the pass that builds
//! the tests, and only where something has changed; `cargo doc` would check every dependency again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

/// Variable with the path of clippy's driver: this process is the compiler.
const DRIVER: &str = "TURNWIRE_CLIPPY_DRIVER";
/// What separates arguments in the variable that clippy's driver reads, as `cargo clippy` sets it.
const SEPARATOR: &str = "__CLIPPY_HACKERY__";

/// A copy of this program as the compiler of our own crates.
#[derive(Debug)]
pub struct Compiler {
    program: PathBuf,
    driver: PathBuf,
}

impl Compiler {
    /// Copies this program, which cargo replaces while it builds.
    pub fn install(root: &Path) -> Result<Self> {
        let driver = clippy_driver()?;
        let program = root.join("target/xtask-compiler");
        copy_own_program(&program).context("copying this program")?;
        Ok(Self { program, driver })
    }

    /// Makes `cargo` compile our own crates with it; warnings are errors.
    pub fn use_in(&self, cargo: &mut Command) {
        cargo
            .env("RUSTC_WORKSPACE_WRAPPER", &self.program)
            .env(DRIVER, &self.driver)
            .env("CLIPPY_ARGS", format!("-D{SEPARATOR}warnings{SEPARATOR}"));
    }
}

fn copy_own_program(to: &Path) -> std::io::Result<()> {
    let own = std::env::current_exe()?;
    let is_current =
        std::fs::read(to).is_ok_and(|copied| std::fs::read(&own).is_ok_and(|own| own == copied));
    if is_current {
        return Ok(());
    }
    // Another run may be using the old one.
    let fresh = to.with_extension(std::process::id().to_string());
    std::fs::copy(&own, &fresh)?;
    std::fs::rename(&fresh, to)
}

/// Compiles one crate, if cargo has started this process to do so.
pub fn run_as_compiler() -> Option<Result<ExitCode>> {
    let driver = PathBuf::from(std::env::var_os(DRIVER)?);
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let rustc = Path::new(arguments.first()?);
    (rustc.file_stem()? == "rustc").then(|| compile(&driver, &arguments))
}

fn compile(driver: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let run = |program: &Path, arguments: &[OsString]| -> Result<bool> {
        let status = Command::new(program).args(arguments).status();
        let status = status.with_context(|| format!("starting {}", program.display()))?;
        Ok(status.success())
    };
    if !run(driver, arguments)? {
        return Ok(ExitCode::FAILURE);
    }
    let Some(mut documented) = rustdoc_arguments(&arguments[1..]) else {
        return Ok(ExitCode::SUCCESS);
    };
    let pages = std::env::temp_dir().join(format!("turnwire-pages-{}", std::process::id()));
    documented.extend(["--out-dir".into(), pages.clone().into()]);
    let is_valid = run(&driver.with_file_name("rustdoc"), &documented);
    // What is left of a build that was ended is in the system's folder for it.
    let _ = std::fs::remove_dir_all(&pages);
    Ok(ExitCode::from(u8::from(!is_valid?)))
}

/// The arguments of rustdoc for the crate that rustc compiles with `rustc`; `None` for tests, macros,
/// build scripts and questions of cargo.
fn rustdoc_arguments(rustc: &[OsString]) -> Option<Vec<OsString>> {
    let mut kept: Vec<OsString> = [
        "--document-private-items",
        "-Dwarnings",
        "--error-format=json",
        "--json=diagnostic-rendered-ansi",
    ]
    .map(OsString::from)
    .to_vec();
    let mut has_source = false;
    let mut arguments = rustc.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_str()?;
        match text {
            "--test" => return None,
            "--crate-name" | "--crate-type" | "--cfg" | "--check-cfg" | "--extern" | "-L" => {
                let value = arguments.next()?;
                if value == "build_script_build" || value == "proc-macro" {
                    return None;
                }
                kept.extend([argument.clone(), value.clone()]);
            }
            _ if text.starts_with("--edition") => kept.push(argument.clone()),
            _ if !text.starts_with('-') && text.ends_with(".rs") => {
                has_source = true;
                kept.push(argument.clone());
            }
            _ => {}
        }
    }
    has_source.then_some(kept)
}

/// Clippy's driver in the folder of the toolchain.
fn clippy_driver() -> Result<PathBuf> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()?;
    let sysroot = String::from_utf8(output.stdout)?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    if !driver.is_file() {
        bail!(
            "{} is missing: run `rustup component add clippy`",
            driver.display()
        );
    }
    Ok(driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let kept = rustdoc_arguments(&words)?;
        let kept: Option<Vec<&str>> = kept[4..].iter().map(|word| word.to_str()).collect();
        kept.map(|words| words.join(" "))
    }

    #[test]
    fn rustdoc_reads_the_crate_that_rustc_compiles() {
        let rustc = "--crate-name turnwire_hub --edition=2024 crates/hub/src/lib.rs \
                     --error-format=json --crate-type lib --emit=dep-info,metadata,link \
                     -C metadata=1 --cfg f --check-cfg cfg(docsrs) --out-dir target -L dependency=d \
                     --extern bytes=b.rmeta -W unused";
        assert_eq!(
            arguments(rustc).expect("a crate"),
            "--crate-name turnwire_hub --edition=2024 crates/hub/src/lib.rs --crate-type lib \
             --cfg f --check-cfg cfg(docsrs) -L dependency=d --extern bytes=b.rmeta"
        );
    }

    #[test]
    fn tests_macros_and_questions_are_not_documented() {
        for rustc in [
            "--crate-name turnwire_hub crates/hub/src/lib.rs --test",
            "--crate-name build_script_build build.rs --crate-type bin",
            "--crate-name makes src/lib.rs --crate-type proc-macro",
            "- --crate-name ___ --print=file-names --crate-type bin",
        ] {
            assert_eq!(arguments(rustc), None, "{rustc}");
        }
    }
}
