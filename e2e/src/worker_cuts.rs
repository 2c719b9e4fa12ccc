//! Cut campaign with workers on their parents' connections: turns delegate, two at once and one
//! below another, and readers resume with a cursor for each session.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Barrier;
use turnwire_event::{Body, Event, SessionId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{CutPlace, ResumingReader};

use crate::cuts::{self, CutReport};
use crate::load::{self, HaltFlag};

const SESSIONS: usize = 6;
/// Readers of each session.
const WATCHERS: usize = 2;
/// Cuts of one round: each reader is cut once and resumes at once, and once before the restart.
const ROUND: usize = SESSIONS * WATCHERS * 2;

const WORDS: &str = "One digs, and – 掘る – another writes it down. ";

/// A pack whose orchestrator has two workers, one of which delegates to the other.
pub fn pack() -> TestPack {
    let worker = |id: &str, tools: &str| {
        format!(
            "id: {id}\nversion: \"1\"\nkind: worker\ndescription: Works.\n\
             prompt_blocks: [persona]\ntools: [{tools}]\n"
        )
    };
    let script = ModelScript::new()
        .on(
            "^both",
            [
                ScriptStep::slow(WORDS, 11, 4),
                ScriptStep::tool("dig", json!({"task": "dig deep"})),
                ScriptStep::tool("file", json!({"task": "file it"})),
                ScriptStep::slow(WORDS, 9, 4),
            ],
        )
        .on(
            "^dig",
            [
                ScriptStep::slow(WORDS, 7, 6).repeat(3),
                ScriptStep::tool("file", json!({"task": "file below"})),
                ScriptStep::slow(WORDS, 7, 6).repeat(3),
            ],
        )
        .on("^file", [ScriptStep::slow(WORDS, 5, 6).repeat(4)])
        // Long enough for clients to join in the middle, also on a busy machine.
        .on(
            "^calm digging",
            [
                ScriptStep::slow(WORDS, 5, 40).repeat(8),
                ScriptStep::tool("file", json!({"task": "calm filing"})),
                ScriptStep::text(WORDS),
            ],
        )
        .on("^calm filing", [ScriptStep::slow(WORDS, 5, 40).repeat(16)])
        .on(
            "^calm",
            [
                ScriptStep::tool("dig", json!({"task": "calm digging"})),
                ScriptStep::tool("file", json!({"task": "calm filing"})),
                ScriptStep::text(WORDS),
            ],
        )
        .on(
            "^much",
            [ScriptStep::tool("file", json!({"task": "flood"}))],
        )
        .on(
            "^flood",
            [ScriptStep::slow(&"0123456789".repeat(40), 400, 2).repeat(1_000)],
        );
    TestPack::default()
        .put(
            "pack.yaml",
            "name: carried\nversion: \"1\"\ndefault_locale: en\nmodels:\n  default: \"scripted:x\"\n",
        )
        .put(
            "orchestrator.yaml",
            "id: orchestrator\nversion: \"1\"\nkind: orchestrator\ndescription: Speaks.\n\
             prompt_blocks: [persona]\ntools: [dig, file]\n",
        )
        .put("prompts/persona.md", "You work.\n")
        .put("workers/digger/agent.yaml", &worker("digger", "file"))
        .put("workers/clerk/agent.yaml", &worker("clerk", ""))
        .put(
            "tools.yaml",
            "tools:\n\
             - {name: dig, connector: delegate, agent: digger, description: Digs.}\n\
             - {name: file, connector: delegate, agent: clerk, description: Files.}\n",
        )
        .script(&script)
}

/// All workers of `sessions` and their workers, by the logs.
pub async fn workers(api: &ApiClient, sessions: &[SessionId]) -> Vec<SessionId> {
    let (mut found, mut left) = (Vec::new(), sessions.to_vec());
    while let Some(session) = left.pop() {
        for logged in api.events(session).await.expect("a log") {
            let event = Event::read(logged.text.as_bytes()).expect("an event");
            if let Body::DelegateStarted(start) = event.body {
                let id = start.worker_session_id;
                // Logged but never created: the server was killed in between.
                let response = api.get(&format!("/sessions/{id}")).await;
                if response.expect("an answer").status == 200 {
                    left.push(id);
                    found.push(id);
                }
            }
        }
    }
    found
}

/// Reads all logs, including those of workers, and runs the history checker.
pub async fn check_history(api: &ApiClient, sessions: &[SessionId]) -> Vec<SessionId> {
    let workers = workers(api, sessions).await;
    load::check_history(api, &[sessions, &workers[..]].concat()).await;
    workers
}

/// Keeps a delegating turn in flight; some are cancelled.
async fn drive(api: ApiClient, session: SessionId, mut rng: SeededRng, halt: HaltFlag) {
    while !halt.is_halted() {
        let answer = api.try_submit(session, "both").await;
        let accepted = answer.ok().filter(|answer| answer.status == 202);
        let turn = accepted.and_then(|answer| answer.json()["turn_id"].as_str()?.parse().ok());
        let Some(turn) = turn else {
            tokio::time::sleep(rng.millis(5, 40)).await;
            continue;
        };
        if rng.chance(20) {
            tokio::time::sleep(rng.millis(0, 400)).await;
            let _ = api.cancel(turn).await;
        }
        load::ended(&api, turn).await;
    }
}

/// Makes at least `cuts` cuts on one server with restarts, and checks the history; returns the
/// counts and the number of workers.
pub async fn run(cuts: usize, mut rng: SeededRng) -> (CutReport, usize) {
    let options = ServerOptions::pack(pack()).set("listen", "drain_ms", 300);
    let mut server = TestServer::start(options).await;
    let api = server.api();
    let sessions = load::sessions(&api, SESSIONS).await;
    let halt = HaltFlag::default();
    let drive = |&session: &SessionId| drive(api.clone(), session, rng.fork(), halt.clone());
    let drivers: Vec<_> = sessions.iter().map(drive).map(tokio::spawn).collect();
    let rounds = cuts.div_ceil(ROUND).max(1);
    let barrier = Arc::new(Barrier::new(SESSIONS * WATCHERS + 1));
    let mut readers = Vec::new();
    for &session in &sessions {
        for number in 0..WATCHERS {
            let reader =
                ResumingReader::new(&api, &format!("reader {number}"), session).with_workers();
            let barrier = Arc::clone(&barrier);
            readers.push(tokio::spawn(cuts::read(
                reader,
                rng.fork(),
                rounds,
                barrier,
            )));
        }
    }
    for round in 0..rounds {
        barrier.wait().await;
        cuts::restart(&mut server, round).await;
        barrier.wait().await;
    }
    let mut report = CutReport {
        restarts: rounds,
        ..CutReport::default()
    };
    halt.halt();
    for driver in drivers {
        driver.await.expect("a driver");
    }
    for reader in readers {
        let (mut reader, places) = reader.await.expect("a reader");
        report.cuts += places.len();
        report.inside += places
            .iter()
            .filter(|place| place.0 == CutPlace::Inside)
            .count();
        report.restarted += places.iter().filter(|place| place.1).count();
        if let Some(end) = load::wait_until_idle(&api, reader.session()).await {
            reader.finish(end).await;
        }
    }
    let workers = check_history(&api, &sessions).await;
    (report, workers.len())
}
