//! `cargo xtask size`: how large the project is and how long it takes to build, in one table.
//!
//! Lines are lines of Rust files that are not blank. *Product* is what ships, *test* is code that only
//! tests compile, *kit* is what tests, benchmarks and tasks are made of. A module that begins with
//! `#[cfg(test)]` inside a product file counts as test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::metadata::Metadata;
use crate::source::{self, Source};
use crate::step::{cargo, clock, step};

/// Members that are not part of the product.
const KIT: [&str; 5] = ["crates/testkit", "e2e", "bench", "xtask", "schemagen"];
/// The target folder of the cold build.
const TARGET: &str = "target/size";

/// Lines of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    product: usize,
    test: usize,
    kit: usize,
}

/// Prints the report. `build` makes a cold release build as the README's first command does.
pub fn run(root: &Path, build: bool) -> Result<()> {
    let sources = source::all(root)?;
    print!("{}", table(&lines(&sources)));
    let metadata = Metadata::read(root)?;
    let third_party = metadata.packages.len() - metadata.members().count();
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let locked = lock.lines().filter(|line| *line == "[[package]]").count();
    println!("crates locked: {locked}, of them {third_party} third-party crates for this platform");
    println!("crates compiled for the binary: {}", in_binary(root)?);
    println!("test binaries: {}", test_binaries(&sources));
    if build {
        let built = step("cold release build", || cold_build(root))?;
        println!(
            "binary: {:.1} MB; build: {} of wall time, {} of CPU",
            built.bytes as f64 / 1e6,
            clock(built.wall),
            clock(built.cpu)
        );
    }
    Ok(())
}

/// Lines by member, in path order.
fn lines(sources: &[Source]) -> BTreeMap<&str, Lines> {
    let mut members: BTreeMap<&str, Lines> = BTreeMap::new();
    for source in sources {
        // A build script stands beside the folders of its crate.
        let member = match source.member() {
            "" => source.path.rsplit_once('/').map_or("", |(dir, _)| dir),
            member => member,
        };
        let lines = members.entry(member).or_default();
        let written = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
        let all = written(&source.text);
        if KIT.contains(&member) && !source.is_test() {
            lines.kit += all;
            continue;
        }
        let inside = source.text.find("\n#[cfg(test)]\nmod tests {");
        let product = match (source.is_test(), inside) {
            (true, _) => 0,
            (false, Some(at)) => written(&source.text[..at]),
            (false, None) => all,
        };
        lines.product += product;
        lines.test += all - product;
    }
    members
}

fn table(members: &BTreeMap<&str, Lines>) -> String {
    let row = |name: &str, lines: Lines| {
        format!(
            "{name:<16}{:>9}{:>9}{:>9}\n",
            lines.product, lines.test, lines.kit
        )
    };
    let mut text = format!("{:<16}{:>9}{:>9}{:>9}\n", "lines", "product", "test", "kit");
    let mut total = Lines::default();
    for (name, lines) in members {
        text += &row(name, *lines);
        total.product += lines.product;
        total.test += lines.test;
        total.kit += lines.kit;
    }
    text + &row("total", total)
}

/// Crates that are compiled for `turnwire`, build tools and macros among them.
fn in_binary(root: &Path) -> Result<usize> {
    let output = Command::new(cargo())
        .args(["tree", "-p", "turnwire", "-e", "no-dev", "--prefix", "none"])
        .args(["--format", "{p}"])
        .current_dir(root)
        .output()
        .context("starting cargo tree")?;
    if !output.status.success() {
        bail!(
            "cargo tree failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(distinct(&text))
}

/// The crates in the output of `cargo tree`, which marks those that it names again.
fn distinct(tree: &str) -> usize {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    let crates: BTreeSet<&str> = lines.filter(|line| !line.is_empty()).collect();
    crates.len()
}

/// Binaries that tests are linked into: unit tests of each crate and each file under `tests/`.
fn test_binaries(sources: &[Source]) -> usize {
    let units: BTreeSet<&str> = sources
        .iter()
        .filter(|source| source.module().is_some())
        .map(Source::member)
        .collect();
    let integration = sources.iter().filter(|source| {
        let inside = source
            .path
            .strip_prefix(source.member())
            .unwrap_or_default();
        let Some(inside) = inside.strip_prefix("/tests/") else {
            return false;
        };
        !inside.contains('/') || inside.ends_with("/main.rs") && inside.matches('/').count() == 1
    });
    units.len() + integration.count()
}

/// The figures of a cold build.
struct Built {
    bytes: u64,
    wall: Duration,
    cpu: Duration,
}

fn cold_build(root: &Path) -> Result<Built> {
    let target = root.join(TARGET);
    if target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    let (begun, before) = (Instant::now(), children_cpu()?);
    let status = Command::new(cargo())
        .args(["build", "--release", "-q"])
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(root)
        .status()
        .context("starting cargo build")?;
    if !status.success() {
        bail!("cargo build failed ({status})");
    }
    let built = Built {
        bytes: target.join("release/turnwire").metadata()?.len(),
        wall: begun.elapsed(),
        cpu: children_cpu()?.saturating_sub(before),
    };
    std::fs::remove_dir_all(&target)?;
    Ok(built)
}

/// CPU time of the processes that were started here and have ended (Linux).
fn children_cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
    parse_children_cpu(&stat).context("/proc/self/stat has another form")
}

/// Fields 16 and 17, counted from the process id; the name before may hold blanks. A tick is 10 ms.
fn parse_children_cpu(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_purpose() {
        let sources = [
            Source::new(
                "crates/a/src/lib.rs",
                "//! A.\n\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n",
            ),
            Source::new("crates/a/tests/it/main.rs", "//! T.\nfn t() {}\n"),
            Source::new("crates/a/build.rs", "//! B.\n"),
            Source::new("e2e/src/lib.rs", "//! Kit.\n"),
            Source::new("e2e/tests/it/main.rs", "//! T.\n"),
        ];
        let counted = lines(&sources);
        let of = |product, test, kit| Lines { product, test, kit };
        assert_eq!(counted["crates/a"], of(3, 5, 0));
        assert_eq!(counted["e2e"], of(0, 1, 1));
        assert!(table(&counted).ends_with("total                   3        6        1\n"));
        assert_eq!(test_binaries(&sources), 4);
    }

    #[test]
    fn repeated_crate_counts_once() {
        assert_eq!(
            distinct("a v1.0.0\nb v1.0.0\na v1.0.0 (*)\n\na v2.0.0\n"),
            3
        );
    }

    #[test]
    fn cpu_of_children_is_read_from_the_stat_line() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 250 100 20 0";
        assert_eq!(parse_children_cpu(stat), Some(Duration::from_millis(3_500)));
        assert_eq!(parse_children_cpu("7 (a) S 1"), None);
    }
}
