//! Turns of 200 deltas, 1, 10 and 50 at once, over HTTP and WebSocket.

use std::io;

use super::{BenchConfig, BenchScope, PairedResults, SLOW_MS, cell};
use crate::floor::TURN_FRAMES;
use crate::load::turns::Outcome;
use crate::process::{CorePlacement, ServerProcess};
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::{share, short};

/// What the sessions of a case are like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// New sessions, ten turns each; the model says all at once.
    FlatOut,
    /// New sessions; the model pauses before each delta.
    Slow,
    /// Sessions that have had hundreds of turns, so that every turn has a past to read.
    LongPast,
}

/// One case: what its sessions are like, how many at once, what a commit is worth.
struct Case {
    kind: Kind,
    sessions: u64,
    durability: &'static str,
}

const CASES: [Case; 8] = [
    case(Kind::FlatOut, 1, "full"),
    case(Kind::FlatOut, 10, "full"),
    case(Kind::FlatOut, 50, "full"),
    case(Kind::Slow, 50, "full"),
    case(Kind::LongPast, 1, "full"),
    case(Kind::FlatOut, 1, "relaxed"),
    case(Kind::FlatOut, 10, "relaxed"),
    case(Kind::FlatOut, 50, "relaxed"),
];

const fn case(kind: Kind, sessions: u64, durability: &'static str) -> Case {
    Case {
        kind,
        sessions,
        durability,
    }
}

impl Case {
    fn name(&self) -> String {
        let label = match self.kind {
            Kind::FlatOut => String::new(),
            Kind::Slow => format!(", a delta every {SLOW_MS} ms"),
            Kind::LongPast => ", up to 300 turns before it".to_owned(),
        };
        format!("{} at once{label}, {}", self.sessions, self.durability)
    }

    /// What is said in each turn, turns a session, and how often with new sessions.
    fn work(&self, bench: &BenchConfig) -> (&'static str, u64, u64) {
        match self.kind {
            Kind::FlatOut => ("turn", 10, bench.scaled(300 / (self.sessions + 9))),
            Kind::Slow => ("slow", bench.scaled(5), 1),
            Kind::LongPast => ("turn", bench.scaled(300), 1),
        }
    }

    fn load(&self, bench: &BenchConfig, server: &ServerProcess) -> io::Result<Outcome> {
        let mut args = server.target();
        let (message, turns, generations) = self.work(bench);
        for (name, value) in [
            ("--sessions", self.sessions.to_string()),
            ("--turns", turns.to_string()),
            ("--generations", generations.to_string()),
            ("--message", message.to_owned()),
        ] {
            args.extend([name.to_owned(), value]);
        }
        // Only the floor has a side channel, and only its events have no types.
        if server.side.is_some() {
            args.extend(["--turn-events".to_owned(), TURN_FRAMES.to_string()]);
        }
        let outcome: Outcome = bench
            .program
            .tell(CorePlacement::LastCore, &["turns"], &args)?;
        if outcome.busy > 0 {
            bench.say(&format!("{} posts met a held lock", outcome.busy));
        }
        Ok(outcome)
    }

    fn measure(&self, bench: &BenchConfig) -> io::Result<PairedResults<Outcome>> {
        let mut pair = PairedResults::default();
        for _ in 0..bench.rounds {
            if bench.scope == BenchScope::Both {
                let dir = bench.fresh_dir("turns")?;
                let env = [("TURNWIRE_STORE_DURABILITY", self.durability)];
                let server = bench.turnwire_server(&dir, &env)?;
                pair.turnwire.push(self.load(bench, &server)?);
                server.stop()?;
                std::fs::remove_dir_all(dir)?;
            }
            if self.kind == Kind::FlatOut {
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
        let two = |p50: fn(&Outcome) -> f64, p95: fn(&Outcome) -> f64| {
            let (a, b) = (pair.medians(p50).0, pair.medians(p95).0);
            format!("{} / {}", cell(a, short), cell(b, short))
        };
        vec![
            self.name(),
            two(|o| o.first_event_ms.0, |o| o.first_event_ms.1),
            cell(pair.medians(|o| o.first_event_ms.0).1, short),
            two(|o| o.first_delta_ms.0, |o| o.first_delta_ms.1),
            beside(rate),
            pair.ratio_cell(rate),
            beside(cpu_micros),
            cell(pair.medians(client_share).0, share),
        ]
    }

    fn aims(&self, pair: &PairedResults<Outcome>) -> Vec<PerformanceTarget> {
        let (Some(first), Some(cpu), Some(rate)) = (
            pair.medians(|o| o.first_event_ms.0).0,
            pair.medians(cpu_micros).0,
            pair.medians(rate).0,
        ) else {
            return Vec::new();
        };
        if self.kind == Kind::LongPast {
            return Vec::new();
        }
        let bound_ms = if self.durability == "full" { 3.0 } else { 1.0 };
        let name = self.name();
        let mut aims = vec![
            PerformanceTarget::at_most(
                &format!("turns, first event p50, {name}"),
                first,
                bound_ms,
                " ms",
            ),
            PerformanceTarget::at_most(&format!("turns, CPU an event, {name}"), cpu, 20.0, " µs"),
        ];
        if self.sessions == 50 && self.kind == Kind::FlatOut {
            aims.push(PerformanceTarget::at_least(
                &format!("turns, events/s, {name}"),
                rate,
                100e3,
                "",
            ));
        }
        aims
    }
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.events as f64 / outcome.span.seconds
}

fn cpu_micros(outcome: &Outcome) -> f64 {
    outcome.span.server_cpu * 1e6 / outcome.events as f64
}

fn client_share(outcome: &Outcome) -> f64 {
    outcome.span.client_cpu / outcome.span.seconds
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut section = ReportSection {
        title: "Turns of 200 deltas",
        text: "The release binary with the scripted model; each session posts its next turn when \
               its last one ended, and one WebSocket a session takes all events (`preset:full`). \
               Without pauses in the script the server is never idle, and a first event waits \
               for the deltas of the other turns; with a delta every few milliseconds it is as \
               with a model that thinks. Sessions are new and have ten turns, but for the case \
               that tells what a long past costs. First event: from the first byte of the post to \
               `turn.started` at the client, which with durability full is after its fsync. CPU \
               is user and system time of the server's process. The floor answers a post with \
               207 frames made beforehand."
            .to_owned(),
        columns: vec![
            "case",
            "first event p50 / p95 ms",
            "floor p50 ms",
            "first delta p50 / p95 ms",
            "events/s (Turnwire / floor)",
            "ratio",
            "CPU µs an event (Turnwire / floor)",
            "client's share",
        ],
        rows: Vec::new(),
        aims: Vec::new(),
        peers: None,
        others: 0.0,
    };
    for case in &CASES {
        // The floor knows no pauses, no past and no disk: three cases tell all of it.
        let has_target = case.kind == Kind::FlatOut && case.durability == "full";
        if bench.scope == BenchScope::Reference && !has_target {
            continue;
        }
        bench.say(&format!("turns, {}", case.name()));
        let pair = case.measure(bench)?;
        section.aims.extend(case.aims(&pair));
        section.rows.push(case.row(&pair));
    }
    Ok(section)
}
