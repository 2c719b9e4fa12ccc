//! Turns of 200 deltas, 1, 10 and 50 at once, over HTTP and WebSocket.

use std::io;

use super::{Bench, Pair, Scope, cell, ratio_cell};
use crate::floor::TURN_FRAMES;
use crate::load::turns::Outcome;
use crate::process::{Place, Server};
use crate::report::{Aim, Section};
use crate::stat::{share, short};

/// Sessions at once, and turns of each that count.
const CASES: [(u64, u64); 3] = [(1, 300), (10, 60), (50, 30)];

/// Whether a commit waits for the disk, as the server's configuration says it.
const DURABILITIES: [&str; 2] = ["full", "relaxed"];

fn load(bench: &Bench, server: &Server, sessions: u64, turns: u64) -> io::Result<Outcome> {
    let mut args = server.target();
    for (name, value) in [("--sessions", sessions), ("--turns", bench.scaled(turns))] {
        args.extend([name.to_owned(), value.to_string()]);
    }
    // Only the floor has a side channel, and only its events have no types.
    if server.side.is_some() {
        args.extend(["--turn-events".to_owned(), TURN_FRAMES.to_string()]);
    }
    bench.program.tell(Place::LastCore, &["turns"], &args)
}

fn measure(
    bench: &Bench,
    durability: &str,
    sessions: u64,
    turns: u64,
) -> io::Result<Pair<Outcome>> {
    let mut pair = Pair::default();
    for _ in 0..bench.rounds {
        if bench.scope == Scope::Both {
            let dir = bench.fresh_dir("turns")?;
            let server =
                bench.turnwire_server(&dir, &[("TURNWIRE_STORE_DURABILITY", durability)])?;
            pair.ours.push(load(bench, &server, sessions, turns)?);
            server.stop()?;
            std::fs::remove_dir_all(dir)?;
        }
        pair.floor
            .push(load(bench, &bench.floor(0.0)?, sessions, turns)?);
    }
    Ok(pair)
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.events as f64 / outcome.span.seconds
}

fn cpu_micros(outcome: &Outcome) -> f64 {
    outcome.span.server_cpu * 1e6 / outcome.events as f64
}

fn row(name: String, pair: &Pair<Outcome>) -> Vec<String> {
    let beside = |figure: fn(&Outcome) -> f64| {
        let (ours, floor) = pair.medians(figure);
        format!("{} / {}", cell(ours, short), short(floor))
    };
    let two = |p50: fn(&Outcome) -> f64, p95: fn(&Outcome) -> f64| {
        let (a, b) = (pair.medians(p50).0, pair.medians(p95).0);
        format!("{} / {}", cell(a, short), cell(b, short))
    };
    vec![
        name,
        two(|o| o.first_event_ms.0, |o| o.first_event_ms.1),
        short(pair.medians(|o| o.first_event_ms.0).1),
        two(|o| o.first_delta_ms.0, |o| o.first_delta_ms.1),
        beside(rate),
        ratio_cell(pair.ratio(rate)),
        beside(cpu_micros),
        cell(
            pair.medians(|o| o.span.client_cpu / o.span.seconds).0,
            share,
        ),
        cell(pair.medians(|o| o.busy as f64).0, short),
    ]
}

fn aims(durability: &str, sessions: u64, pair: &Pair<Outcome>) -> Vec<Aim> {
    let (Some(first), Some(cpu), Some(rate)) = (
        pair.medians(|o| o.first_event_ms.0).0,
        pair.medians(cpu_micros).0,
        pair.medians(rate).0,
    ) else {
        return Vec::new();
    };
    let bound_ms = if durability == "full" { 3.0 } else { 1.0 };
    let name = format!("{sessions} turns at once, durability {durability}");
    let mut aims = vec![
        Aim::at_most(&format!("first event p50, {name}"), first, bound_ms, " ms"),
        Aim::at_most(&format!("CPU an event, {name}"), cpu, 20.0, " µs"),
    ];
    if sessions == 50 {
        aims.push(Aim::at_least(&format!("events/s, {name}"), rate, 100e3, ""));
    }
    aims
}

/// Measures it.
pub fn run(bench: &Bench) -> io::Result<Section> {
    let mut section = Section {
        title: "Turns of 200 deltas",
        text: "The release binary with the scripted model, no pauses in the script; each session \
               posts its next turn when its last one ended, and one WebSocket a session takes all \
               events (`preset:full`). First event: from the first byte of the post to \
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
            "posts met a held lock",
        ],
        rows: Vec::new(),
        aims: Vec::new(),
    };
    for durability in DURABILITIES {
        for (sessions, turns) in CASES {
            let name = format!("{sessions} at once, {durability}");
            bench.say(&format!("turns, {name}"));
            let pair = measure(bench, durability, sessions, turns)?;
            section.aims.extend(aims(durability, sessions, &pair));
            section.rows.push(row(name, &pair));
        }
        if bench.scope == Scope::Reference {
            break;
        }
    }
    Ok(section)
}
