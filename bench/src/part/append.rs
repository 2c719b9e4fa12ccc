//! Durable append beside bare SQLite: 64 and 1,000 sessions, each waiting for its commit.

use std::io;

use super::{BenchConfig, BenchEffort, BenchScope, PairedResults, cell};
use crate::append::{EVENT_BYTES, Outcome};
use crate::process::CorePlacement;
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::short;

fn measure(bench: &BenchConfig, who: &str, sessions: u64) -> io::Result<Outcome> {
    let millis = match bench.effort {
        BenchEffort::Full => "4000",
        BenchEffort::Quick => "800",
    };
    let dir = bench.fresh_dir("append")?;
    let sessions = sessions.to_string();
    let outcome = bench.program.tell(
        CorePlacement::Anywhere,
        &[
            "append",
            "--who",
            who,
            "--sessions",
            &sessions,
            "--millis",
            millis,
        ],
        &["--dir".to_owned(), dir.display().to_string()],
    )?;
    std::fs::remove_dir_all(dir)?;
    Ok(outcome)
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.events_per_second
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut rows = Vec::new();
    let mut aims = Vec::new();
    for sessions in [64, 1_000] {
        bench.say(&format!("append from {sessions} sessions"));
        let mut pair = PairedResults::default();
        for _ in 0..bench.rounds {
            if bench.scope == BenchScope::Both {
                pair.turnwire.push(measure(bench, "turnwire", sessions)?);
            }
            pair.floor.push(measure(bench, "bare", sessions)?);
        }
        let (turnwire, bare) = pair.medians(rate);
        let ack = |percentile: fn(&Outcome) -> f64| {
            let (turnwire, bare) = pair.medians(percentile);
            format!("{} / {}", cell(turnwire, short), cell(bare, short))
        };
        rows.push(vec![
            format!("{sessions} sessions"),
            cell(turnwire, short),
            cell(bare, short),
            pair.ratio_cell(rate),
            ack(|outcome| outcome.ack_ms.0),
            ack(|outcome| outcome.ack_ms.1),
        ]);
        if let Some(ratio) = pair.ratio(rate) {
            let figure = format!("durable append, {sessions} sessions, against bare SQLite");
            aims.push(PerformanceTarget::at_least(&figure, ratio, 0.7, ""));
        }
    }
    Ok(ReportSection {
        title: "Durable append",
        text: format!(
            "Durable events a second in a closed loop: each session appends its next event when \
             the last one is on disk. Turnwire: `Sequencer` and `Writer` on their SQLite store \
             with durability full: order, envelope, hash chain, release. Bare: one table, one \
             writer thread, up to 1,024 rows a transaction, WAL, `synchronous=FULL`, the same \
             disk and the same rows with {EVENT_BYTES} bytes of event each."
        ),
        columns: vec![
            "case",
            "Turnwire",
            "bare SQLite",
            "ratio",
            "ack p50 ms (Turnwire / bare)",
            "ack p99 ms (Turnwire / bare)",
        ],
        rows,
        aims,
        peers: None,
        others: 0.0,
    })
}
