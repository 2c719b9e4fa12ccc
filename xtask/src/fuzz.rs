//! `cargo xtask fuzz [TARGET] [--seconds N]`: the fuzz targets with libFuzzer, one after the other.
//!
//! cargo-fuzz builds them without a sanitizer, which a stable compiler can do: the code is safe Rust, so
//! what is looked for are panics, broken properties, time and memory. Inputs that reach new code are kept
//! below `target/fuzz`, where the next run starts with them; an input that fails is left in
//! `fuzz/artifacts`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::step::{call, cargo, step};

/// The version of cargo-fuzz that is installed if there is none.
const CARGO_FUZZ: &str = "0.13.2";
/// Seconds for each target if no number is given: all of them take about twenty minutes.
const SECONDS: u64 = 60;
/// The largest input of any target; a target reads less of it if it needs less.
const INPUT_BYTES_MAX: usize = 16_384;
/// The memory of a target with its corpus, in MiB: several times what any of them takes.
const MEMORY_MIB_MAX: usize = 1_024;
/// Seconds for one input: a thousand times what a slow one takes.
const INPUT_SECONDS_MAX: usize = 10;

/// The arguments, checked before anything is built.
#[derive(Debug, PartialEq, Eq)]
struct FuzzArgs<'a> {
    targets: Vec<&'a str>,
    seconds: u64,
}

impl<'a> FuzzArgs<'a> {
    fn read(arguments: &'a [String], all: &[&'a str]) -> Result<Self> {
        let (arguments, seconds) = match arguments {
            [rest @ .., flag, seconds] if flag == "--seconds" => match seconds.parse() {
                Ok(seconds @ 1..) => (rest, seconds),
                _ => bail!("{seconds:?} is not a time: write a whole number of seconds from 1"),
            },
            all => (all, SECONDS),
        };
        let targets = match arguments {
            [] => all.to_vec(),
            [name] if all.contains(&name.as_str()) => vec![name.as_str()],
            [name] => bail!("no such target: {name}; there are {}", all.join(", ")),
            _ => bail!("usage: cargo xtask fuzz [TARGET] [--seconds N]"),
        };
        Ok(Self { targets, seconds })
    }
}

/// The names of all targets, from the manifest of their programs.
fn targets(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines();
    let paths = lines.filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
    paths.map(|path| path.trim_end_matches(".rs\"")).collect()
}

/// Builds the targets and runs each; fails at the first input that a target fails on.
pub fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml"))?;
    let all = targets(&manifest);
    let args = FuzzArgs::read(arguments, &all)?;
    install(root)?;
    for target in args.targets {
        let name = format!("fuzz {target} for {} s", args.seconds);
        step(&name, || fuzz(root, target, args.seconds))?;
    }
    Ok(())
}

/// Installs cargo-fuzz where it is missing.
fn install(root: &Path) -> Result<()> {
    let found = Command::new(cargo())
        .args(["fuzz", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let arguments = ["install", "--locked", "cargo-fuzz", "--version", CARGO_FUZZ];
    step("install cargo-fuzz", || call(root, &cargo(), &arguments))
}

fn fuzz(root: &Path, target: &str, seconds: u64) -> Result<()> {
    let found = format!("target/fuzz/corpus/{target}");
    std::fs::create_dir_all(root.join(&found)).with_context(|| format!("creating {found}"))?;
    let seeds = format!("fuzz/corpus/{target}");
    let limits = [
        format!("-max_len={INPUT_BYTES_MAX}"),
        format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
        format!("-timeout={INPUT_SECONDS_MAX}"),
        format!("-max_total_time={seconds}"),
    ];
    let mut arguments = vec!["fuzz", "run", "--sanitizer", "none"];
    arguments.extend(["--target-dir", "target/fuzz", target, &found, &seeds, "--"]);
    arguments.extend(limits.iter().map(String::as_str));
    call(root, &cargo(), &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_name_a_target_and_a_time() {
        let all = ["sse", "pack"];
        let read = |text: &str| {
            let words = words(text);
            let args = FuzzArgs::read(&words, &all).map_err(|error| error.to_string())?;
            let targets: Vec<String> = args.targets.iter().map(|&name| name.to_owned()).collect();
            Ok::<_, String>((targets.join(" "), args.seconds))
        };
        assert_eq!(read(""), Ok(("sse pack".to_owned(), SECONDS)));
        assert_eq!(read("pack --seconds 5"), Ok(("pack".to_owned(), 5)));
        assert_eq!(read("--seconds 7"), Ok(("sse pack".to_owned(), 7)));
        assert_eq!(
            read("sqe"),
            Err("no such target: sqe; there are sse, pack".to_owned())
        );
        for wrong in [
            "sse pack",
            "sse --seconds",
            "--seconds 0",
            "sse --seconds -1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn targets_are_the_programs_of_the_manifest() {
        let manifest = include_str!("../../fuzz/Cargo.toml");
        let all = targets(manifest);
        assert!(all.contains(&"client_frame") && all.len() >= 15, "{all:?}");
    }
}
