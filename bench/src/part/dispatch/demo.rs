//! Two hundred turns of the demo at once, on all cores, beside as many plain turns of as many words.
//!
//! The client asks as strangers would: in three languages, of one assistant or of several. What
//! the log then holds is checked by the server's own `verify`.

use std::io;
use std::path::Path;
use std::process::Stdio;

use turnwire_testkit::script::{ModelScript, ScriptStep};

use super::DispatchLoad;
use crate::load::dispatch::Outcome;
use crate::paced::CHAT_STREAMS_MAX;
use crate::part::{BenchConfig, PairedResults, cell, row};
use crate::process::{CorePlacement, ServerProcess};
use crate::report::{PerformanceTarget, ReportSection};
use crate::service::PRINCIPAL;
use crate::stat::share;

/// Demo turns at once.
const DEMO: usize = 200;

/// What the demo is asked: in three languages, of one assistant or of several, one question of
/// more assistants than may be asked at once, one that finds nothing, and small talk.
pub(super) const QUESTIONS: [&str; 8] = [
    "en:any oat milk offers, and what's my points balance?",
    "de:Gibt es Angebote für Hafermilch, und wie ist mein Punktestand?",
    "es:¿Hay ofertas de leche de avena y cuántos puntos tengo?",
    "en:show me my receipts from Bean House",
    "de:Wo bleibt meine Bestellung?",
    "es:ofertas de unicornios",
    "de:Angebote für Kaffee, meine Punkte, meine Kassenbons, und wo bleibt meine Bestellung?",
    "en:hello",
];

/// What the models of the demo pause before a word, and before the first.
const DEMO_WORD_MS: u64 = 22;
const DEMO_FIRST_MS: u64 = 270;

/// A reported figure of both runs: its name and its value.
type Figure = (&'static str, fn(&DemoRun) -> f64);

/// What two hundred turns of the demo gave.
struct DemoRun {
    load: Outcome,
    /// Sessions whose log holds every law.
    sound: usize,
}

impl DemoRun {
    fn run(bench: &BenchConfig, script: Option<&Path>) -> io::Result<Self> {
        let dir = bench.fresh_dir("demo")?;
        let env = [
            ("TURNWIRE_STORE_DURABILITY", "full"),
            ("TURNWIRE_STREAM_CHAT_STREAMS_MAX", CHAT_STREAMS_MAX),
        ];
        let mut command = bench.turnwire(&dir, &env);
        // The data service that is built in.
        command.env_remove("DEMO_CCS");
        if let Some(script) = script {
            command.arg("--script").arg(script);
        }
        let server = ServerProcess::start_at(CorePlacement::Anywhere, command)?;
        let load = DispatchLoad {
            place: CorePlacement::Anywhere,
            at_once: DEMO,
            turns: bench.scaled(5),
            spread_ms: 0,
            asks: &QUESTIONS,
        };
        let load = load.run(bench, &server)?;
        server.stop()?;
        let mut sound = 0;
        for session in &load.sessions {
            sound += usize::from(verified(bench, &dir, session)?);
        }
        std::fs::remove_dir_all(dir)?;
        Ok(Self { load, sound })
    }

    fn cpu_ms(&self) -> f64 {
        self.load.span.server_cpu * 1e3 / self.load.turns as f64
    }

    fn rate(&self) -> f64 {
        self.load.turns as f64 / self.load.span.seconds
    }

    fn peak_mib(&self) -> f64 {
        self.load.peak_kb as f64 / 1024.0
    }

    fn growth_kb(&self) -> f64 {
        let (before, after) = self.load.resident_kb;
        (after as f64 - before as f64) / self.load.turns as f64
    }

    fn completed(&self) -> f64 {
        self.load.completed as f64 * 100.0 / self.load.turns as f64
    }

    fn sound(&self) -> f64 {
        self.sound as f64 * 100.0 / DEMO as f64
    }
}

/// Whether `turnwire verify` finds every law held in a session's log.
fn verified(bench: &BenchConfig, dir: &Path, session: &str) -> io::Result<bool> {
    let mut command = bench.turnwire_verify(session);
    command
        .args(["--principal", PRINCIPAL, "--data"])
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    Ok(command.status()?.success())
}

/// Demo turns beside as many plain turns of as many words.
pub(super) fn measure(bench: &BenchConfig, section: &mut ReportSection) -> io::Result<()> {
    bench.say(&format!("dispatch, {DEMO} demo turns at once"));
    let mut pair = PairedResults::default();
    for _ in 0..bench.rounds {
        let turnwire = DemoRun::run(bench, None)?;
        let words = (turnwire.load.texts / turnwire.load.turns.max(1)).max(1);
        let script = bench.data.join("plain.yaml");
        let say = ScriptStep::slow("word ", 5, DEMO_WORD_MS).repeat(words);
        ModelScript::new()
            .on(".*", [ScriptStep::pause(DEMO_FIRST_MS), say])
            .write(&script)?;
        pair.turnwire.push(turnwire);
        pair.floor.push(DemoRun::run(bench, Some(&script))?);
    }
    let name = |what: &str| format!("{DEMO} demo turns at once, both cores: {what}");
    let figures: [Figure; 9] = [
        ("server CPU ms a turn", DemoRun::cpu_ms),
        ("turns/s", DemoRun::rate),
        ("turn p50, ms", |demo| demo.load.turn_ms.0),
        ("turn p95, ms", |demo| demo.load.turn_ms.1),
        ("pieces of text a turn", |demo| {
            demo.load.texts as f64 / demo.load.turns as f64
        }),
        ("memory at its most, MiB", DemoRun::peak_mib),
        ("memory growth a turn, KiB", DemoRun::growth_kb),
        ("turns that ended as completed, %", DemoRun::completed),
        ("sessions whose log verifies, %", DemoRun::sound),
    ];
    for (what, figure) in figures {
        let row = row(&name(what), &pair, "plain turns", figure);
        section.rows.push(row);
    }
    let client = pair.medians(|demo| demo.load.span.client_cpu / demo.load.span.seconds);
    section.rows.push(vec![
        name("client's share of a core"),
        cell(client.0, share),
        cell(client.1, share),
        "–".to_owned(),
        "plain turns".to_owned(),
    ]);
    for (what, figure) in &figures[7..] {
        let least = pair.turnwire.iter().map(figure).reduce(f64::min);
        let figure = format!("dispatch, {DEMO} demo turns at once, {what}");
        section
            .aims
            .extend(least.map(|least| PerformanceTarget::at_least(&figure, least, 100.0, "")));
    }
    Ok(())
}
