//! Stops: how long after a cancel a turn's terminal is on disk, with nothing of it left.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{BenchConfig, BenchScope, PairedResults, cell};
use crate::http::HttpConnection;
use crate::process::ServerProcess;
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::{percentile, short};

const AT_ONCE: usize = 10;
/// How long a turn works before it is stopped: long enough for its program to run.
const WORKS: Duration = Duration::from_millis(400);
/// What a program has between TERM and KILL, by default.
const GRACE_MS: f64 = 5_000.0;
/// How often the one thing beside it is done by each: a session made is one request and one commit.
const BESIDE: usize = 20;

/// What runs when the cancel comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A model that streams.
    Model,
    /// A program that ends when it is asked to.
    Program,
    /// A worker with a program.
    Worker,
    /// A program that does not.
    Deaf,
}

const KINDS: [Kind; 4] = [Kind::Model, Kind::Program, Kind::Worker, Kind::Deaf];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Model => "a model that streams",
            Self::Program => "a program that ends when asked",
            Self::Worker => "a worker and its program",
            Self::Deaf => "a program that ignores TERM",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::Model => "bench model",
            Self::Program => "bench nap",
            Self::Worker => "bench worker",
            Self::Deaf => "bench deaf",
        }
    }

    fn bound_ms(self) -> f64 {
        match self {
            Self::Model | Self::Program | Self::Worker => 500.0,
            Self::Deaf => 5_500.0,
        }
    }

    /// The line of the receipt without which it was not stopped in its midst.
    fn line(self) -> (&'static str, &'static str) {
        match self {
            Self::Model => ("llm", "stopped"),
            Self::Program => ("process", "stopped"),
            Self::Worker => ("worker", "stopped"),
            Self::Deaf => ("process", "killed"),
        }
    }

    /// Stops of each of those at once.
    fn stops(self, bench: &BenchConfig) -> u64 {
        match self {
            Self::Model | Self::Program | Self::Worker => bench.scaled(20),
            Self::Deaf => bench.scaled(5),
        }
    }
}

/// The workshop, with a program that ignores TERM and a script that asks for each kind.
fn write_pack(into: &Path) -> io::Result<()> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/workshop");
    copy(&from, into)?;
    let change = |file: &str, change: &dyn Fn(String) -> String| {
        let path = into.join(file);
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(path, change(text))
    };
    change("orchestrator.yaml", &|text| {
        text.replace("nap, research]", "nap, research, deaf]")
    })?;
    change("tools.yaml", &|text| {
        text + "\n  - name: deaf\n    connector: process\n    description: Does not listen.\n    \
            command: [sh, -c, \"trap '' TERM; while :; do sleep 1; done\"]\n    stdin: none\n    \
            input_schema: {type: object}\n    timeout_ms: 60000\n"
    })?;
    change("workers/researcher/agent.yaml", &|text| {
        let text = text.replace("tools: [", "tools: [nap, ");
        // The nap may take longer than the researcher has.
        text.replace("timeout_ms: 120000", "timeout_ms: 400000")
    })?;
    let script = "- when: {user: '^bench model'}\n  steps:\n    \
        - {text: 'one two three four five six seven eight nine ten ', chunk: 4, delay_ms: 200}\n\
        - when: {user: '^bench nap'}\n  steps:\n    - tool: {name: nap, input: {seconds: 120}}\n\
        - when: {user: '^bench worker'}\n  steps:\n    - tool: {name: research, input: {task: 'bench nap'}}\n\
        - when: {user: '^bench deaf'}\n  steps:\n    - tool: {name: deaf, input: {}}\n";
    std::fs::write(into.join("scripts/05-bench.yaml"), script)
}

fn copy(from: &Path, into: &Path) -> io::Result<()> {
    std::fs::create_dir_all(into)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = into.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => drop(std::fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}

/// What one of those at once does; gives the times in milliseconds.
fn stops(server: std::net::SocketAddr, kind: Kind, count: u64) -> io::Result<Vec<f64>> {
    let mut http = HttpConnection::connect(server)?;
    let session = http.create_session()?;
    let mut times = Vec::new();
    for _ in 0..count {
        let turn = http.submit(&session, kind.message())?;
        std::thread::sleep(WORKS);
        let stop_sent = Instant::now();
        let end = http.stop(&turn)?;
        times.push(stop_sent.elapsed().as_secs_f64() * 1e3);
        let (of, outcome) = kind.line();
        let lines = end["receipt"].as_array().into_iter().flatten();
        let mut lines = lines.map(|line| (&line["kind"], &line["outcome"]));
        if !lines.any(|line| line == (&of.into(), &outcome.into())) {
            return Err(io::Error::other(format!("{}: {end}", kind.name())));
        }
    }
    Ok(times)
}

/// The one thing beside it: a request that is answered when its one commit is on disk.
fn commits(server: std::net::SocketAddr) -> io::Result<Vec<f64>> {
    let mut http = HttpConnection::connect(server)?;
    let mut times = Vec::new();
    for _ in 0..BESIDE {
        let stop_sent = Instant::now();
        http.create_session()?;
        times.push(stop_sent.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}

fn at_once(work: impl Fn() -> io::Result<Vec<f64>> + Sync) -> io::Result<Vec<f64>> {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(&work)).collect();
        let mut times = Vec::new();
        for one in all {
            let joined = one.join();
            times.extend(joined.map_err(|_| io::Error::other("a client broke"))??);
        }
        Ok(times)
    })
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut section = ReportSection {
        title: "Stops: from the cancel to the terminal on disk",
        text: format!(
            "The release binary with the scripted model and durability full; {AT_ONCE} clients at \
             once, each with a session of its own. A turn works for {} ms, then \
             `POST /turns/{{id}}/cancel?wait=true` is timed: it is answered when `turn.cancelled` is \
             on disk, after every process and worker of the turn is gone. Beside it stands a request \
             with one commit (a session made) on the same server in the same round; for a program \
             that ignores TERM, the grace it is given.",
            WORKS.as_millis()
        ),
        columns: vec![
            "what runs",
            "stops",
            "p50 ms",
            "p99 ms",
            "max ms",
            "beside it p50 ms",
            "ratio of p50",
        ],
        rows: Vec::new(),
        aims: Vec::new(),
        peers: None,
        others: 0.0,
    };
    if bench.scope == BenchScope::Reference {
        return Ok(section);
    }
    let pack = bench.fresh_dir("stop-pack")?;
    write_pack(&pack)?;
    for kind in KINDS {
        bench.say(&format!("stops, {}", kind.name()));
        let mut pair: PairedResults<f64> = PairedResults::default();
        let mut all = Vec::new();
        for _ in 0..bench.rounds {
            let dir = bench.fresh_dir("stop")?;
            let mut command = bench.turnwire(&dir, &[("TURNWIRE_STORE_DURABILITY", "full")]);
            command.arg("--pack").arg(&pack);
            let server = ServerProcess::start(command)?;
            let address = server.address;
            let times = at_once(|| stops(address, kind, kind.stops(bench)))?;
            pair.turnwire.push(percentile(&times, 50.0));
            pair.floor.push(match kind {
                Kind::Deaf => GRACE_MS,
                Kind::Model | Kind::Program | Kind::Worker => {
                    percentile(&at_once(|| commits(address))?, 50.0)
                }
            });
            all.extend(times);
            server.stop()?;
            std::fs::remove_dir_all(dir)?;
        }
        let (turnwire, floor) = pair.medians(|figure| *figure);
        let p99 = percentile(&all, 99.0);
        section.rows.push(vec![
            kind.name().to_owned(),
            all.len().to_string(),
            cell(turnwire, short),
            short(p99),
            short(percentile(&all, 100.0)),
            cell(floor, short),
            pair.ratio_cell(|figure| *figure),
        ]);
        let figure = format!("stop, p99 to the terminal, {}", kind.name());
        section.aims.push(PerformanceTarget::at_most(
            &figure,
            p99,
            kind.bound_ms(),
            " ms",
        ));
    }
    std::fs::remove_dir_all(pack)?;
    Ok(section)
}

#[cfg(test)]
mod tests {
    use turnwire_pack::{PackFiles, check};

    use super::*;

    #[test]
    fn changed_workshop_has_no_mistakes() {
        let dir = tempfile::tempdir().expect("a folder");
        write_pack(dir.path()).expect("the pack");
        let files = PackFiles::read(dir.path()).expect("its files");
        let report = check(&files, &|_| None);
        assert_eq!(report.findings, []);
        let pack = report.pack.expect("a pack");
        let researcher = pack.workers.iter().find(|worker| worker.id == "researcher");
        let tools = &researcher.expect("the researcher").tools;
        assert!(tools.iter().any(|tool| tool == "nap"), "{tools:?}");
    }
}
