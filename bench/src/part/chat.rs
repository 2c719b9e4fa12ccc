//! Chats: `POST /chat/stream` with turns of 200 deltas, 1, 10 and 50 at once.

use std::io;

use super::{BenchConfig, BenchScope, PairedResults, SLOW_MS, cell};
use crate::load::chat::Outcome;
use crate::paced::CHAT_STREAMS_MAX;
use crate::peer;
use crate::process::{CorePlacement, ServerProcess};
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::{share, short};

/// What differs from a turn in a session that goes on, posted on a connection that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing; the model says all at once.
    Plain,
    /// The clock starts before the connection is there.
    Connecting,
    /// The session is made with the turn.
    NewSession,
    /// The model pauses before each delta.
    Slow,
}

/// One case: what is special, how many at once.
struct Case(Kind, u64);

const CASES: [Case; 9] = [
    Case(Kind::Plain, 1),
    Case(Kind::Plain, 10),
    Case(Kind::Plain, 50),
    Case(Kind::Connecting, 1),
    Case(Kind::Connecting, 10),
    Case(Kind::Connecting, 50),
    Case(Kind::NewSession, 1),
    Case(Kind::NewSession, 50),
    Case(Kind::Slow, 50),
];

impl Case {
    fn name(&self) -> String {
        let label = match self.0 {
            Kind::Plain => "open connection".to_owned(),
            Kind::Connecting => "connecting".to_owned(),
            Kind::NewSession => "open connection, new session".to_owned(),
            Kind::Slow => format!("open connection, a delta every {SLOW_MS} ms"),
        };
        format!("{} at once, {label}", self.1)
    }

    /// What is said in each turn, turns that follow each other, and how often with new sessions.
    fn work(&self, bench: &BenchConfig) -> (&'static str, u64, u64) {
        match self.0 {
            Kind::Plain | Kind::Connecting | Kind::NewSession => {
                ("turn", 10, bench.scaled(300 / (self.1 + 9)))
            }
            Kind::Slow => ("slow", bench.scaled(5), 1),
        }
    }

    fn load(&self, bench: &BenchConfig, server: &ServerProcess) -> io::Result<Outcome> {
        let mut args = server.target();
        let (message, turns, generations) = self.work(bench);
        for (name, value) in [
            ("--at-once", self.1.to_string()),
            ("--turns", turns.to_string()),
            ("--generations", generations.to_string()),
            ("--message", message.to_owned()),
        ] {
            args.extend([name.to_owned(), value]);
        }
        let flag = match self.0 {
            Kind::Plain | Kind::Slow => None,
            Kind::Connecting => Some("--connecting"),
            Kind::NewSession => Some("--new-sessions"),
        };
        args.extend(flag.map(str::to_owned));
        let outcome: Outcome = bench
            .program
            .tell(CorePlacement::LastCore, &["chat"], &args)?;
        if outcome.busy > 0 {
            bench.say(&format!("{} posts met a held lock", outcome.busy));
        }
        Ok(outcome)
    }

    /// The floor knows no pauses and no sessions.
    fn has_floor(&self) -> bool {
        match self.0 {
            Kind::Plain | Kind::Connecting => true,
            Kind::NewSession | Kind::Slow => false,
        }
    }

    fn measure(&self, bench: &BenchConfig) -> io::Result<PairedResults<Outcome>> {
        let mut pair = PairedResults::default();
        for _ in 0..bench.rounds {
            if bench.scope == BenchScope::Both {
                let dir = bench.fresh_dir("chat")?;
                let env = [
                    ("TURNWIRE_STORE_DURABILITY", "full"),
                    ("TURNWIRE_STREAM_CHAT_STREAMS_MAX", CHAT_STREAMS_MAX),
                ];
                let server = bench.turnwire_server(&dir, &env)?;
                pair.turnwire.push(self.load(bench, &server)?);
                server.stop()?;
                std::fs::remove_dir_all(dir)?;
            }
            if self.has_floor() {
                pair.floor.push(self.load(bench, &bench.floor(0.0, 0.0)?)?);
            }
        }
        Ok(pair)
    }

    fn row(&self, pair: &PairedResults<Outcome>) -> Vec<String> {
        let beside = |figure: fn(&Outcome) -> f64| {
            let (turnwire, floor) = pair.medians(figure);
            format!("{} / {}", cell(turnwire, short), cell(floor, short))
        };
        let (p50, floor_p50) = pair.medians(|o| o.first_frame_ms.0);
        let p99 = pair.medians(|o| o.first_frame_ms.1).0;
        vec![
            self.name(),
            format!("{} / {}", cell(p50, short), cell(p99, short)),
            cell(floor_p50, short),
            beside(rate),
            pair.ratio_cell(rate),
            beside(cpu_micros),
            cell(pair.medians(client_share).0, share),
        ]
    }

    fn aims(&self, pair: &PairedResults<Outcome>) -> Vec<PerformanceTarget> {
        let first = pair.medians(|o| o.first_frame_ms.0).0;
        let bound_ms = match (self.0, self.1) {
            (Kind::Plain | Kind::Connecting | Kind::NewSession, 1) => Some(3.0),
            (Kind::Plain | Kind::Connecting | Kind::NewSession | Kind::Slow, 50) => Some(10.0),
            _ => None,
        };
        let mut aims = Vec::new();
        let name = self.name();
        aims.extend(first.zip(bound_ms).map(|(first, bound)| {
            let figure = format!("chat, first frame p50, {name}, full");
            PerformanceTarget::at_most(&figure, first, bound, " ms")
        }));
        let (cpu, rate) = (pair.medians(cpu_micros).0, pair.medians(rate).0);
        if let (Kind::Plain, 50, Some(cpu), Some(rate)) = (self.0, self.1, cpu, rate) {
            let figure = format!("chat, CPU a frame, {name}, full");
            aims.push(PerformanceTarget::at_most(&figure, cpu, 20.0, " µs"));
            let figure = format!("chat, frames/s, {name}, full");
            aims.push(PerformanceTarget::at_least(&figure, rate, 100e3, ""));
        }
        aims
    }
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.frames as f64 / outcome.span.seconds
}

fn cpu_micros(outcome: &Outcome) -> f64 {
    outcome.span.server_cpu * 1e6 / outcome.frames as f64
}

fn client_share(outcome: &Outcome) -> f64 {
    outcome.span.client_cpu / outcome.span.seconds
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut section = ReportSection {
        title: "Chats: turns whose answer is their stream",
        text:
            "The release binary with the scripted model and durability full; whoever chats posts \
               the next turn of 200 deltas (`POST /chat/stream`) when the last one ended. A stream \
               has a connection of its own, which ends with it, so there are two ways to time its \
               first frame, and a row for each: *open connection*, from the first byte of the post \
               on a connection that was made a turn before, and *connecting*, from before the \
               connect. The first frame comes after `turn.started` is on disk. Without pauses in \
               the script the server is never idle, and a first frame waits for the deltas of the \
               other turns; with a delta every few milliseconds it is as with a model that thinks. \
               CPU is user and system time of the server's process for a frame, everything \
               included: the connection, the post, the turn, its events in the log, the stream. \
               The floor answers a post with 205 frames made beforehand, in one write."
                .to_owned(),
        columns: vec![
            "case",
            "first frame p50 / p99 ms",
            "floor p50 ms",
            "frames/s (Turnwire / floor)",
            "ratio",
            "CPU µs a frame (Turnwire / floor)",
            "client's share",
        ],
        rows: Vec::new(),
        aims: Vec::new(),
        peers: Some(peer::TURNS),
        others: 0.0,
    };
    for case in &CASES {
        if bench.scope == BenchScope::Reference && !case.has_floor() {
            continue;
        }
        bench.say(&format!("chat, {}", case.name()));
        let pair = case.measure(bench)?;
        section.aims.extend(case.aims(&pair));
        section.rows.push(case.row(&pair));
    }
    Ok(section)
}
