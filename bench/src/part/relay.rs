//! A relay: five hundred streams of an agent elsewhere, behind Turnwire and behind a proxy that hands
//! bytes on.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{BenchConfig, BenchScope, PairedResults, paired_section, row};
use crate::http::HttpConnection;
use crate::load::models::Outcome;
use crate::paced::CHAT_STREAMS_MAX;
use crate::process::{CorePlacement, ServerProcess};
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::{median, short};

const STREAMS: u64 = 500;

/// From one frame of a stream to its next.
const EVERY_US: u64 = 50_000;

/// Streams without a pause, and the frames of each.
const FAST_STREAMS: u64 = 8;
const FAST_FRAMES: u64 = 20_000;

/// The time over which they begin, so that their frames do not come in chorus.
const SPREAD_MS: u64 = 2_000;

/// How long the streams run before they are measured, and how long they are measured.
const SETTLE_MS: u64 = 5_000;
const MEASURED_MS: u64 = 20_000;

/// Events that are kept in memory of each session: so few that they are all there before the memory
/// is looked at, and do not grow while it is.
const RING_EVENTS: &str = "64";

const CPU_ADDED_US_MAX: f64 = 10.0;
const DELAY_ADDED_MS_MAX: f64 = 10.0;
const STREAM_KB_MAX: f64 = 100.0;

/// How often the rings are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

const RINGS_BYTES: &str = "turnwire_session_rings_bytes ";

const BESIDE: &str = "a proxy that hands bytes on";

/// What a run gave.
#[derive(Clone, Copy, Debug)]
struct RelayFigures {
    load: Outcome,
    /// The most that the rings of all sessions had.
    rings_kb: f64,
}

/// What the agent sends and to how many at once.
#[derive(Clone, Copy, Debug)]
struct Load {
    streams: u64,
    words: u64,
    every_us: u64,
    spread_ms: u64,
    settle_ms: u64,
}

impl Load {
    /// Streams at the pace of a model.
    fn paced(bench: &BenchConfig) -> Self {
        let settle_ms = bench.scaled(SETTLE_MS);
        Self {
            streams: STREAMS,
            words: (SPREAD_MS + settle_ms + bench.scaled(MEASURED_MS)) * 1_000 / EVERY_US,
            every_us: EVERY_US,
            spread_ms: SPREAD_MS,
            settle_ms,
        }
    }

    /// Streams without a pause: the server is never idle.
    fn fast(bench: &BenchConfig) -> Self {
        Self {
            streams: FAST_STREAMS,
            words: bench.scaled(FAST_FRAMES),
            every_us: 0,
            spread_ms: 0,
            settle_ms: 0,
        }
    }

    /// Runs it behind Turnwire and behind the proxy, in each round.
    fn measure(self, bench: &BenchConfig) -> io::Result<PairedResults<RelayFigures>> {
        let mut pair = PairedResults::default();
        for _ in 0..bench.rounds {
            if bench.scope == BenchScope::Both {
                let path = RelayPath::turnwire(bench, &self)?;
                pair.turnwire.push(path.run(bench, &self)?);
            }
            let path = RelayPath::proxy(bench, &self)?;
            pair.floor.push(path.run(bench, &self)?);
        }
        Ok(pair)
    }
}

/// A reported figure: its name and its value.
type Figure = (&'static str, fn(&RelayFigures) -> f64);

const FIGURES: [Figure; 5] = [
    ("frames/s", |run| run.load.thirds[2].rate),
    ("CPU µs a frame", cpu_us),
    ("delay p50, ms", |run| run.load.thirds[2].delay_us.0 / 1e3),
    ("delay p95, ms", |run| run.load.thirds[2].delay_us.1 / 1e3),
    ("delay p99, ms", |run| run.load.thirds[2].delay_us.2 / 1e3),
];

fn cpu_us(run: &RelayFigures) -> f64 {
    run.load.span.server_cpu * 1e6 / run.load.words as f64
}

/// Of a stream, without the newest events, which its ring keeps.
fn stream_kb(run: &RelayFigures) -> f64 {
    let grown = run.load.thirds[2].resident_kb - run.load.before_kb;
    (grown - run.rings_kb) / STREAMS as f64
}

/// Milliseconds that the slowest hundredth of frames is later than what is usual behind the proxy.
fn added_ms(turnwire: &RelayFigures, floor: &RelayFigures) -> f64 {
    (turnwire.load.thirds[2].delay_us.2 - floor.load.thirds[2].delay_us.0) / 1e3
}

/// The agent, which speaks the inner vocabulary, and what stands before it.
struct RelayPath {
    front: ServerProcess,
    agent: ServerProcess,
    reads: &'static str,
}

impl RelayPath {
    fn agent(bench: &BenchConfig, load: &Load) -> io::Result<ServerProcess> {
        let (words, every) = (load.words.to_string(), load.every_us.to_string());
        let mut command = bench.program.role(&["provider", "--inner"]);
        command.args(["--words", &words, "--think-ms", "0", "--every-us", &every]);
        ServerProcess::start_at(CorePlacement::LastCore, command)
    }

    fn turnwire(bench: &BenchConfig, load: &Load) -> io::Result<Self> {
        let agent = Self::agent(bench, load)?;
        let dir = bench.fresh_dir("relay")?;
        let env = [
            ("TURNWIRE_STORE_DURABILITY", "full"),
            ("TURNWIRE_STREAM_CHAT_STREAMS_MAX", CHAT_STREAMS_MAX),
            ("TURNWIRE_TURN_RUNNING_MAX_PER_OWNER", CHAT_STREAMS_MAX),
            ("TURNWIRE_STREAM_RING_EVENTS", RING_EVENTS),
        ];
        let mut command = bench.turnwire_command("relay", &dir, &env);
        command.args(["--upstream", &format!("http://{}/turns", agent.address)]);
        Ok(Self {
            front: ServerProcess::start(command)?,
            agent,
            reads: "chat",
        })
    }

    fn proxy(bench: &BenchConfig, load: &Load) -> io::Result<Self> {
        let agent = Self::agent(bench, load)?;
        let to = agent.address.to_string();
        let command = bench.program.role(&["proxy", "--to", &to]);
        Ok(Self {
            front: ServerProcess::start(command)?,
            agent,
            reads: "inner",
        })
    }

    /// Lets readers read to the end; every frame must come.
    fn run(self, bench: &BenchConfig, load: &Load) -> io::Result<RelayFigures> {
        let mut args = self.front.target();
        for (name, value) in [
            ("--reads", self.reads.to_owned()),
            ("--at-once", load.streams.to_string()),
            ("--warm", "0".to_owned()),
            ("--turns", "1".to_owned()),
            ("--spread-ms", load.spread_ms.to_string()),
            ("--settle-ms", load.settle_ms.to_string()),
        ] {
            args.extend([name.to_owned(), value]);
        }
        let is_done = AtomicBool::new(false);
        let (told, rings) = std::thread::scope(|scope| {
            let looking = scope.spawn(|| self.rings_kb(&is_done));
            let told = bench
                .program
                .tell(CorePlacement::LastCore, &["models"], &args);
            is_done.store(true, Ordering::Relaxed);
            (told, looking.join().expect("no panic there"))
        });
        let told: Outcome = told?;
        let rings_kb = rings?;
        self.front.stop()?;
        self.agent.stop()?;
        if told.completed < load.streams || told.words != load.streams * load.words {
            return Err(io::Error::other(
                "frames were lost, or a turn did not end well",
            ));
        }
        Ok(RelayFigures {
            load: told,
            rings_kb,
        })
    }

    /// The most that the rings had until the readers are done; the proxy has none.
    fn rings_kb(&self, is_done: &AtomicBool) -> io::Result<f64> {
        let mut most: f64 = 0.0;
        while self.reads == "chat" && !is_done.load(Ordering::Relaxed) {
            let metrics = HttpConnection::connect(self.front.address)?.metrics()?;
            let bytes = metrics
                .lines()
                .find_map(|line| line.strip_prefix(RINGS_BYTES));
            let bytes = bytes.and_then(|bytes| bytes.trim().parse::<f64>().ok());
            let bytes = bytes.ok_or_else(|| io::Error::other("no rings in the metrics"))?;
            most = most.max(bytes / 1024.0);
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(most)
    }
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    bench.say(&format!("relay, {STREAMS} streams"));
    let paced = Load::paced(bench).measure(bench)?;
    let fast = Load::fast(bench).measure(bench)?;
    let mut section = paired_section(
        "Relay: agents that run elsewhere",
        format!(
            "`turnwire relay`, durability full, in front of an agent in a process of its own, which speaks \
             the inner vocabulary: its id, then {} frames a second of a word each, with the time at which \
             it is written, on the machine's clock. {STREAMS} people ask at once, begun over {} s; after \
             {} s, {} s are looked at, and the figures of delay and memory are those of their last third. \
             A delay is from the write of a frame until the client (`reqwest`, `sse-stream`, \
             `serde_json`) has parsed it. Beside it the same streams through a proxy that copies bytes \
             between two sockets, with a connection of its own for each. Added is what Turnwire's figure \
             is above the proxy's in the same round; of the delay, Turnwire's p99 above the proxy's p50. \
             Memory is what the server's process has more than before the first turn, without what \
             `turnwire_session_rings_bytes` counts, with {RING_EVENTS} events in each ring. The last rows \
             are {FAST_STREAMS} streams of {FAST_FRAMES} frames without a pause. Turnwire and the proxy are on the first core; the agent and the client share the last one.",
            1_000_000 / EVERY_US,
            SPREAD_MS / 1_000,
            SETTLE_MS / 1_000,
            MEASURED_MS / 1_000,
        ),
    );
    tell(&paced, &mut section);
    tell_fast(&fast, &mut section);
    Ok(section)
}

/// The microseconds of CPU of a frame that Turnwire's are above the proxy's, in each round.
fn cpu_added(pair: &PairedResults<RelayFigures>) -> Vec<f64> {
    let both = pair.turnwire.iter().zip(&pair.floor);
    both.map(|(ours, floor)| cpu_us(ours) - cpu_us(floor))
        .collect()
}

fn tell_fast(pair: &PairedResults<RelayFigures>, section: &mut ReportSection) {
    let name = |what: &str| format!("{FAST_STREAMS} streams without a pause: {what}");
    let rate = |run: &RelayFigures| run.load.words as f64 / run.load.span.seconds;
    section
        .rows
        .push(row(&name("frames/s"), pair, BESIDE, rate));
    section
        .rows
        .push(row(&name("CPU µs a frame"), pair, BESIDE, cpu_us));
    tell_added(
        &name,
        "CPU a frame, added",
        (&cpu_added(pair), CPU_ADDED_US_MAX, " µs"),
        section,
    );
}

/// A figure that has an aim and no reference of its own.
fn tell_added(
    name: &dyn Fn(&str) -> String,
    what: &str,
    (figures, bound, unit): (&[f64], f64, &str),
    section: &mut ReportSection,
) {
    if figures.is_empty() {
        return;
    }
    let dash = || "–".to_owned();
    let figure = median(figures);
    let line = format!("{},{unit}", name(what));
    section
        .rows
        .push(vec![line, short(figure), dash(), dash(), dash()]);
    let aim = format!("relay, {}", name(what).replace(": ", ", "));
    section
        .aims
        .push(PerformanceTarget::at_most(&aim, figure, bound, unit));
}

fn tell(pair: &PairedResults<RelayFigures>, section: &mut ReportSection) {
    let name = |what: &str| format!("{STREAMS} streams: {what}");
    for (what, figure) in FIGURES {
        section.rows.push(row(&name(what), pair, BESIDE, figure));
    }
    let both = pair.turnwire.iter().zip(&pair.floor);
    let delay_added: Vec<f64> = both.map(|(ours, floor)| added_ms(ours, floor)).collect();
    let memory: Vec<f64> = pair.turnwire.iter().map(stream_kb).collect();
    for (what, figures) in [
        (
            "CPU a frame, added",
            (&cpu_added(pair)[..], CPU_ADDED_US_MAX, " µs"),
        ),
        (
            "delay p99, added",
            (&delay_added[..], DELAY_ADDED_MS_MAX, " ms"),
        ),
        (
            "memory of a stream beside its ring",
            (&memory[..], STREAM_KB_MAX, " KiB"),
        ),
    ] {
        tell_added(&name, what, figures, section);
    }
}
