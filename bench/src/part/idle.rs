//! 5,000 idle WebSockets: process memory of each.

use std::io;

use super::{Bench, Pair, Scope, cell};
use crate::load::idle::Outcome;
use crate::process::{Place, Server};
use crate::report::{Aim, Section};

/// How many connections.
const CLIENTS: u64 = 5_000;

/// Over how many sessions.
const SESSIONS: u64 = 50;

fn load(bench: &Bench, server: &Server) -> io::Result<Outcome> {
    let mut args = server.target();
    for (name, value) in [
        ("--clients", bench.scaled(CLIENTS)),
        ("--sessions", SESSIONS),
    ] {
        args.extend([name.to_owned(), value.to_string()]);
    }
    bench.program.tell(Place::LastCore, &["idle"], &args)
}

/// Measures it.
pub fn run(bench: &Bench) -> io::Result<Section> {
    let mut pair = Pair::default();
    for _ in 0..bench.rounds {
        bench.say("idle connections");
        if bench.scope == Scope::Both {
            let dir = bench.fresh_dir("idle")?;
            let server = bench.turnwire_server(&dir, &[])?;
            pair.ours.push(load(bench, &server)?);
            drop(server);
            std::fs::remove_dir_all(dir)?;
        }
        pair.floor.push(load(bench, &bench.floor(0.0)?)?);
    }
    let kilobytes = |kb: f64| format!("{kb:.1}");
    let (ours, floor) = pair.medians(Outcome::each_kb);
    let (base, floor_base) = pair.medians(|outcome| outcome.before_kb as f64 / 1024.0);
    Ok(Section {
        title: "Idle WebSockets",
        text: format!(
            "{} connections over {SESSIONS} sessions, subscribed, with nothing to say. Memory is \
             the growth of the server's resident set (`VmRSS`), read after three seconds of \
             quiet; what the kernel holds for a socket is not in it.",
            bench.scaled(CLIENTS)
        ),
        columns: vec!["figure", "Turnwire", "floor", "ratio"],
        rows: vec![
            vec![
                "KiB a connection".to_owned(),
                cell(ours, kilobytes),
                cell(floor, kilobytes),
                pair.ratio_cell(Outcome::each_kb),
            ],
            vec![
                "MiB of the process before".to_owned(),
                cell(base, kilobytes),
                cell(floor_base, kilobytes),
                String::new(),
            ],
        ],
        aims: ours
            .map(|kb| Aim::at_most("memory of an idle WebSocket", kb, 15.0, " KiB"))
            .into_iter()
            .collect(),
        others: 0.0,
    })
}
