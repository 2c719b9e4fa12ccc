//! What a turn adds to the time at which its provider's first token is there.

use std::io;

use super::clock::{Clock, Load, Told};
use crate::part::{Bench, Pair, Scope, row};
use crate::report::{Aim, Section};
use crate::stat::{median, short};

/// What the provider says in a turn, and how fast after its first word.
pub(super) const WORDS: u64 = 20;
pub(super) const EVERY_US: u64 = 10_000;

/// About how long a turn takes: first turns are spread over it, as people do not speak in chorus.
const TURN_MS: u64 = WORDS * EVERY_US / 1_000;

/// Turns at once, and how many follow each other.
const CASES: [(u64, u64); 2] = [(1, 60), (10, 30)];

/// The most that may be added, in milliseconds.
const ADDED_MS_MAX: f64 = 1.0;

fn p50_ms(told: &Told) -> f64 {
    told.load.first_us.0 / 1e3
}

fn p95_ms(told: &Told) -> f64 {
    told.load.first_us.1 / 1e3
}

/// The median over the rounds of what a figure of ours is above the reference's median.
fn added(pair: &Pair<Told>, figure: fn(&Told) -> f64) -> Option<f64> {
    let both = pair.ours.iter().zip(&pair.floor);
    let added: Vec<f64> = both
        .map(|(ours, floor)| figure(ours) - p50_ms(floor))
        .collect();
    (!added.is_empty()).then(|| median(&added))
}

/// First tokens, one turn at a time and some at once.
pub(super) fn measure(bench: &Bench, section: &mut Section) -> io::Result<()> {
    for (at_once, turns) in CASES {
        bench.say(&format!("models, first token, {at_once} at once"));
        let load = Load {
            at_once,
            warm: 1,
            turns: bench.scaled(turns),
            spread_ms: TURN_MS,
        };
        let mut pair = Pair::default();
        for _ in 0..bench.rounds {
            if bench.scope == Scope::Both {
                let clock = Clock::behind_turnwire(bench, WORDS, EVERY_US)?;
                pair.ours.push(clock.run(bench, load)?);
            }
            let alone = Clock::alone(bench, WORDS, EVERY_US)?;
            pair.floor.push(alone.run(bench, load)?);
        }
        tell(at_once, &pair, section);
    }
    Ok(())
}

fn tell(at_once: u64, pair: &Pair<Told>, section: &mut Section) {
    let name = format!("first token, {at_once} at once");
    let beside = "the provider read directly";
    let figures: [(&str, fn(&Told) -> f64); 2] = [("p50", p50_ms), ("p95", p95_ms)];
    for (what, figure) in figures {
        let name = format!("{name}: delay {what}, ms");
        section.rows.push(row(&name, pair, beside, figure));
    }
    for (what, figure) in figures {
        let Some(added) = added(pair, figure) else {
            continue;
        };
        section.rows.push(vec![
            format!("{name}: added {what}, ms"),
            short(added),
            "–".to_owned(),
            "–".to_owned(),
            "its p50 is taken off".to_owned(),
        ]);
        if what == "p95" {
            let figure = format!("models, added to the {name}, p95");
            let aim = Aim::at_most(&figure, added, ADDED_MS_MAX, " ms");
            section.aims.push(aim);
        }
    }
}
