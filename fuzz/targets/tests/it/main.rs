//! Every target over its corpus and some thousand inputs that are made of it, the same in each run.
//! `TURNWIRE_SEED` plays others. `cargo xtask fuzz` searches longer, with the coverage as its guide.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use turnwire_fuzz_targets::Target;
use turnwire_fuzz_targets::mutator::Mutator;

/// Inputs of one target: what a target of some thousand runs a second reads within [`TIME_MAX`].
const RUNS: usize = 20_000;
/// The time for one target; slow ones read fewer inputs.
const TIME_MAX: Duration = Duration::from_secs(4);
/// A target that reads fewer inputs in its time has become too slow to find anything.
const RUNS_MIN: usize = 200;
/// What the process may have used at its largest. Targets with an input of 16 KiB take a few MiB.
const MEMORY_KIB_MAX: u64 = 512 << 10;

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The seeds of a target, in the order of their names.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = fuzz_folder().join("corpus").join(target.name);
    let listed = std::fs::read_dir(&folder).expect("every target has a corpus");
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("a seed").path()).collect();
    paths.sort();
    let seeds = paths
        .iter()
        .map(|path| std::fs::read(path).expect("a seed"));
    seeds.collect()
}

/// Runs a target on one input; a failure leaves the input in a file and names it.
fn run(target: &Target, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target.run(input))) {
        let file = std::env::temp_dir().join(format!("turnwire-fuzz-{}", target.name));
        std::fs::write(&file, input).expect("a temporary file");
        eprintln!("{} failed on {}:", target.name, file.display());
        eprintln!("{}", String::from_utf8_lossy(input));
        std::panic::resume_unwind(panic);
    }
}

/// The largest memory of this process so far.
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn holds(name: &str) {
    let target = Target::named(name).expect("a target");
    let seeds = corpus(&target);
    for seed in &seeds {
        assert!(
            seed.len() <= target.bytes_max,
            "{name}: a seed of {} bytes",
            seed.len()
        );
        run(&target, seed);
    }
    let seed = std::env::var("TURNWIRE_SEED").ok();
    let seed = seed.map_or(1, |text| text.parse().expect("TURNWIRE_SEED is a number"));
    let mut mutator = Mutator::new(&seeds, target.bytes_max, seed);
    let (started, mut runs) = (Instant::now(), 0);
    while runs < RUNS && started.elapsed() < TIME_MAX {
        run(&target, &mutator.next_input());
        runs += 1;
    }
    println!(
        "{name}: {runs} inputs in {:.1} s",
        started.elapsed().as_secs_f64()
    );
    assert!(runs >= RUNS_MIN, "{name}: {runs} inputs in {TIME_MAX:?}");
    if let Some(peak) = peak_memory_kib() {
        assert!(peak <= MEMORY_KIB_MAX, "{name}: {peak} KiB");
    }
}

macro_rules! targets {
    ($($name:ident),+ $(,)?) => {
        $(
            // W4
            #[test]
            fn $name() {
                holds(stringify!($name));
            }
        )+

        const TESTED: &[&str] = &[$(stringify!($name)),+];
    };
}

targets![
    cursor,
    client_frame,
    subscribe,
    request_body,
    event_record,
    delta_cuts,
    wal,
    commit_mark,
    sse,
    anthropic,
    openai_chat,
    openai_responses,
    gemini,
    upstream,
    upstream_chat,
    mcp,
    envelope,
    pack,
];

#[test]
fn every_target_has_a_test_a_program_and_a_corpus() {
    let names: Vec<&str> = Target::ALL.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    let manifest = std::fs::read_to_string(fuzz_folder().join("Cargo.toml")).expect("a manifest");
    let programs: Vec<&str> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"))
        .map(|name| name.trim_end_matches(".rs\""))
        .collect();
    assert_eq!(programs, names);
    for target in Target::ALL {
        assert!(corpus(target).len() >= 2, "{}", target.name);
    }
}

#[test]
fn mutator_makes_the_same_inputs_again_and_many_of_them() {
    let seeds = [b"{\"a\": 1}\n".to_vec(), b"second line\n".to_vec()];
    let inputs = |seed| {
        let mut mutator = Mutator::new(&seeds, 64, seed);
        (0..1_000).map(|_| mutator.next_input()).collect::<Vec<_>>()
    };
    assert_eq!(inputs(1), inputs(1));
    let (first, second) = (inputs(1), inputs(2));
    assert_ne!(first, second);
    assert!(first.iter().all(|input| input.len() <= 64));
    let distinct: std::collections::BTreeSet<_> = first.iter().collect();
    assert!(distinct.len() > 800, "{}", distinct.len());
}
