//! Traces: the same turns with and without them, in pairs.

use std::io;

use super::{BenchConfig, PairedResults, paired_section, row};
use crate::collector::SpanSink;
use crate::load::chat::Outcome;
use crate::paced::CHAT_STREAMS_MAX;
use crate::process::CorePlacement;
use crate::report::{PerformanceTarget, ReportSection};

/// The pairs that a median is taken of, at least.
const PAIRS_MIN: usize = 7;

/// Turns at the same time.
const AT_ONCE: &str = "10";

/// The most processor time of a turn with a tenth of turns sampled, as a share of that without.
const COST_MAX: f64 = 1.05;

const BESIDE: &str = "the same without an endpoint";

/// The share of turns that is sampled, and the name of the case.
const CASES: [(&str, &str); 3] = [
    ("0", "no turn sampled"),
    ("0.1", "10 % of turns sampled"),
    ("1", "every turn sampled"),
];

fn cpu_a_turn(outcome: &Outcome) -> f64 {
    outcome.span.server_cpu * 1e6 / outcome.turns as f64
}

/// Runs the turns once, with this share of them sampled or without an endpoint.
fn load(bench: &BenchConfig, traced: Option<(&SpanSink, &str)>) -> io::Result<Outcome> {
    let dir = bench.fresh_dir("tracing")?;
    let endpoint = traced.map_or_else(String::new, |(sink, _)| sink.endpoint());
    let ratio = traced.map_or("0", |(_, ratio)| ratio);
    let env = [
        ("TURNWIRE_STORE_DURABILITY", "full"),
        ("TURNWIRE_STREAM_CHAT_STREAMS_MAX", CHAT_STREAMS_MAX),
        // An empty endpoint is none.
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", ratio),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "50000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "1000"),
    ];
    let server = bench.turnwire_server(&dir, &env)?;
    let mut args = server.target();
    for (name, value) in [
        ("--at-once", AT_ONCE.to_owned()),
        ("--turns", "10".to_owned()),
        ("--generations", bench.scaled(30).to_string()),
        ("--message", "turn".to_owned()),
    ] {
        args.extend([name.to_owned(), value]);
    }
    let outcome: Outcome = bench
        .program
        .tell(CorePlacement::LastCore, &["chat"], &args)?;
    server.stop()?;
    std::fs::remove_dir_all(dir)?;
    Ok(outcome)
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let text = "The release binary with the scripted model and durability full: ten turns of 200 deltas \
                at once over `POST /chat/stream`, with traces exported to a collector that takes every batch, \
                and without an endpoint. The two follow each other in each of at least seven pairs, in \
                alternating order. CPU is user and system time of the server's process for a turn. A sampled \
                turn of this kind has a span for itself, its model call, its commits and its delivery.";
    let mut section = paired_section("Traces", text.to_owned());
    let sink = SpanSink::start()?;
    let pairs = match bench.scaled(10) {
        1 => 1,
        _ => bench.rounds.max(PAIRS_MIN),
    };
    // The first run of all reads the binary from the disk.
    load(bench, None)?;
    for (ratio, name) in CASES {
        bench.say(&format!("traces, {name}"));
        let mut pair = PairedResults::default();
        for at in 0..pairs {
            let before = sink.bytes();
            match at % 2 {
                0 => {
                    pair.turnwire.push(load(bench, Some((&sink, ratio)))?);
                    pair.floor.push(load(bench, None)?);
                }
                _ => {
                    pair.floor.push(load(bench, None)?);
                    pair.turnwire.push(load(bench, Some((&sink, ratio)))?);
                }
            }
            let has_sent = sink.bytes() > before;
            if has_sent != (ratio != "0") {
                return Err(io::Error::other(format!("{name}: spans sent: {has_sent}")));
            }
        }
        let figure = format!("CPU µs a turn, {name}");
        section.rows.push(row(&figure, &pair, BESIDE, cpu_a_turn));
        if let (Some(measured), "0.1") = (pair.ratio(cpu_a_turn), ratio) {
            let figure = "tracing, CPU a turn at 10 % sampling, to that without";
            section
                .aims
                .push(PerformanceTarget::at_most(figure, measured, COST_MAX, ""));
        }
    }
    Ok(section)
}
