//! A hundred streams of a hundred tokens a second: whether all of it arrives, how late, and whether
//! delay or memory grows while it does.

use std::io;

use super::clock::{Clock, Load, Pace, Told};
use crate::load::models::ThirdStats;
use crate::part::{BenchConfig, BenchScope, PairedResults, row};
use crate::report::{PerformanceTarget, ReportSection};

pub(super) const STREAMS: u64 = 100;

/// From one token of a stream to its next.
pub(super) const EVERY_US: u64 = 10_000;

/// How long everyone speaks before that is looked at: until the ring of each session, which holds
/// the newest 4,096 events, is full.
pub(super) const SETTLE_S: u64 = 45;

/// How long it is looked at.
pub(super) const SECONDS: u64 = 30;

/// The time over which they begin, so that their tokens do not come in chorus.
const SPREAD_MS: u64 = 500;

/// Of the tokens that the provider should say, the share that must arrive in time: its own timer
/// has steps of a millisecond.
const RATE_MIN: f64 = 0.99;

/// What counts as no growth from the first third to the last, of delay and of memory: the spread
/// that a machine shows that does the same all the time.
const DELAY_GROWTH_MAX: f64 = 1.25;
const MEMORY_GROWTH_MAX: f64 = 1.1;

/// A reported figure: its name and its value.
type Figure<T> = (&'static str, fn(&T) -> f64);

/// The figures of a third of the time.
const FIGURES: [Figure<ThirdStats>; 5] = [
    ("tokens/s", |third| third.rate),
    ("delay p50, ms", |third| third.delay_us.0 / 1e3),
    ("delay p95, ms", |third| third.delay_us.1 / 1e3),
    ("delay p99, ms", |third| third.delay_us.2 / 1e3),
    ("memory, MiB", |third| third.resident_kb / 1024.0),
];

/// The figures of Turnwire without a reference.
const ALONE: [Figure<Told>; 3] = [
    ("memory before, MiB", |told| told.load.before_kb / 1024.0),
    ("Turnwire's CPU µs a token", |told| {
        told.load.span.server_cpu * 1e6 / told.load.words as f64
    }),
    ("Turnwire's share of its core, %", |told| {
        told.load.span.server_cpu * 100.0 / told.load.span.seconds
    }),
];

/// What the others take of the core that they share.
const SHARES: [Figure<Told>; 2] = [
    ("provider's share of the other core, %", |told| {
        told.provider_cpu * 100.0 / told.load.span.seconds
    }),
    ("client's share of the other core, %", |told| {
        told.load.span.client_cpu * 100.0 / told.load.span.seconds
    }),
];

fn first(told: &Told) -> &ThirdStats {
    &told.load.thirds[0]
}

fn last(told: &Told) -> &ThirdStats {
    &told.load.thirds[2]
}

/// All streams, behind Turnwire and from the provider itself.
pub(super) fn measure(bench: &BenchConfig, section: &mut ReportSection) -> io::Result<()> {
    bench.say(&format!("models, {STREAMS} streams"));
    let mut pair = PairedResults::default();
    for _ in 0..bench.rounds {
        if bench.scope == BenchScope::Both {
            let settle_ms = bench.scaled(SETTLE_S * 1_000);
            pair.turnwire
                .push(run(bench, settle_ms, Clock::behind_turnwire)?);
        }
        pair.floor.push(run(bench, 0, Clock::alone)?);
    }
    tell(&pair, section);
    section.aims.extend(aims(&pair));
    Ok(())
}

/// One run; every token must come.
fn run(
    bench: &BenchConfig,
    settle_ms: u64,
    start: fn(&BenchConfig, Pace) -> io::Result<Clock>,
) -> io::Result<Told> {
    let words = (settle_ms + SPREAD_MS + bench.scaled(SECONDS * 1_000)) * 1_000 / EVERY_US;
    let pace = Pace {
        words,
        think_ms: 0,
        every_us: EVERY_US,
    };
    let load = Load {
        at_once: STREAMS,
        warm: 0,
        turns: 1,
        spread_ms: SPREAD_MS,
        settle_ms,
    };
    let outcome = start(bench, pace)?.run(bench, load)?;
    match (STREAMS * words).checked_sub(outcome.load.words) {
        Some(0) => Ok(outcome),
        _ => Err(io::Error::other("tokens were lost or came twice")),
    }
}

fn tell(pair: &PairedResults<Told>, section: &mut ReportSection) {
    let name = |what: &str| format!("{STREAMS} streams: {what}");
    let beside = "the provider read directly";
    for (what, figure) in FIGURES {
        for (when, third) in [("first", first as fn(&Told) -> &ThirdStats), ("last", last)] {
            let name = name(&format!("{what}, {when} third"));
            let line = row(&name, pair, beside, |told| figure(third(told)));
            section.rows.push(line);
        }
    }
    let turnwire = PairedResults {
        turnwire: pair.turnwire.clone(),
        floor: Vec::new(),
    };
    for (what, figure) in ALONE {
        section.rows.push(row(&name(what), &turnwire, "–", figure));
    }
    for (what, figure) in SHARES {
        section.rows.push(row(&name(what), pair, beside, figure));
    }
}

fn aims(pair: &PairedResults<Told>) -> Vec<PerformanceTarget> {
    let growth = |figure: fn(&ThirdStats) -> f64| {
        let grown = pair.medians(|told| figure(last(told)) / figure(first(told)));
        grown.0
    };
    let name = |what: &str| format!("models, {STREAMS} streams, {what}");
    let wanted = (STREAMS * 1_000_000 / EVERY_US) as f64;
    let rate = pair.medians(|told| last(told).rate).0;
    let rate = rate.map(|rate| {
        let figure = name("tokens/s in the last third");
        PerformanceTarget::at_least(&figure, rate, wanted * RATE_MIN, "")
    });
    let delay = growth(|third| third.delay_us.1).map(|grown| {
        let figure = name("delay p95, last third : first");
        PerformanceTarget::at_most(&figure, grown, DELAY_GROWTH_MAX, "")
    });
    let memory = growth(|third| third.resident_kb).map(|grown| {
        let figure = name("memory, last third : first");
        PerformanceTarget::at_most(&figure, grown, MEMORY_GROWTH_MAX, "")
    });
    [rate, delay, memory].into_iter().flatten().collect()
}
