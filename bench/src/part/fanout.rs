//! Fan-out beside the floor: 1→100 and 1→1,000, window 16 and window 1, deltas and persisted.

use std::io;
use std::net::SocketAddr;

use super::{BenchConfig, BenchScope, PairedResults, cell};
use crate::load::fanout::Outcome;
use crate::process::{CorePlacement, ServerProcess};
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::{share, short};

/// One case: what makes the events, how many watch, how many are outstanding.
struct Case {
    source: Source,
    clients: u64,
    window: u64,
    deliveries: u64,
}

/// Who watches one producer, and how many of its events are outstanding.
pub(super) struct Crowd {
    pub(super) sockets: u64,
    /// Streams of the turn.
    pub(super) streams: u64,
    pub(super) window: u64,
    /// Deliveries over all of them, in a full run.
    pub(super) deliveries: u64,
}

impl Crowd {
    /// Everyone takes everything; the producer is paced over `side`, else by feedback.
    pub(super) fn load(
        &self,
        bench: &BenchConfig,
        server: &ServerProcess,
        side: Option<SocketAddr>,
    ) -> io::Result<Outcome> {
        let events = bench.scaled(self.deliveries) / (self.sockets + self.streams);
        let mut args = server.target();
        for (name, value) in [
            ("--clients", self.sockets),
            ("--streams", self.streams),
            ("--window", self.window),
            ("--events", events.max(64)),
        ] {
            args.extend([name.to_owned(), value.to_string()]);
        }
        args.extend(side.map(|side| format!("--side={side}")));
        bench
            .program
            .tell(CorePlacement::LastCore, &["fanout"], &args)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Paced,
    Feedback,
}

const CASES: [Case; 6] = [
    case(Source::Paced, 100, 16, 4_000_000),
    case(Source::Paced, 1_000, 16, 4_000_000),
    case(Source::Paced, 100, 1, 1_200_000),
    case(Source::Paced, 1_000, 1, 1_200_000),
    case(Source::Feedback, 100, 16, 800_000),
    case(Source::Feedback, 1_000, 16, 2_000_000),
];

const fn case(source: Source, clients: u64, window: u64, deliveries: u64) -> Case {
    Case {
        source,
        clients,
        window,
        deliveries,
    }
}

impl Case {
    fn name(&self) -> String {
        let label = match self.source {
            Source::Paced => "deltas",
            Source::Feedback => "persisted, posted over HTTP",
        };
        format!("1→{}, window {}, {label}", self.clients, self.window)
    }

    fn load(&self, bench: &BenchConfig, server: &ServerProcess) -> io::Result<Outcome> {
        let side = server.side.filter(|_| self.source == Source::Paced);
        let open_streams = Crowd {
            sockets: self.clients,
            streams: 0,
            window: self.window,
            deliveries: self.deliveries,
        };
        open_streams.load(bench, server, side)
    }

    fn measure(&self, bench: &BenchConfig) -> io::Result<PairedResults<Outcome>> {
        let mut pair = PairedResults::default();
        for _ in 0..bench.rounds {
            let mut frame_bytes = 0.0;
            if bench.scope == BenchScope::Both {
                let turnwire = self.load(bench, &bench.paced_server()?)?;
                frame_bytes = turnwire.frame_bytes;
                pair.turnwire.push(turnwire);
            }
            pair.floor
                .push(self.load(bench, &bench.floor(frame_bytes, 0.0)?)?);
        }
        Ok(pair)
    }
}

pub(super) fn rate(outcome: &Outcome) -> f64 {
    outcome.deliveries as f64 / outcome.span.seconds
}

pub(super) fn cpu_micros(outcome: &Outcome) -> f64 {
    outcome.span.server_cpu * 1e6 / outcome.deliveries as f64
}

pub(super) fn client_share(outcome: &Outcome) -> f64 {
    outcome.span.client_cpu / outcome.span.seconds
}

/// One line: rates, ratios, what a delivery costs, and the bytes of what was sent.
pub(super) fn row(name: String, pair: &PairedResults<Outcome>) -> Vec<String> {
    let (turnwire, floor) = pair.medians(rate);
    let (ours_cpu, floor_cpu) = pair.medians(cpu_micros);
    let (ours_client, floor_client) = pair.medians(client_share);
    vec![
        name,
        cell(turnwire, short),
        cell(floor, short),
        pair.ratio_cell(rate),
        format!("{} / {}", cell(ours_cpu, short), cell(floor_cpu, short)),
        pair.ratio_cell(|outcome| cpu_micros(outcome).recip()),
        format!(
            "{} / {}",
            cell(ours_client, share),
            cell(floor_client, share)
        ),
        bytes_cell(pair),
    ]
}

/// The length of a frame, of a block, or of both.
fn bytes_cell(pair: &PairedResults<Outcome>) -> String {
    let of = |figure: fn(&Outcome) -> f64| {
        let (turnwire, floor) = pair.medians(figure);
        turnwire.or(floor).filter(|&bytes| bytes > 0.0)
    };
    let lengths = [of(|o| o.frame_bytes), of(|o| o.block_bytes)];
    let printed: Vec<String> = lengths
        .iter()
        .flatten()
        .map(|bytes| format!("{bytes:.0}"))
        .collect();
    printed.join(" and ")
}

/// The columns of `row`.
pub(super) const COLUMNS: [&str; 8] = [
    "case",
    "Turnwire",
    "floor",
    "ratio",
    "server CPU µs a delivery (Turnwire / floor)",
    "ratio by CPU",
    "client's share (Turnwire / floor)",
    "frame bytes",
];

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut rows = Vec::new();
    let mut aims = Vec::new();
    for case in &CASES {
        bench.say(&format!("fan-out {}", case.name()));
        let pair = case.measure(bench)?;
        rows.push(row(case.name(), &pair));
        if let (Source::Paced, 1_000, 16, Some(ratio), (Some(turnwire), _)) = (
            case.source,
            case.clients,
            case.window,
            pair.ratio(rate),
            pair.medians(rate),
        ) {
            aims.push(PerformanceTarget::at_least(
                "fan-out 1→1,000, window 16, against the floor",
                ratio,
                0.7,
                "",
            ));
            aims.push(PerformanceTarget::at_least(
                "fan-out 1→1,000, window 16",
                turnwire,
                850e3,
                "/s",
            ));
        }
    }
    Ok(ReportSection {
        title: "Fan-out over WebSocket",
        text: "Delivered events a second. Window W: the producer sends event n when every client \
               has event n − W. *Deltas* are transient `text.delta` events emitted inside the \
               server's process through the producer's port, paced by the clients over a side \
               channel; everything behind the port is the real thing (sequencer, hub, wire, \
               sockets). *Persisted* events are feedback posts, W in flight, so each waits for \
               HTTP and a commit. The floor writes frames of the same length, made beforehand, \
               with no order, filter or disk. The client's share is of the one core it has: near \
               100 % it is as much the limit as the server. The ratio by CPU compares what a \
               delivery costs the server's process, which other programs disturb less than they \
               disturb the clock: where the two ratios differ much, the first is noise."
            .to_owned(),
        columns: COLUMNS.to_vec(),
        rows,
        aims,
        peers: None,
        others: 0.0,
    })
}
