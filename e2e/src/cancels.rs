//! Cancels: turns of every kind are cancelled at random moments, over HTTP or over the wire,
//! some of them twice. Each that was cancelled is exactly one of the cases of S3 6.2 (F14).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use turnwire_event::{EventType, SessionId};
use turnwire_testkit::cases::{Case, cancel_case, plain_turn};
use turnwire_testkit::dice::Dice;
use turnwire_testkit::rest::Rest;
use turnwire_testkit::script::{Script, Step, tool};
use turnwire_testkit::server::{Options, Server};
use turnwire_testkit::watch::{Ask, Client};

use crate::load;

const SESSIONS: usize = 16;
/// How late a cancel may come: a little later than the longest turn takes.
const LATEST_MS: u64 = 260;

/// What a campaign has seen: how often each case.
pub type Report = BTreeMap<Case, usize>;

fn script() -> Script {
    let words = "One two three four five six seven eight nine ten. ";
    Script::new()
        .on("^silent", [Step::pause(120), Step::text(words)])
        .on("^talk", [Step::slow(words, 3, 8)])
        .on(
            "^tools",
            [
                Step::slow(words, 12, 6),
                Step::slow_tool(tool::ECHO, json!({"text": "some text to echo"}), 8, 3),
                Step::tool(tool::SLEEP, json!({"ms": 60})),
                Step::tool(tool::SLEEP, json!({"ms": 90})),
                Step::slow(words, 6, 8),
            ],
        )
        .on(
            "^seam",
            [
                Step::tool(tool::ECHO, json!({"text": "a"})),
                Step::tool(tool::CLOCK, json!({})),
                Step::tool(tool::ECHO, json!({"text": "b"})),
                Step::tool(tool::CLOCK, json!({})),
                Step::stop("tool_use", 0.0),
                Step::tool(tool::ECHO, json!({"text": "c"})),
                Step::stop("tool_use", 0.0),
                Step::text("done"),
            ],
        )
}

/// Cancels so many turns on one server, and judges.
pub async fn run(cancels: usize, mut dice: Dice) -> Report {
    let server = Server::start(Options::script(script())).await;
    let rest = server.rest();
    let sessions = load::sessions(&rest, SESSIONS).await;
    let left = Arc::new(AtomicUsize::new(cancels));
    let tasks: Vec<_> = sessions
        .iter()
        .map(|&session| {
            tokio::spawn(cancel(
                rest.clone(),
                session,
                dice.fork(),
                Arc::clone(&left),
            ))
        })
        .collect();
    let mut report = Report::new();
    for task in tasks {
        for (case, count) in task.await.expect("a canceller") {
            *report.entry(case).or_default() += count;
        }
    }
    load::judge(&rest, &sessions).await;
    report
}

/// Cancels turns in one session until enough have been cancelled in all.
async fn cancel(rest: Rest, session: SessionId, mut dice: Dice, left: Arc<AtomicUsize>) -> Report {
    let mut report = Report::new();
    let mut client = Client::connect(&rest, "canceller", session)
        .await
        .expect("a connection");
    client
        .subscribed(&Ask::live())
        .await
        .expect("an acknowledgement");
    while left.load(Ordering::Acquire) > 0 {
        let kinds = ["silent", "talk", "tools", "tools", "seam", "seam"];
        let kind = kinds[dice.index(kinds.len())];
        let turn = rest.submit(session, kind).await.expect("an answer").turn_id;
        // Half of them early, where most of the seams are.
        let latest = if dice.chance(50) { 20 } else { LATEST_MS };
        tokio::time::sleep(dice.millis(0, latest)).await;
        for _ in 0..=dice.between(0, 2) {
            if dice.chance(50) {
                let answer = rest.cancel(turn).await.expect("an answer");
                assert_eq!(answer.status, 202, "{}", answer.body);
            } else {
                let frame = json!({"type": "cancel", "turn_id": turn, "reason": "enough"});
                client.send(&frame).await.expect("sent");
            }
        }
        let events = client.turn(turn).await.expect("the turn's events");
        let last = events.last().expect("a terminal").body.kind();
        if last == EventType::TurnCompleted {
            // The cancel came too late, and the turn is whole.
            plain_turn(&events).unwrap_or_else(|why| panic!("{kind} {turn}: {why}\n{events:#?}"));
            continue;
        }
        let case =
            cancel_case(&events).unwrap_or_else(|why| panic!("{kind} {turn}: {why}\n{events:#?}"));
        *report.entry(case).or_default() += 1;
        let _ = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
    }
    report
}
