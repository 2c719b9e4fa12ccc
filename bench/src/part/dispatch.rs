//! Sub-agents: what asking them costs a turn, and two hundred turns of the demo at once.
//!
//! Most references are Turnwire itself: a turn that calls fewer sub-agents or none. A run of
//! references alone therefore has only the gate's lookup.

mod demo;

use std::io;

use serde_json::json;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};

use super::{BenchConfig, BenchScope, PairedResults, SLOW_MS, paired_section, row};
use crate::load::dispatch::Outcome;
use crate::policy::{self, RATIO_MAX};
use crate::process::{CorePlacement, ServerProcess};
use crate::report::{PerformanceTarget, ReportSection};
use crate::sample::WORDS;

/// How long the data service takes where a turn's own time is looked at.
const SECOND_MS: u64 = 1_000;

/// How long it takes where many turns are at once.
const DATA_MS: u64 = 50;

/// Deltas of a short answer, of one of a sentence or two, and of a usual one, as where turns are measured.
const SHORT: u64 = 4;
const MEDIUM: u64 = 40;
const LONG: u64 = 200;

/// Turns at once where dispatches are timed.
const TIMED: usize = 50;

/// About how long a turn takes before its answer begins: the first turns are spread over their length, as
/// people do not speak in chorus.
const BEFORE_ANSWER_MS: u64 = 150;

/// One run of the load client.
struct DispatchLoad<'a> {
    place: CorePlacement,
    at_once: usize,
    turns: u64,
    spread_ms: u64,
    asks: &'a [&'a str],
}

impl DispatchLoad<'_> {
    fn run(&self, bench: &BenchConfig, server: &ServerProcess) -> io::Result<Outcome> {
        let mut args = server.target();
        for (name, value) in [
            ("--at-once", self.at_once as u64),
            ("--turns", self.turns),
            ("--spread-ms", self.spread_ms),
        ] {
            args.extend([name.to_owned(), value.to_string()]);
        }
        args.extend(self.asks.iter().map(|ask| format!("--ask={ask}")));
        let outcome: Outcome = bench.program.tell(self.place, &["dispatch"], &args)?;
        if outcome.busy > 0 {
            bench.say(&format!("{} posts met a held lock", outcome.busy));
        }
        Ok(outcome)
    }
}

/// Turnwire with the pack of the stage, and the data service it asks.
struct DispatchServer {
    server: ServerProcess,
    // Answers until the stage is gone.
    _service: ServerProcess,
}

impl DispatchServer {
    fn start(bench: &BenchConfig, data_ms: u64, durability: &str) -> io::Result<Self> {
        let delay = data_ms.to_string();
        let service = bench.program.role(&["service", "--delay-ms", &delay]);
        let service = ServerProcess::start_at(CorePlacement::LastCore, service)?;
        let pack = bench.data.join("pack");
        let url = format!("http://{}", service.address);
        TestPack::market(&url).script(&script()).write(&pack)?;
        let dir = bench.fresh_dir("dispatch")?;
        let mut command = bench.turnwire(&dir, &[("TURNWIRE_STORE_DURABILITY", durability)]);
        command.arg("--pack").arg(pack);
        Ok(Self {
            server: ServerProcess::start(command)?,
            _service: service,
        })
    }
}

/// What the models of the stage say: the orchestrator asks one or two, each of them asks the data
/// service once, and everyone pauses before every word.
fn script() -> ModelScript {
    let pause = || ScriptStep::pause(SLOW_MS);
    let ask = |name: &str| ScriptStep::tool(name, json!({ "query": "what is there?" }));
    let look = |name: &str| [pause(), ScriptStep::tool(name, json!({}))];
    let say = |deltas| [ScriptStep::slow(WORDS, WORDS.len(), SLOW_MS).repeat(deltas)];
    let both = [pause(), ask("ask_shop"), ask("ask_rewards")];
    ModelScript::new()
        .on_call("orchestrator", "^two", 1, both)
        .on_call("orchestrator", "^one", 1, [pause(), ask("ask_shop")])
        .on_call("orchestrator", "long$", 2, say(LONG))
        .on_call("orchestrator", "medium$", 2, say(MEDIUM))
        .call("orchestrator", 2, say(SHORT))
        .call("shop", 1, look("search_offers"))
        .call("shop", 2, say(SHORT))
        .call("rewards", 1, look("points_balance"))
        .call("rewards", 2, say(SHORT))
}

/// Turns of two sub-agents beside turns of one, one at a time.
fn seconds(bench: &BenchConfig, section: &mut ReportSection) -> io::Result<()> {
    bench.say("dispatch, two sub-agents of a second each");
    let mut pair = PairedResults::default();
    for _ in 0..bench.rounds {
        let stage = DispatchServer::start(bench, SECOND_MS, "full")?;
        let load = |ask| DispatchLoad {
            place: CorePlacement::LastCore,
            at_once: 1,
            turns: bench.scaled(20),
            spread_ms: 0,
            asks: ask,
        };
        pair.turnwire
            .push(load(&["en:two"]).run(bench, &stage.server)?);
        pair.floor
            .push(load(&["en:one"]).run(bench, &stage.server)?);
        stage.server.stop()?;
    }
    let name = "two sub-agents whose data take 1 s each, one turn at a time: turn";
    let beside = "one such sub-agent";
    let p95 = |outcome: &Outcome| outcome.turn_ms.1;
    let p50 = row(&format!("{name} p50, ms"), &pair, beside, |o| o.turn_ms.0);
    section.rows.push(p50);
    let row = row(&format!("{name} p95, ms"), &pair, beside, p95);
    section.rows.push(row);
    section.aims.extend(pair.medians(p95).0.map(|ms| {
        let figure = "dispatch, turn of two sub-agents of 1 s each, p95";
        PerformanceTarget::at_most(figure, ms / 1e3, 1.2, " s")
    }));
    Ok(())
}

/// The requirement for the overhead of a dispatch, in milliseconds.
const OVERHEAD_MS_MAX: f64 = 5.0;
/// The requirement for one emit, in milliseconds.
const WRITER_MS_MAX: f64 = 1.0;

/// The overhead of a dispatch with many turns at once, beside one turn at a time. The requirement is
/// about a server below saturation: the medium answers show what is beyond it.
fn overhead(bench: &BenchConfig, section: &mut ReportSection) -> io::Result<()> {
    for (ask, pieces, agents, durability) in [
        ("en:one long", LONG, "one sub-agent", "full"),
        ("en:two long", LONG, "two sub-agents", "full"),
        ("en:one medium", MEDIUM, "one sub-agent", "full"),
        ("en:two medium", MEDIUM, "two sub-agents", "full"),
        ("en:one long", LONG, "one sub-agent", "relaxed"),
    ] {
        let what = format!("{agents} a turn, {pieces} pieces, {durability}");
        bench.say(&format!("dispatch, overhead, {what}"));
        let asks = [ask];
        let mut pair = PairedResults::default();
        for _ in 0..bench.rounds {
            let stage = DispatchServer::start(bench, DATA_MS, durability)?;
            let load = |at_once| DispatchLoad {
                place: CorePlacement::LastCore,
                at_once,
                turns: bench.scaled(20),
                spread_ms: BEFORE_ANSWER_MS + pieces * SLOW_MS,
                asks: &asks,
            };
            let many = load(TIMED).run(bench, &stage.server)?;
            pair.turnwire.push(many);
            let one = load(1).run(bench, &stage.server)?;
            pair.floor.push(one);
            stage.server.stop()?;
        }
        let name = format!("dispatch overhead, {TIMED} turns at once, {what}");
        let beside = "one turn at a time";
        let share = |outcome: &Outcome| outcome.span.server_cpu / outcome.span.seconds * 100.0;
        let p50 = |outcome: &Outcome| outcome.overhead_p50_ms;
        let p95 = |outcome: &Outcome| outcome.overhead_p95_ms;
        section.rows.extend([
            row(&format!("{name}: p50, ms"), &pair, beside, p50),
            row(&format!("{name}: p95, ms"), &pair, beside, p95),
            row(
                &format!("{name}: server's share of its core, %"),
                &pair,
                beside,
                share,
            ),
        ]);
        if durability == "full" && pieces == LONG {
            let aim = |ms| {
                PerformanceTarget::at_most(&format!("{name}, p95"), ms, OVERHEAD_MS_MAX, " ms")
                    .required("S2-070")
            };
            section.aims.extend(pair.medians(p95).0.map(aim));
            let writer = pair.medians(|outcome: &Outcome| outcome.writer_p95_ms).0;
            section.aims.extend(writer.map(|ms| {
                let figure = format!("one emit, {TIMED} turns at once, {what}, p95");
                PerformanceTarget::at_most(&figure, ms, WRITER_MS_MAX, " ms").required("S1-048")
            }));
        }
    }
    Ok(())
}

/// A forwarded event beside a bare lookup.
fn gate(bench: &BenchConfig, section: &mut ReportSection) -> io::Result<()> {
    bench.say("dispatch, the gate of the rendering policy");
    let mut pair = PairedResults::default();
    for _ in 0..bench.rounds {
        let spent: policy::Outcome =
            bench
                .program
                .tell(CorePlacement::FirstCore, &["policy"], &[])?;
        if bench.scope == BenchScope::Both {
            pair.turnwire.push(spent.text);
        }
        pair.floor.push(spent.bare);
    }
    let name = "`text.delta` forwarded by the gate, ns";
    let beside = "a bare `HashMap` lookup";
    section.rows.push(row(name, &pair, beside, |nanos| *nanos));
    section.aims.extend(pair.ratio(|nanos| *nanos).map(|ratio| {
        let figure = "gate, text.delta forwarded : bare lookup";
        PerformanceTarget::at_most(figure, ratio, RATIO_MAX, "")
    }));
    Ok(())
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut section = paired_section(
        "Dispatch: turns that ask sub-agents",
        format!(
            "The release binary, everyone posts the next turn (`POST /chat/stream`) when the last one \
             ended; a turn counts from before the connect to the end of its stream. *Two sub-agents*: \
             a pack of three verticals whose data service takes a second for every answer; every \
             model pauses {SLOW_MS} ms before each piece of what it says. *Dispatch overhead*: the \
             same pack, a data service that takes {DATA_MS} ms, an answer of {LONG} pieces, and of \
             {MEDIUM}, which is near what one core can do; what is \
             told is `dispatch.overhead_ms` of the server's own `/metrics`, the time from the parsed \
             tool call to the handled result that no model and no tool took, the wait for the \
             commit of tool calls with effects included, which this pack has none of. Only counts per bucket are known (bounds at 0.25, 0.5, 1, 2, 2.5, 5 \
             ms and so on), so a percentile is taken inside its bucket by proportion. *Demo*: the \
             built-in pack with its built-in data service in the same process, {} questions in turn \
             in three languages, one of them for more assistants than may be asked at once; beside \
             it plain turns (one agent, no dispatch, as many pieces of text with the same pauses). \
             The pauses bound turns/s; server and client share all cores. After it every session's \
             log is checked with `turnwire verify`. *The gate*: nanoseconds of one event through the \
             rendering policy, what `cargo bench -p turnwire-bench --bench policy` prints.",
            demo::QUESTIONS.len()
        ),
    );
    if bench.scope == BenchScope::Both {
        seconds(bench, &mut section)?;
        overhead(bench, &mut section)?;
        demo::measure(bench, &mut section)?;
    }
    gate(bench, &mut section)?;
    Ok(section)
}
