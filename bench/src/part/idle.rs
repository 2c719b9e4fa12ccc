//! 5,000 idle connections, WebSockets or streams of turns: process memory of each.

use std::io;

use super::{BenchConfig, BenchScope, PairedResults, cell};
use crate::load::idle::Outcome;
use crate::paced::CHAT_STREAMS_MAX;
use crate::peer;
use crate::process::{CorePlacement, ServerProcess};
use crate::report::{PerformanceTarget, ReportSection};

const CLIENTS: u64 = 5_000;

/// Over how many sessions.
const SESSIONS: u64 = 50;

/// The kind of idle connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// WebSockets that have subscribed.
    WebSockets,
    /// Streams of turns that stall.
    Streams,
}

impl Kind {
    fn load(self, bench: &BenchConfig, server: &ServerProcess) -> io::Result<Outcome> {
        let mut args = server.target();
        for (name, value) in [
            ("--clients", bench.scaled(CLIENTS)),
            ("--sessions", SESSIONS),
        ] {
            args.extend([name.to_owned(), value.to_string()]);
        }
        args.extend((self == Self::Streams).then(|| "--streams".to_owned()));
        bench
            .program
            .tell(CorePlacement::LastCore, &["idle"], &args)
    }

    fn title(self) -> &'static str {
        match self {
            Self::WebSockets => "Idle WebSockets",
            Self::Streams => "Idle chat streams",
        }
    }

    fn what(self) -> String {
        match self {
            Self::WebSockets => {
                format!("over {SESSIONS} sessions, subscribed, with nothing to say")
            }
            Self::Streams => format!(
                "to the streams of {SESSIONS} turns (`GET /chat/{{response_id}}/stream`) that have \
                 told of themselves and then stall, as with a model that thinks for minutes"
            ),
        }
    }

    fn aim(self, kb: f64) -> PerformanceTarget {
        match self {
            Self::WebSockets => {
                PerformanceTarget::at_most("memory of an idle WebSocket", kb, 15.0, " KiB")
            }
            Self::Streams => {
                PerformanceTarget::at_most("memory of an idle chat stream", kb, 10.0, " KiB")
            }
        }
    }
}

fn measure(bench: &BenchConfig, kind: Kind) -> io::Result<PairedResults<Outcome>> {
    let mut pair = PairedResults::default();
    for _ in 0..bench.rounds {
        bench.say(kind.title());
        if bench.scope == BenchScope::Both {
            let dir = bench.fresh_dir("idle")?;
            let env = [
                ("TURNWIRE_STREAM_CHAT_STREAMS_MAX", CHAT_STREAMS_MAX),
                ("TURNWIRE_HTTP_CONNECTIONS_MAX", "20000"),
                ("TURNWIRE_HTTP_CONNECTIONS_MAX_PER_OWNER", "10000"),
            ];
            let server = bench.turnwire_server(&dir, &env)?;
            pair.turnwire.push(kind.load(bench, &server)?);
            drop(server);
            std::fs::remove_dir_all(dir)?;
        }
        pair.floor.push(kind.load(bench, &bench.floor(0.0, 0.0)?)?);
    }
    Ok(pair)
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig, kind: Kind) -> io::Result<ReportSection> {
    let pair = measure(bench, kind)?;
    let kilobytes = |kb: f64| format!("{kb:.1}");
    let (turnwire, floor) = pair.medians(Outcome::each_kb);
    let (base, floor_base) = pair.medians(|outcome| outcome.before_kb as f64 / 1024.0);
    Ok(ReportSection {
        title: kind.title(),
        text: format!(
            "{} connections {}, made one after the other. Memory is the growth of the server's resident set (`VmRSS`), read \
             after three seconds of quiet; what the kernel holds for a socket is not in it.",
            bench.scaled(CLIENTS),
            kind.what(),
        ),
        columns: vec!["figure", "Turnwire", "floor", "ratio"],
        rows: vec![
            vec![
                "KiB a connection".to_owned(),
                cell(turnwire, kilobytes),
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
        aims: turnwire.map(|kb| kind.aim(kb)).into_iter().collect(),
        peers: match kind {
            Kind::WebSockets => None,
            Kind::Streams => Some(peer::IDLE),
        },
        others: 0.0,
    })
}
