//! `turnwire-bench [PART]… [--quick] [--reference]`: measures, prints the table, and after a
//! whole run writes it to `bench/RESULTS.md`. `turnwire-bench role …` is how it starts itself.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use turnwire_bench::machine;
use turnwire_bench::part::{BenchConfig, BenchEffort, BenchPart, BenchScope};
use turnwire_bench::process::BenchProgram;
use turnwire_bench::report::{self, RunInfo, markdown};
use turnwire_bench::role::{BenchRole, play};

// What the release binary has, so that servers started from here have it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Turnwire beside a reference in the same run.
#[derive(Parser)]
#[command(name = "turnwire-bench")]
struct Args {
    /// The parts to measure; all of them by default.
    #[arg(value_enum)]
    parts: Vec<BenchPart>,
    /// A tenth of the work, one round: to see that it runs.
    #[arg(long)]
    quick: bool,
    #[arg(long)]
    reference: bool,
    /// Rounds that medians are taken of.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A folder on the disk to measure; what is in `bench-data` below it is removed.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target"))]
    data: PathBuf,
    /// Measure this binary of the server instead of building one.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where the table goes; by default to RESULTS.md after a whole run, else nowhere.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Parser)]
struct RoleArgs {
    #[command(subcommand)]
    role: BenchRole,
}

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let done = match args.nth(1).is_some_and(|first| first == "role") {
        true => play(RoleArgs::parse_from(std::env::args_os().skip(1)).role),
        false => measure(&Args::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Args {
    fn bench(&self) -> io::Result<BenchConfig> {
        let (rounds, effort) = match self.quick {
            true => (1, BenchEffort::Quick),
            false => (self.rounds.max(1), BenchEffort::Full),
        };
        Ok(BenchConfig {
            program: BenchProgram::own()?,
            rounds,
            effort,
            scope: match self.reference {
                true => BenchScope::Reference,
                false => BenchScope::Both,
            },
            data: self.data.join("bench-data"),
            binary: self.binary.clone(),
        })
    }

    /// What makes the same table again.
    fn command(&self) -> String {
        let parts = self.parts.iter().filter_map(BenchPart::to_possible_value);
        let mut words: Vec<String> = parts.map(|part| part.get_name().to_owned()).collect();
        for (given, flag) in [
            (self.quick, "--quick"),
            (self.reference, "--reference"),
            (self.binary.is_some(), "--binary FILE"),
        ] {
            words.extend(given.then(|| flag.to_owned()));
        }
        match words.is_empty() {
            true => "cargo run --release -p turnwire-bench".to_owned(),
            false => format!(
                "cargo run --release -p turnwire-bench -- {}",
                words.join(" ")
            ),
        }
    }

    /// Where the table goes, if anywhere: a whole run is what the project shows.
    fn out(&self) -> Option<PathBuf> {
        let is_full_run = self.parts.is_empty() && !self.quick && !self.reference;
        let results = || concat!(env!("CARGO_MANIFEST_DIR"), "/RESULTS.md").into();
        self.out.clone().or_else(|| is_full_run.then(results))
    }
}

fn measure(args: &Args) -> io::Result<()> {
    machine::raise_open_files()?;
    let bench = args.bench()?;
    std::fs::create_dir_all(&bench.data)?;
    let parts = match args.parts.is_empty() {
        true => &BenchPart::ALL[..],
        false => &args.parts,
    };
    bench.prepare(parts)?;
    // A part that fails must not lose what the others have measured.
    let (mut sections, mut failed) = (Vec::new(), Ok(()));
    for part in parts {
        match part.run(&bench) {
            Ok(section) => sections.push(section),
            Err(error) => {
                eprintln!("bench: {part:?} failed: {error}");
                failed = Err(error);
            }
        }
    }
    let run = RunInfo {
        command: args.command(),
        rounds: bench.rounds,
    };
    std::fs::remove_dir_all(&bench.data)?;
    let text = markdown(&run, &sections);
    print!("{text}");
    failed?;
    if let Some(path) = args.out() {
        std::fs::write(path, text)?;
    }
    report::check_required(&sections).map_err(io::Error::other)
}
