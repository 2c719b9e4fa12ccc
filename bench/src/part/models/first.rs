//! What a turn adds to the time at which its provider's first token is there.

use std::io;

use super::clock::{Clock, Load, Pace, Told};
use crate::part::{BenchConfig, BenchScope, PairedResults, row};
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::{median, short};

/// What the provider says in a turn, and how fast after its first word.
pub(super) const WORDS: u64 = 20;
pub(super) const EVERY_US: u64 = 10_000;

/// How long a provider thinks that does: less than any that is known, more than a commit takes.
pub(super) const THINK_MS: u64 = 100;

/// The most that may be added, in milliseconds.
const ADDED_MS_MAX: f64 = 1.0;

/// One case: how long the provider thinks, how many turns are at once, how many of each follow each
/// other.
struct Case {
    think_ms: u64,
    at_once: u64,
    turns: u64,
}

const CASES: [Case; 4] = [
    Case {
        think_ms: THINK_MS,
        at_once: 1,
        turns: 60,
    },
    Case {
        think_ms: THINK_MS,
        at_once: 10,
        turns: 30,
    },
    Case {
        think_ms: 0,
        at_once: 1,
        turns: 60,
    },
    Case {
        think_ms: 0,
        at_once: 10,
        turns: 30,
    },
];

/// A reported figure: its name, its value, and the value of the reference that is subtracted.
type Figure = (&'static str, fn(&Told) -> f64, fn(&Told) -> f64);

const FIGURES: [Figure; 4] = [
    ("from its write, p50", |t| t.load.first_us.0, written),
    ("from its write, p95", |t| t.load.first_us.1, written),
    ("from the post, p50", |t| t.load.asked_us.0, asked),
    ("from the post, p95", |t| t.load.asked_us.1, asked),
];

/// The figure that the aim is about.
const AIMED: &str = "from its write, p95";

fn written(told: &Told) -> f64 {
    told.load.first_us.0
}

fn asked(told: &Told) -> f64 {
    told.load.asked_us.0
}

impl Case {
    fn name(&self) -> String {
        let when = match self.think_ms {
            0 => "at once".to_owned(),
            think_ms => format!("after {think_ms} ms"),
        };
        match self.at_once {
            1 => format!("first token {when}, one turn at a time"),
            at_once => format!("first token {when}, {at_once} turns at a time"),
        }
    }

    fn measure(&self, bench: &BenchConfig) -> io::Result<PairedResults<Told>> {
        let pace = Pace {
            words: WORDS,
            think_ms: self.think_ms,
            every_us: EVERY_US,
        };
        let load = Load {
            at_once: self.at_once,
            warm: 1,
            turns: bench.scaled(self.turns),
            // About a turn: people do not speak in chorus.
            spread_ms: self.think_ms + WORDS * EVERY_US / 1_000,
            settle_ms: 0,
        };
        let mut pair = PairedResults::default();
        for _ in 0..bench.rounds {
            if bench.scope == BenchScope::Both {
                let clock = Clock::behind_turnwire(bench, pace)?;
                pair.turnwire.push(clock.run(bench, load)?);
            }
            pair.floor
                .push(Clock::alone(bench, pace)?.run(bench, load)?);
        }
        Ok(pair)
    }

    fn tell(&self, pair: &PairedResults<Told>, section: &mut ReportSection) {
        let name = self.name();
        for (what, figure, usual) in FIGURES {
            let line = format!("{name}: {what}, ms");
            let beside = "the provider read directly";
            section
                .rows
                .push(row(&line, pair, beside, |told| figure(told) / 1e3));
            let Some(added) = added(pair, figure, usual) else {
                continue;
            };
            section.rows.push(vec![
                format!("{name}: {what}, added, ms"),
                short(added),
                "–".to_owned(),
                "–".to_owned(),
                "its p50, taken off".to_owned(),
            ]);
            if what == AIMED && self.think_ms > 0 {
                let figure = format!("models, added to the {name}, {what}");
                let aim = PerformanceTarget::at_most(&figure, added, ADDED_MS_MAX, " ms");
                section.aims.push(aim);
            }
        }
    }
}

/// The median over the rounds of what a figure of turnwire is above what is usual for the reference, in
/// milliseconds.
fn added(
    pair: &PairedResults<Told>,
    figure: fn(&Told) -> f64,
    usual: fn(&Told) -> f64,
) -> Option<f64> {
    let both = pair.turnwire.iter().zip(&pair.floor);
    let added: Vec<f64> = both
        .map(|(turnwire, floor)| (figure(turnwire) - usual(floor)) / 1e3)
        .collect();
    (!added.is_empty()).then(|| median(&added))
}

/// First tokens, one turn at a time and some at once.
pub(super) fn measure(bench: &BenchConfig, section: &mut ReportSection) -> io::Result<()> {
    for case in &CASES {
        bench.say(&format!("models, {}", case.name()));
        let pair = case.measure(bench)?;
        case.tell(&pair, section);
    }
    Ok(())
}
