//! Replay of 10,000 persisted events beside the floor: one late reader, and 20 at once.

use std::io;

use super::{Bench, Pair, Scope, cell, ratio_cell};
use crate::load::{fill, replay::Once};
use crate::process::{Place, Server};
use crate::report::{Aim, Section};
use crate::stat::short;

/// What the session wire replays at most.
const EVENTS: u64 = 10_000;

/// Late readers at once.
const READERS: u64 = 20;

fn filled(bench: &Bench, server: &Server) -> io::Result<String> {
    let mut args = server.target();
    args.extend(["--events".to_owned(), EVENTS.to_string()]);
    let outcome: fill::Outcome = bench.program.tell(Place::LastCore, &["fill"], &args)?;
    Ok(outcome.session)
}

fn load(bench: &Bench, server: &Server, session: &str, readers: u64) -> io::Result<Vec<Once>> {
    let mut args = server.target();
    for (name, value) in [
        ("--session", session.to_owned()),
        ("--events", EVENTS.to_string()),
        ("--readers", readers.to_string()),
        ("--times", "5".to_owned()),
    ] {
        args.extend([name.to_owned(), value]);
    }
    bench.program.tell(Place::LastCore, &["replay"], &args)
}

/// Both figures of one server: one reader, then 20.
fn both(
    bench: &Bench,
    server: &Server,
    session: &str,
    one: &mut Vec<Once>,
    many: &mut Vec<Once>,
) -> io::Result<()> {
    one.extend(load(bench, server, session, 1)?);
    many.extend(load(bench, server, session, READERS)?);
    Ok(())
}

fn rate(once: &Once) -> f64 {
    EVENTS as f64 / once.all_ms * 1e3
}

fn first(once: &Once) -> f64 {
    once.first_ms
}

fn all(once: &Once) -> f64 {
    once.all_ms
}

/// Measures it.
pub fn run(bench: &Bench) -> io::Result<Section> {
    let (mut one, mut many) = (Pair::default(), Pair::default());
    for _ in 0..bench.rounds {
        bench.say("replay of 10,000");
        if bench.scope == Scope::Both {
            let dir = bench.fresh_dir("replay")?;
            let server = bench.turnwire_server(&dir, &[])?;
            let session = filled(bench, &server)?;
            // A restart empties every ring: what is replayed then comes from the store.
            server.stop()?;
            let server = bench.turnwire_server(&dir, &[])?;
            both(bench, &server, &session, &mut one.ours, &mut many.ours)?;
            server.stop()?;
            std::fs::remove_dir_all(dir)?;
        }
        let floor = bench.floor(0.0)?;
        let session = filled(bench, &floor)?;
        both(bench, &floor, &session, &mut one.floor, &mut many.floor)?;
    }
    let line = |name: &str, pair: &Pair<Once>, figure: fn(&Once) -> f64| {
        let (ours, floor) = pair.medians(figure);
        vec![
            name.to_owned(),
            cell(ours, short),
            short(floor),
            ratio_cell(pair.ratio(figure)),
        ]
    };
    let mut aims = Vec::new();
    if let Some(ours) = one.medians(rate).0 {
        aims.push(Aim::at_least(
            "replay of 10,000, one reader",
            ours,
            300e3,
            " events/s",
        ));
    }
    if let Some(ours) = many.medians(first).0 {
        aims.push(Aim::at_most(
            "replay, first event of the last of 20 readers",
            ours,
            50.0,
            " ms",
        ));
    }
    Ok(Section {
        title: "Replay of 10,000 events",
        text: "A session gets 10,000 persisted events by feedback posts; the server (the release \
               binary, durability full) is restarted, so that all of them come from the store; \
               then late readers subscribe from the first cursor. The clock runs from the first \
               subscribe. The floor has the bytes ready in memory."
            .to_owned(),
        columns: vec!["figure", "Turnwire", "floor", "ratio"],
        rows: vec![
            line("one reader, events/s", &one, rate),
            line("one reader, first event, ms", &one, first),
            line(
                "20 readers at once, first event of the last, ms",
                &many,
                first,
            ),
            line("20 readers at once, all of them have all, ms", &many, all),
            line("20 readers at once, events/s in all", &many, |once| {
                rate(once) * READERS as f64
            }),
        ],
        aims,
    })
}
