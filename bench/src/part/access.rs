//! Authentication: what the check of a token costs, and what it adds to the delivery of a turn.

use std::io;

use turnwire_testkit::issuer::SigningKey;

use super::{BenchConfig, PairedResults, paired_section, row};
use crate::load::chat::Outcome;
use crate::paced::CHAT_STREAMS_MAX;
use crate::process::CorePlacement;
use crate::report::{PerformanceTarget, ReportSection};
use crate::stat::short;
use crate::token_check::{TokenCost, token, write_keys};

/// The pairs that a median is taken of, at least.
const PAIRS_MIN: usize = 7;

/// Turns at the same time.
const AT_ONCE: &str = "10";

/// The most that a first check may take in microseconds, by algorithm, and any later one.
const FIRST_MAX_US: [(&str, f64); 2] = [("RS256", 100.0), ("ES256", 250.0)];
const AGAIN_MAX_US: f64 = 5.0;

/// The most processor time of a delivery with authentication, as a share of that without.
const COST_MAX: f64 = 1.05;

fn cpu_a_turn(outcome: &Outcome) -> f64 {
    outcome.span.server_cpu * 1e6 / outcome.turns as f64
}

/// Runs the turns once, with a token in each request or on a server that believes everybody.
fn load(bench: &BenchConfig, key: Option<&SigningKey>) -> io::Result<Outcome> {
    let dir = bench.fresh_dir("access")?;
    let mut settings = vec![
        ("TURNWIRE_STORE_DURABILITY", "full".to_owned()),
        (
            "TURNWIRE_STREAM_CHAT_STREAMS_MAX",
            CHAT_STREAMS_MAX.to_owned(),
        ),
    ];
    if let Some(key) = key {
        settings.extend(write_keys(key, &dir)?);
    }
    let env: Vec<_> = settings
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
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
    if let Some(key) = key {
        args.extend(["--token".to_owned(), token(key, 0)]);
    }
    let outcome: Outcome = bench
        .program
        .tell(CorePlacement::LastCore, &["chat"], &args)?;
    server.stop()?;
    std::fs::remove_dir_all(dir)?;
    Ok(outcome)
}

/// The lines and targets of the checks alone.
fn checks(bench: &BenchConfig, section: &mut ReportSection) -> io::Result<()> {
    let dir = bench.fresh_dir("tokens")?;
    let path = dir.display().to_string();
    let costs: Vec<TokenCost> =
        bench
            .program
            .tell(CorePlacement::FirstCore, &["tokens", "--dir", &path], &[])?;
    std::fs::remove_dir_all(dir)?;
    for cost in costs {
        let name = &cost.name;
        if let (Some((first, p99)), Some(signature)) = (cost.first, cost.signature) {
            section.rows.push(vec![
                format!("µs of the first check, {name} (p99 {})", short(p99)),
                short(first),
                short(signature),
                short(first / signature),
                "the bare check of the signature".to_owned(),
            ]);
            if let Some((_, max)) = FIRST_MAX_US.iter().find(|(known, _)| known == name) {
                let figure = format!("first check of a token, {name}");
                let target = PerformanceTarget::at_most(&figure, first, *max, " µs");
                section.aims.push(target);
            }
        }
        let figure = format!("check of a known token, {name}");
        section.rows.push(vec![
            format!("µs of a {figure}"),
            short(cost.again),
            String::new(),
            String::new(),
            String::new(),
        ]);
        let target = PerformanceTarget::at_most(&figure, cost.again, AGAIN_MAX_US, " µs");
        section.aims.push(target);
    }
    Ok(())
}

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let text = "The checks: in this program, on one core, a thousand tokens of each kind for the first time, and one \
                token again and again. The deliveries: the release binary with the scripted model and \
                durability full, ten turns of 200 deltas at once over `POST /chat/stream`, each with a JSON Web \
                Token (ES256), and without authentication. The two follow each other in each of at least seven \
                pairs, in alternating order. CPU is user and system time of the server's process for a turn.";
    let mut section = paired_section("Access", text.to_owned());
    bench.say("access, checks of tokens");
    checks(bench, &mut section)?;
    let pairs = match bench.scaled(10) {
        1 => 1,
        _ => bench.rounds.max(PAIRS_MIN),
    };
    let key = SigningKey::es256("bench");
    // The first run of all reads the binary from the disk.
    load(bench, None)?;
    bench.say("access, deliveries");
    let mut pair = PairedResults::default();
    for at in 0..pairs {
        match at % 2 {
            0 => {
                pair.turnwire.push(load(bench, Some(&key))?);
                pair.floor.push(load(bench, None)?);
            }
            _ => {
                pair.floor.push(load(bench, None)?);
                pair.turnwire.push(load(bench, Some(&key))?);
            }
        }
    }
    let figure = "CPU µs a turn, with authentication";
    let beside = "the same without authentication";
    section.rows.push(row(figure, &pair, beside, cpu_a_turn));
    if let Some(measured) = pair.ratio(cpu_a_turn) {
        let figure = "authentication, CPU a turn, to that without";
        section
            .aims
            .push(PerformanceTarget::at_most(figure, measured, COST_MAX, ""));
    }
    Ok(section)
}
