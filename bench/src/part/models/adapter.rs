//! Nanoseconds of a delta, by dialect and by how its bytes come.

use std::io;

use crate::adapter::{DeltaCost, NANOS_MAX, RATIO_MAX};
use crate::part::{BenchConfig, BenchScope, PairedResults, row};
use crate::process::CorePlacement;
use crate::report::{PerformanceTarget, ReportSection};

/// Pieces of text in an answer, and how often one is read in a round.
const WORDS: u64 = 5_000;
const PASSES: u64 = 20;

/// One stream, over the rounds.
#[derive(Default)]
struct AdapterRow {
    name: String,
    decoded: PairedResults<f64>,
    whole: PairedResults<f64>,
}

impl AdapterRow {
    fn add(&mut self, scope: BenchScope, cost: &DeltaCost) {
        self.name = format!(
            "`{}`, {}, {:.0} bytes a delta",
            cost.dialect, cost.cut, cost.bytes
        );
        for (pair, cost_ns) in [
            (&mut self.decoded, cost.decoder),
            (&mut self.whole, cost.whole),
        ] {
            if scope == BenchScope::Both {
                pair.turnwire.push(cost_ns);
            }
            pair.floor.push(cost.bare);
        }
    }

    fn rows(&self) -> [Vec<String>; 2] {
        let beside = "`sse-stream` + `serde_json`";
        let line = |what: &str, pair| {
            let name = format!("{}: {what}, ns", self.name);
            row(&name, pair, beside, |nanos| *nanos)
        };
        [
            line("decoded", &self.decoded),
            line("whole call", &self.whole),
        ]
    }
}

/// What every dialect costs, cut in each way.
pub(super) fn measure(bench: &BenchConfig, section: &mut ReportSection) -> io::Result<()> {
    bench.say("models, adapters");
    let mut lines: Vec<AdapterRow> = Vec::new();
    for _ in 0..bench.rounds {
        let args = [
            format!("--words={}", bench.scaled(WORDS)),
            format!("--passes={}", bench.scaled(PASSES)),
        ];
        let costs: Vec<DeltaCost> =
            bench
                .program
                .tell(CorePlacement::FirstCore, &["adapter"], &args)?;
        lines.resize_with(costs.len(), AdapterRow::default);
        for (line, cost) in lines.iter_mut().zip(&costs) {
            line.add(bench.scope, cost);
        }
    }
    section.rows.extend(lines.iter().flat_map(AdapterRow::rows));
    let ratios = lines.iter().filter_map(|line| line.decoded.ratio(|it| *it));
    let nanos = lines
        .iter()
        .filter_map(|line| line.whole.medians(|it| *it).0);
    let worst = "the worst of all dialects and pieces";
    section.aims.extend(ratios.reduce(f64::max).map(|ratio| {
        let figure = format!("models, a delta decoded : bare parsing, {worst}");
        PerformanceTarget::at_most(&figure, ratio, RATIO_MAX, "")
    }));
    section.aims.extend(nanos.reduce(f64::max).map(|nanos| {
        let figure = format!("models, a delta of a whole call, {worst}");
        PerformanceTarget::at_most(&figure, nanos / 1e3, NANOS_MAX / 1e3, " µs")
    }));
    Ok(())
}
