//! `turnwire-bench [PART]… [--quick] [--reference]`: measures, prints the table, and after a
//! whole run writes it to `bench/RESULTS.md`. `turnwire-bench role …` is how it starts itself.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use turnwire_bench::machine;
use turnwire_bench::part::{Bench, Effort, Part, Scope};
use turnwire_bench::process::Program;
use turnwire_bench::report::{Run, markdown};
use turnwire_bench::role::{Role, play};

// What the release binary has, so that servers started from here have it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Turnwire beside a reference in the same run.
#[derive(Parser)]
#[command(name = "turnwire-bench")]
struct Args {
    /// The parts to measure; all of them by default.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// A tenth of the work, one round: to see that it runs.
    #[arg(long)]
    quick: bool,
    /// The references alone.
    #[arg(long)]
    reference: bool,
    /// Rounds that medians are taken of.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A folder on the disk to measure; what is in `bench-data` below it is removed.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target"))]
    data: PathBuf,
    /// Where the table goes; by default to RESULTS.md after a whole run, else nowhere.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Parser)]
struct RoleArgs {
    #[command(subcommand)]
    role: Role,
}

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let done = match args.nth(1).is_some_and(|first| first == "role") {
        true => play(RoleArgs::parse_from(std::env::args_os().skip(1)).role),
        false => measure(Args::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: Args) -> io::Result<()> {
    machine::raise_open_files()?;
    let bench = Bench {
        program: Program::own()?,
        rounds: if args.quick { 1 } else { args.rounds.max(1) },
        effort: if args.quick {
            Effort::Quick
        } else {
            Effort::Full
        },
        scope: if args.reference {
            Scope::Reference
        } else {
            Scope::Both
        },
        data: args.data.join("bench-data"),
    };
    std::fs::create_dir_all(&bench.data)?;
    let whole = args.parts.is_empty();
    let parts = match whole {
        true => Part::ALL.to_vec(),
        false => args.parts,
    };
    bench.prepare(&parts)?;
    let sections = parts
        .iter()
        .map(|part| part.run(&bench))
        .collect::<io::Result<Vec<_>>>()?;
    std::fs::remove_dir_all(&bench.data)?;
    let mut command = "cargo run --release -p turnwire-bench".to_owned();
    if !whole || args.quick || args.reference {
        command.push_str(" --");
        let names = parts.iter().filter(|_| !whole);
        for part in names.filter_map(Part::to_possible_value) {
            command.push(' ');
            command.push_str(part.get_name());
        }
        for (flag, given) in [(" --quick", args.quick), (" --reference", args.reference)] {
            command.push_str(if given { flag } else { "" });
        }
    }
    let run = Run {
        command,
        rounds: bench.rounds,
    };
    let text = markdown(&run, &sections);
    print!("{text}");
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/RESULTS.md");
    let complete = whole && !args.quick && !args.reference;
    match args.out.or_else(|| complete.then(|| results.into())) {
        Some(path) => std::fs::write(path, text),
        None => Ok(()),
    }
}
