//! Replay of 10,000 persisted events beside the floor: one late reader, and 20 at once.

use std::io;

use super::{BenchConfig, BenchScope, PairedResults, cell};
use crate::load::{fill, only, replay::ReplayTiming};
use crate::process::{CorePlacement, ServerProcess};
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::short;

/// What the session wire replays at most by default.
const EVENTS: u64 = 10_000;

/// With the session's own first events and those that tell of readers, the log is a little longer
/// than 10,000, which is the default's limit.
const REPLAY_MAX: (&str, &str) = ("TURNWIRE_STREAM_REPLAY_MAX", "20000");

/// Late readers at once.
const READERS: u64 = 20;

fn filled(bench: &BenchConfig, server: &ServerProcess) -> io::Result<String> {
    let mut args = server.target();
    args.extend(["--events".to_owned(), EVENTS.to_string()]);
    let outcome: fill::Outcome = bench
        .program
        .tell(CorePlacement::LastCore, &["fill"], &args)?;
    Ok(outcome.session)
}

/// What readers ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplayRequest {
    Full,
    /// One type, so that the server has to look which events pass.
    OneType,
}

impl ReplayRequest {
    const ALL: [Self; 2] = [Self::Full, Self::OneType];

    fn name(self) -> &'static str {
        match self {
            Self::Full => "`preset:full`",
            Self::OneType => "one type",
        }
    }

    fn filter(self) -> String {
        match self {
            Self::Full => r#""preset:full""#.to_owned(),
            Self::OneType => only("feedback.recorded"),
        }
    }

    fn load(
        self,
        bench: &BenchConfig,
        to: (&ServerProcess, &str),
        readers: u64,
    ) -> io::Result<Vec<ReplayTiming>> {
        let (server, session) = to;
        let mut args = server.target();
        for (name, value) in [
            ("--session", session.to_owned()),
            ("--filter", self.filter()),
            ("--events", EVENTS.to_string()),
            ("--readers", readers.to_string()),
            ("--times", "5".to_owned()),
        ] {
            args.extend([name.to_owned(), value]);
        }
        bench
            .program
            .tell(CorePlacement::LastCore, &["replay"], &args)
    }
}

/// What one way of asking gave: one reader, and 20 at once.
struct Case {
    ask: ReplayRequest,
    one: PairedResults<ReplayTiming>,
    many: PairedResults<ReplayTiming>,
}

impl Case {
    fn ours(&mut self, bench: &BenchConfig, to: (&ServerProcess, &str)) -> io::Result<()> {
        self.one.turnwire.extend(self.ask.load(bench, to, 1)?);
        self.many
            .turnwire
            .extend(self.ask.load(bench, to, READERS)?);
        Ok(())
    }

    fn floor(&mut self, bench: &BenchConfig, to: (&ServerProcess, &str)) -> io::Result<()> {
        self.one.floor.extend(self.ask.load(bench, to, 1)?);
        self.many.floor.extend(self.ask.load(bench, to, READERS)?);
        Ok(())
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let line =
            |name: &str, pair: &PairedResults<ReplayTiming>, figure: fn(&ReplayTiming) -> f64| {
                let (turnwire, floor) = pair.medians(figure);
                vec![
                    format!("{}, {name}", self.ask.name()),
                    cell(turnwire, short),
                    cell(floor, short),
                    pair.ratio_cell(figure),
                ]
            };
        vec![
            line("one reader, events/s", &self.one, rate),
            line("one reader, first event, ms", &self.one, first),
            line("20 at once, first event of the last, ms", &self.many, first),
            line("20 at once, all have all, ms", &self.many, all),
            line("20 at once, events/s in all", &self.many, |once| {
                rate(once) * READERS as f64
            }),
        ]
    }

    fn aims(&self) -> Vec<PerformanceTarget> {
        let (Some(rate), Some(first)) = (self.one.medians(rate).0, self.many.medians(first).0)
        else {
            return Vec::new();
        };
        let name = self.ask.name();
        vec![
            PerformanceTarget::at_least(
                &format!("replay of 10,000, {name}, one reader"),
                rate,
                300e3,
                " events/s",
            ),
            PerformanceTarget::at_most(
                &format!("replay, {name}, first event of the last of 20 readers"),
                first,
                50.0,
                " ms",
            ),
        ]
    }
}

fn rate(once: &ReplayTiming) -> f64 {
    EVENTS as f64 / once.all_ms * 1e3
}

fn first(once: &ReplayTiming) -> f64 {
    once.first_ms
}

fn all(once: &ReplayTiming) -> f64 {
    once.all_ms
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut cases = ReplayRequest::ALL.map(|ask| Case {
        ask,
        one: PairedResults::default(),
        many: PairedResults::default(),
    });
    for _ in 0..bench.rounds {
        bench.say("replay of 10,000");
        if bench.scope == BenchScope::Both {
            let dir = bench.fresh_dir("replay")?;
            let server = bench.turnwire_server(&dir, &[])?;
            let session = filled(bench, &server)?;
            // A restart empties every ring: what is replayed then comes from the store.
            server.stop()?;
            let server = bench.turnwire_server(&dir, &[REPLAY_MAX])?;
            for case in &mut cases {
                case.ours(bench, (&server, &session))?;
            }
            server.stop()?;
            std::fs::remove_dir_all(dir)?;
        }
        let floor = bench.floor(0.0, 0.0)?;
        let session = filled(bench, &floor)?;
        for case in &mut cases {
            case.floor(bench, (&floor, &session))?;
        }
    }
    Ok(ReportSection {
        title: "Replay of 10,000 events",
        text: "A session gets 10,000 persisted events by feedback posts; the server (the release \
               binary, durability full) is restarted, so that all of them come from the store; \
               then late readers subscribe from the first cursor, to everything or to the one \
               type (which the server has to count first). The clock runs from the first \
               subscribe to the 10,000th event. The floor has the bytes ready in memory and no \
               filters."
            .to_owned(),
        columns: vec!["figure", "Turnwire", "floor", "ratio"],
        rows: cases.iter().flat_map(Case::rows).collect(),
        aims: cases.iter().flat_map(Case::aims).collect(),
        peers: None,
        others: 0.0,
    })
}
