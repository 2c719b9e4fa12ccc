//! A hundred streams of a hundred tokens a second: whether all of it arrives, how late, and whether
//! delay or memory grows while it does.

use std::io;

use super::clock::{Clock, Load, Told};
use crate::load::models::Third;
use crate::part::{Bench, Pair, Scope, row};
use crate::report::{Aim, Section};

/// Streams at once.
pub(super) const STREAMS: u64 = 100;

/// From one token of a stream to its next.
pub(super) const EVERY_US: u64 = 10_000;

/// How long everyone speaks.
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

/// What is told of a third.
type Figure = (&'static str, fn(&Third) -> f64);

const FIGURES: [Figure; 5] = [
    ("tokens/s", |third| third.rate),
    ("delay p50, ms", |third| third.delay_us.0 / 1e3),
    ("delay p95, ms", |third| third.delay_us.1 / 1e3),
    ("delay p99, ms", |third| third.delay_us.2 / 1e3),
    ("memory, MiB", |third| third.resident_kb / 1024.0),
];

fn first(told: &Told) -> &Third {
    &told.load.thirds[0]
}

fn last(told: &Told) -> &Third {
    &told.load.thirds[2]
}

/// All streams, behind Turnwire and from the provider itself.
pub(super) fn measure(bench: &Bench, section: &mut Section) -> io::Result<()> {
    bench.say(&format!("models, {STREAMS} streams"));
    let words = bench.scaled(SECONDS * 1_000_000 / EVERY_US);
    let load = Load {
        at_once: STREAMS,
        warm: 0,
        turns: 1,
        spread_ms: SPREAD_MS,
    };
    let mut pair = Pair::default();
    for _ in 0..bench.rounds {
        if bench.scope == Scope::Both {
            let clock = Clock::behind_turnwire(bench, words, EVERY_US)?;
            pair.ours.push(whole(clock.run(bench, load)?, words)?);
        }
        let alone = Clock::alone(bench, words, EVERY_US)?;
        pair.floor.push(whole(alone.run(bench, load)?, words)?);
    }
    tell(&pair, section);
    section.aims.extend(aims(&pair));
    Ok(())
}

/// Every token must have come.
fn whole(told: Told, words: u64) -> io::Result<Told> {
    match STREAMS * words - told.load.words.min(STREAMS * words) {
        0 => Ok(told),
        lost => Err(io::Error::other(format!("{lost} tokens did not come"))),
    }
}

fn tell(pair: &Pair<Told>, section: &mut Section) {
    let name = |what: &str| format!("{STREAMS} streams: {what}");
    let beside = "the provider read directly";
    for (what, figure) in FIGURES {
        for (when, third) in [("first", first as fn(&Told) -> &Third), ("last", last)] {
            let name = name(&format!("{what}, {when} third"));
            let line = row(&name, pair, beside, |told| figure(third(told)));
            section.rows.push(line);
        }
    }
    let ours = Pair {
        ours: pair.ours.clone(),
        floor: Vec::new(),
    };
    let cpu: [(&str, fn(&Told) -> f64); 2] = [
        ("Turnwire's CPU µs a token", |told| {
            told.load.span.server_cpu * 1e6 / told.load.words as f64
        }),
        ("Turnwire's share of its core, %", |told| {
            told.load.span.server_cpu * 100.0 / told.load.span.seconds
        }),
    ];
    for (what, figure) in cpu {
        section.rows.push(row(&name(what), &ours, "–", figure));
    }
    let shares: [(&str, fn(&Told) -> f64); 2] = [
        ("provider's share of the other core, %", |told| {
            told.provider_cpu * 100.0 / told.load.span.seconds
        }),
        ("client's share of the other core, %", |told| {
            told.load.span.client_cpu * 100.0 / told.load.span.seconds
        }),
    ];
    for (what, figure) in shares {
        section.rows.push(row(&name(what), pair, beside, figure));
    }
}

fn aims(pair: &Pair<Told>) -> Vec<Aim> {
    let growth = |figure: fn(&Third) -> f64| {
        let grown = pair.medians(|told| figure(last(told)) / figure(first(told)));
        grown.0
    };
    let name = |what: &str| format!("models, {STREAMS} streams, {what}");
    let wanted = (STREAMS * 1_000_000 / EVERY_US) as f64;
    let rate = pair.medians(|told| last(told).rate).0;
    let rate = rate.map(|rate| {
        let figure = name("tokens/s in the last third");
        Aim::at_least(&figure, rate, wanted * RATE_MIN, "")
    });
    let delay = growth(|third| third.delay_us.1).map(|grown| {
        let figure = name("delay p95, last third : first");
        Aim::at_most(&figure, grown, DELAY_GROWTH_MAX, "")
    });
    let memory = growth(|third| third.resident_kb).map(|grown| {
        let figure = name("memory, last third : first");
        Aim::at_most(&figure, grown, MEMORY_GROWTH_MAX, "")
    });
    [rate, delay, memory].into_iter().flatten().collect()
}
