//! The parts of a run: each starts servers and clients in turn and makes its section.
//!
//! Within a round Turnwire and its reference follow each other at once, so that a noisy
//! neighbour hits both; medians are taken over the rounds.

pub mod access;
pub mod append;
pub mod chat;
pub mod dispatch;
pub mod fanout;
pub mod growth;
pub mod idle;
pub mod models;
pub mod relay;
pub mod replay;
pub mod sse;
pub mod stop;
pub mod tracing;
pub mod turns;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::CpuUsage;
use crate::process::{BenchProgram, ServerProcess};
use crate::report::ReportSection;
use crate::sample::WORDS;
use crate::stat::{median, short};

/// The pause before each delta of a turn whose message is `slow`.
pub const SLOW_MS: u64 = 5;

/// The pause before each delta of a turn whose message is `stall`: longer than idle connections are
/// looked at.
const STALL_MS: u64 = 60_000;

/// Which servers a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchScope {
    /// Turnwire and the references.
    Both,
    /// The references alone: what this machine can do.
    Reference,
}

/// How much a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchEffort {
    Full,
    /// A small run that shows that everything works.
    Quick,
}

/// The configuration that every part of a run uses.
#[derive(Clone, Debug)]
pub struct BenchConfig {
    pub program: BenchProgram,
    /// Rounds that medians are taken of.
    pub rounds: usize,
    /// Full or quick run.
    pub effort: BenchEffort,
    pub scope: BenchScope,
    /// A folder on the disk that is measured.
    pub data: PathBuf,
    /// The server's binary; none to build it and take the one beside this program.
    pub binary: Option<PathBuf>,
}

/// A part of the benchmark, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BenchPart {
    /// One producer, many watchers on WebSockets.
    Fanout,
    /// One producer, many watchers on streams of the turn, and on both.
    Sse,
    Append,
    Replay,
    Turns,
    /// Turns whose answer is their stream.
    Chat,
    /// Turns that ask sub-agents.
    Dispatch,
    /// Turns whose words come from a provider of models.
    Models,
    /// Turns that an agent elsewhere answers.
    Relay,
    /// Turns with and without traces.
    Tracing,
    /// Checks of tokens, and turns with and without authentication.
    Access,
    /// Turns that are stopped.
    Stop,
    Idle,
    IdleSse,
    /// Bytes on disk and in memory of sessions, turns, deltas and events.
    Growth,
}

impl BenchPart {
    /// All parts in the order of the report.
    pub const ALL: [Self; 15] = [
        Self::Fanout,
        Self::Sse,
        Self::Append,
        Self::Replay,
        Self::Turns,
        Self::Chat,
        Self::Dispatch,
        Self::Models,
        Self::Relay,
        Self::Tracing,
        Self::Access,
        Self::Stop,
        Self::Idle,
        Self::IdleSse,
        Self::Growth,
    ];

    /// Whether it measures the release binary, and not only what this program links.
    fn needs_binary(self) -> bool {
        match self {
            Self::Replay
            | Self::Turns
            | Self::Chat
            | Self::Dispatch
            | Self::Models
            | Self::Relay
            | Self::Tracing
            | Self::Access
            | Self::Stop
            | Self::Idle
            | Self::IdleSse
            | Self::Growth => true,
            Self::Fanout | Self::Sse | Self::Append => false,
        }
    }

    /// Measures it, and what other programs took of the machine meanwhile.
    pub fn run(self, bench: &BenchConfig) -> io::Result<ReportSection> {
        let before = CpuUsage::now()?;
        let section = match self {
            Self::Fanout => fanout::run(bench),
            Self::Sse => sse::run(bench),
            Self::Append => append::run(bench),
            Self::Replay => replay::run(bench),
            Self::Turns => turns::run(bench),
            Self::Chat => chat::run(bench),
            Self::Dispatch => dispatch::run(bench),
            Self::Models => models::run(bench),
            Self::Relay => relay::run(bench),
            Self::Tracing => tracing::run(bench),
            Self::Access => access::run(bench),
            Self::Stop => stop::run(bench),
            Self::Idle => idle::run(bench, idle::Kind::WebSockets),
            Self::IdleSse => idle::run(bench, idle::Kind::Streams),
            Self::Growth => growth::run(bench),
        }?;
        Ok(ReportSection {
            others: CpuUsage::now()?.others_since(before),
            ..section
        })
    }
}

impl BenchConfig {
    /// `full`, or a part of it for a quick run.
    pub fn scaled(&self, full: u64) -> u64 {
        match self.effort {
            BenchEffort::Full => full,
            BenchEffort::Quick => (full / 10).max(1),
        }
    }

    /// The floor, with WebSocket frames and blocks of streams as long as Turnwire's were.
    pub fn floor(&self, frame_bytes: f64, block_bytes: f64) -> io::Result<ServerProcess> {
        let mut command = self.program.role(&["floor"]);
        for (name, bytes) in [
            ("--frame-bytes", frame_bytes),
            ("--block-bytes", block_bytes),
        ] {
            command.args([name, &(bytes.round() as usize).to_string()]);
        }
        ServerProcess::start(command)
    }

    /// Builds the release binary unless one is given, and writes what its model says.
    pub fn prepare(&self, parts: &[BenchPart]) -> io::Result<()> {
        if self.scope == BenchScope::Reference || !parts.iter().any(|part| part.needs_binary()) {
            return Ok(());
        }
        if self.binary.is_none() {
            self.build()?;
        }
        let text = WORDS.repeat(200);
        let chunk = WORDS.len();
        let script = format!(
            "- when: {{user: '^slow'}}\n  steps:\n    \
             - {{text: '{text}', chunk: {chunk}, delay_ms: {SLOW_MS}}}\n\
             - when: {{user: '^stall'}}\n  steps:\n    \
             - {{text: '{text}', chunk: {chunk}, delay_ms: {STALL_MS}}}\n\
             - when: {{user: '.*'}}\n  steps:\n    \
             - {{text: '{text}', chunk: {chunk}}}\n"
        );
        std::fs::write(self.script(), script)
    }

    fn build(&self) -> io::Result<()> {
        self.say("building the release binary");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--release", "--package", "turnwire"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()?;
        match built.success() {
            true => Ok(()),
            false => Err(io::Error::other("the release binary could not be built")),
        }
    }

    fn script(&self) -> PathBuf {
        self.data.join("script.yaml")
    }

    /// Turnwire in this program, with a producer that the load client paces.
    pub fn paced_server(&self) -> io::Result<ServerProcess> {
        let dir = self.fresh_dir("paced")?.display().to_string();
        ServerProcess::start(self.program.role(&["paced", "--dir", &dir]))
    }

    /// The release binary on `dir`, with more environment.
    pub fn turnwire_server(&self, dir: &Path, env: &[(&str, &str)]) -> io::Result<ServerProcess> {
        let mut command = self.turnwire(dir, env);
        command.arg("--script").arg(self.script());
        ServerProcess::start(command)
    }

    /// The command that serves `dir` with the release binary and what is built into it, with
    /// more environment.
    pub fn turnwire(&self, dir: &Path, env: &[(&str, &str)]) -> Command {
        self.turnwire_command("serve", dir, env)
    }

    /// Like [`turnwire`](Self::turnwire), with another command that serves.
    pub fn turnwire_command(&self, name: &str, dir: &Path, env: &[(&str, &str)]) -> Command {
        let mut command = self.shipped();
        command
            .args([name, "--listen", "127.0.0.1:0", "--home"])
            .arg(dir)
            .env("TURNWIRE_LOG", "warn")
            .env("TURNWIRE_MODEL_SCRIPT_PACE_PERCENT", "0")
            .envs(env.iter().copied());
        command
    }

    /// The command that checks a session's log with the release binary.
    pub fn turnwire_verify(&self, session: &str) -> Command {
        let mut command = self.shipped();
        command.args(["verify", session]);
        command
    }

    fn shipped(&self) -> Command {
        let built = || self.program.sibling("turnwire");
        Command::new(self.binary.clone().unwrap_or_else(built))
    }

    /// A new empty folder on the disk that is measured.
    pub fn fresh_dir(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.data.join(name);
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir_all(&dir)?,
        }
        Ok(dir)
    }

    /// Prints progress on standard error.
    pub fn say(&self, what: &str) {
        eprintln!("bench: {what}");
    }
}

/// The results of Turnwire and of the reference, one entry per round.
#[derive(Clone, Debug)]
pub struct PairedResults<T> {
    /// Results of Turnwire; empty if only references run.
    pub turnwire: Vec<T>,
    /// Results of the reference; empty if it has no such figure.
    pub floor: Vec<T>,
}

impl<T> Default for PairedResults<T> {
    fn default() -> Self {
        Self {
            turnwire: Vec::new(),
            floor: Vec::new(),
        }
    }
}

impl<T> PairedResults<T> {
    /// The medians of a figure.
    pub fn medians(&self, figure: impl Fn(&T) -> f64) -> (Option<f64>, Option<f64>) {
        let of = |all: &[T]| {
            (!all.is_empty()).then(|| median(&all.iter().map(&figure).collect::<Vec<_>>()))
        };
        (of(&self.turnwire), of(&self.floor))
    }

    /// Ours : reference, round by round.
    fn ratios(&self, figure: impl Fn(&T) -> f64) -> Vec<f64> {
        let both = self.turnwire.iter().zip(&self.floor);
        both.map(|(turnwire, floor)| figure(turnwire) / figure(floor))
            .filter(|ratio| ratio.is_finite())
            .collect()
    }

    /// The median over the rounds of turnwire : reference.
    pub fn ratio(&self, figure: impl Fn(&T) -> f64) -> Option<f64> {
        let ratios = self.ratios(figure);
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    /// The median ratio, and the least and the greatest, so that a noisy one is seen to be so.
    pub fn ratio_cell(&self, figure: impl Fn(&T) -> f64) -> String {
        let ratios = self.ratios(figure);
        let least = ratios.iter().copied().reduce(f64::min);
        let greatest = ratios.iter().copied().reduce(f64::max);
        match (least, greatest) {
            (Some(least), Some(greatest)) => {
                format!("{:.2} ({least:.2}–{greatest:.2})", median(&ratios))
            }
            _ => "–".to_owned(),
        }
    }
}

/// A figure in a table, a dash where there is none.
pub fn cell(figure: Option<f64>, print: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "–".to_owned(), print)
}

/// A section without rows yet, of lines that [`row`] makes.
pub fn paired_section(title: &'static str, text: String) -> ReportSection {
    ReportSection {
        title,
        text,
        columns: vec![
            "figure",
            "Turnwire",
            "reference",
            "ratio",
            "the reference is",
        ],
        rows: Vec::new(),
        aims: Vec::new(),
        peers: None,
        others: 0.0,
    }
}

/// One line: a figure, and the same of what stands beside it.
pub fn row<T>(
    name: &str,
    pair: &PairedResults<T>,
    beside: &str,
    figure: impl Fn(&T) -> f64,
) -> Vec<String> {
    let (turnwire, floor) = pair.medians(&figure);
    vec![
        name.to_owned(),
        cell(turnwire, short),
        cell(floor, short),
        pair.ratio_cell(&figure),
        beside.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_show_their_range() {
        let pair = PairedResults {
            turnwire: vec![1.0, 3.0, 2.0],
            floor: vec![2.0, 2.0, 2.0],
        };
        assert_eq!(pair.ratio(|figure| *figure), Some(1.0));
        assert_eq!(pair.ratio_cell(|figure| *figure), "1.00 (0.50–1.50)");
        assert_eq!(
            PairedResults::<f64>::default().ratio_cell(|figure| *figure),
            "–"
        );
    }
}
