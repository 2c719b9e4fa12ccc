//! Cancel campaign: turns of every kind are cancelled at random times, by HTTP or WebSocket, some
//! of them twice. Each cancelled turn is exactly one of the cases of S3 6.2 (F14).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use turnwire_event::{EventType, SessionId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::cancel_case::{CancelCase, check_uncancelled_turn, classify_cancel};
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

use crate::load;

const SESSIONS: usize = 16;
/// The latest cancel: slightly later than the end of every turn but those of the kind `later`,
/// whose second model call goes on for seconds, so that a slow machine cancels there too.
const LATEST_MS: u64 = 260;

/// The number of cancelled turns per case.
pub type CancelReport = BTreeMap<CancelCase, usize>;

fn script() -> ModelScript {
    let words = "One two three four five six seven eight nine ten. ";
    ModelScript::new()
        .on("^silent", [ScriptStep::pause(120), ScriptStep::text(words)])
        .on("^talk", [ScriptStep::slow(words, 3, 8)])
        .on(
            "^tools",
            [
                ScriptStep::slow(words, 12, 6),
                ScriptStep::slow_tool(tool::ECHO, json!({"text": "some text to echo"}), 8, 3),
                ScriptStep::tool(tool::SLEEP, json!({"ms": 60})),
                ScriptStep::tool(tool::SLEEP, json!({"ms": 90})),
                ScriptStep::slow(words, 6, 8),
            ],
        )
        .on(
            "^later",
            [
                ScriptStep::tool(tool::CLOCK, json!({})),
                ScriptStep::slow(words, 12, 50).repeat(60),
            ],
        )
        .on(
            "^seam",
            [
                ScriptStep::tool(tool::ECHO, json!({"text": "a"})),
                ScriptStep::tool(tool::CLOCK, json!({})),
                ScriptStep::tool(tool::ECHO, json!({"text": "b"})),
                ScriptStep::tool(tool::CLOCK, json!({})),
                ScriptStep::stop("tool_use", 0.0),
                ScriptStep::tool(tool::ECHO, json!({"text": "c"})),
                ScriptStep::stop("tool_use", 0.0),
                ScriptStep::text("done"),
            ],
        )
}

/// Cancels `cancels` turns on one server, and checks the history.
pub async fn run(cancels: usize, mut rng: SeededRng) -> CancelReport {
    let server = TestServer::start(ServerOptions::script(script())).await;
    let api = server.api();
    let sessions = load::sessions(&api, SESSIONS).await;
    let remaining = Arc::new(AtomicUsize::new(cancels));
    let tasks: Vec<_> = sessions
        .iter()
        .map(|&session| {
            tokio::spawn(cancel(
                api.clone(),
                session,
                rng.fork(),
                Arc::clone(&remaining),
            ))
        })
        .collect();
    let mut report = CancelReport::new();
    for task in tasks {
        for (case, count) in task.await.expect("a canceller") {
            *report.entry(case).or_default() += count;
        }
    }
    load::check_history(&api, &sessions).await;
    report
}

/// Cancels turns in one session until enough have been cancelled in all.
async fn cancel(
    api: ApiClient,
    session: SessionId,
    mut rng: SeededRng,
    left: Arc<AtomicUsize>,
) -> CancelReport {
    let mut report = CancelReport::new();
    let mut client = WatchClient::connect(&api, "canceller", session)
        .await
        .expect("a connection");
    client
        .subscribed(&SubscribeOptions::live())
        .await
        .expect("an acknowledgement");
    while left.load(Ordering::Acquire) > 0 {
        let kinds = ["silent", "talk", "tools", "tools", "later", "seam", "seam"];
        let kind = kinds[rng.index(kinds.len())];
        let turn = api.submit(session, kind).await.expect("an answer").turn_id;
        // Half of them early, where most of the seams are.
        let latest = if rng.chance(50) { 20 } else { LATEST_MS };
        tokio::time::sleep(rng.millis(0, latest)).await;
        for _ in 0..=rng.between(0, 2) {
            if rng.chance(50) {
                let answer = api.cancel(turn).await.expect("an answer");
                assert_eq!(answer.status, 202, "{}", answer.body);
            } else {
                let frame = json!({"type": "cancel", "turn_id": turn, "reason": "enough"});
                client.send(&frame).await.expect("sent");
            }
        }
        let events = client.turn(turn).await.expect("the turn's events");
        let last = events.last().expect("a terminal").body.kind();
        if last == EventType::TurnCompleted {
            // The cancel came too late, and the turn completed.
            check_uncancelled_turn(&events)
                .unwrap_or_else(|why| panic!("{kind} {turn}: {why}\n{events:#?}"));
            continue;
        }
        let case = classify_cancel(&events)
            .unwrap_or_else(|why| panic!("{kind} {turn}: {why}\n{events:#?}"));
        *report.entry(case).or_default() += 1;
        let _ = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
    }
    report
}
