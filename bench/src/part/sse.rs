//! Fan-out over the chat wire beside the floor, and viewers of both wires at one turn.

use std::io;

use super::fanout::{COLUMNS, Crowd, cpu_micros, rate, row};
use super::{BenchConfig, BenchScope, PairedResults};
use crate::load::fanout::Outcome;
use crate::peer;
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::median;

/// All viewers are streams.
const fn streams(streams: u64, window: u64, deliveries: u64) -> Crowd {
    Crowd {
        sockets: 0,
        streams,
        window,
        deliveries,
    }
}

/// The crowds, those of 1,000 at window 16 one after the other: they are compared.
const CROWDS: [Crowd; 6] = [
    streams(100, 16, 4_000_000),
    streams(1_000, 16, 4_000_000),
    Crowd {
        sockets: 500,
        streams: 500,
        window: 16,
        deliveries: 4_000_000,
    },
    Crowd {
        sockets: 1_000,
        streams: 0,
        window: 16,
        deliveries: 4_000_000,
    },
    streams(100, 1, 600_000),
    streams(1_000, 1, 600_000),
];

/// Where those that are compared stand.
const STREAMS: usize = 1;
const MIXED: usize = 2;
const SOCKETS: usize = 3;

/// Above this share of what the two wires cost alone, a mix would cost more than what each costs.
const MIX_MAX: f64 = 1.2;

fn name(open_streams: &Crowd) -> String {
    let viewers = match (open_streams.sockets, open_streams.streams) {
        (0, streams) => format!("{streams} streams"),
        (sockets, 0) => format!("{sockets} WebSockets"),
        (sockets, streams) => format!("{streams} streams + {sockets} WebSockets"),
    };
    format!("1→{viewers}, window {}", open_streams.window)
}

/// All crowds in every round, so that those that are compared had the same machine.
fn measure(bench: &BenchConfig) -> io::Result<[PairedResults<Outcome>; CROWDS.len()]> {
    let mut pairs: [PairedResults<Outcome>; CROWDS.len()] = Default::default();
    for _ in 0..bench.rounds {
        for (open_streams, pair) in CROWDS.iter().zip(&mut pairs) {
            bench.say(&format!("chat fan-out {}", name(open_streams)));
            let mut lengths = (0.0, 0.0);
            if bench.scope == BenchScope::Both {
                let server = bench.paced_server()?;
                let turnwire = open_streams.load(bench, &server, server.side)?;
                lengths = (turnwire.frame_bytes, turnwire.block_bytes);
                pair.turnwire.push(turnwire);
            }
            let floor = bench.floor(lengths.0, lengths.1)?;
            pair.floor
                .push(open_streams.load(bench, &floor, floor.side)?);
        }
    }
    Ok(pairs)
}

/// What a delivery of the mix costs against the mean of both wires alone, round by round.
fn mix(pairs: &[PairedResults<Outcome>]) -> Option<f64> {
    let of = |at: usize| pairs[at].turnwire.iter().map(cpu_micros);
    let alone = of(STREAMS).zip(of(SOCKETS));
    let both = of(MIXED).zip(alone);
    let ratios: Vec<f64> = both
        .map(|(mixed, (streams, sockets))| mixed / f64::midpoint(streams, sockets))
        .collect();
    (!ratios.is_empty()).then(|| median(&ratios))
}

fn aims(pairs: &[PairedResults<Outcome>]) -> Vec<PerformanceTarget> {
    let streams = &pairs[STREAMS];
    let (Some(ratio), (Some(turnwire), _)) = (streams.ratio(rate), streams.medians(rate)) else {
        return Vec::new();
    };
    let name = "chat fan-out 1→1,000, window 16";
    let mut aims = vec![
        PerformanceTarget::at_least(&format!("{name}, against the floor"), ratio, 0.7, ""),
        PerformanceTarget::at_least(name, turnwire, 850e3, "/s"),
    ];
    aims.extend(mix(pairs).map(|ratio| {
        let figure = "500 streams + 500 WebSockets, CPU a delivery against the mean of both alone";
        PerformanceTarget::at_most(figure, ratio, MIX_MAX, "")
    }));
    aims
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let pairs = measure(bench)?;
    let rows = CROWDS.iter().zip(&pairs);
    Ok(ReportSection {
        title: "Fan-out over the chat wire (SSE)",
        text: "As fan-out over WebSocket, with deltas of one turn: viewers are streams \
               (`GET /chat/{response_id}/stream`), or streams and WebSockets together. A stream \
               gets the `text` frame of a delta, a WebSocket its event; the floor writes blocks and \
               frames of the same lengths. Where wires are mixed every event is made into bytes once \
               for each wire: were it made for each viewer, a delivery would cost several times the \
               mean of the two wires alone."
            .to_owned(),
        columns: COLUMNS.to_vec(),
        rows: rows.map(|(open_streams, pair)| row(name(open_streams), pair)).collect(),
        aims: aims(&pairs),
        peers: Some(peer::FANOUT),
        others: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::CpuSpan;

    #[test]
    fn mixed_load_is_compared_with_the_mean_of_both() {
        let cost = |micros: f64| PairedResults {
            turnwire: vec![Outcome {
                deliveries: 1_000_000,
                span: CpuSpan {
                    server_cpu: micros,
                    ..CpuSpan::default()
                },
                frame_bytes: 0.0,
                block_bytes: 0.0,
            }],
            floor: Vec::new(),
        };
        let mut pairs: [PairedResults<Outcome>; CROWDS.len()] = Default::default();
        assert_eq!(mix(&pairs), None);
        for (at, micros) in [(STREAMS, 0.5), (SOCKETS, 1.5), (MIXED, 2.0)] {
            pairs[at] = cost(micros);
        }
        assert_eq!(mix(&pairs), Some(2.0));
    }

    #[test]
    fn compared_cases_are_found_by_name() {
        let of = |at: usize| (CROWDS[at].sockets, CROWDS[at].streams, CROWDS[at].window);
        assert_eq!(of(STREAMS), (0, 1_000, 16));
        assert_eq!(of(MIXED), (500, 500, 16));
        assert_eq!(of(SOCKETS), (1_000, 0, 16));
    }
}
