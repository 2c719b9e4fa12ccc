//! Load of the campaigns: the model's script, and drivers that keep one turn in flight per session,
//! whatever happens to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use turnwire_event::{Position, SessionId, TurnId};
use turnwire_testkit::api::{AcceptedSubmit, ApiClient};
use turnwire_testkit::history::History;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};

const WORDS: &str = "Rivers do not hurry, and still – 水は急がない – they arrive. \u{1f30a} ";

/// Turns of several kinds, none longer than a few seconds.
pub fn script() -> ModelScript {
    ModelScript::new()
        .on("^talk", [ScriptStep::slow(WORDS, 9, 25).repeat(6)])
        .on("^long", [ScriptStep::slow(WORDS, 7, 30).repeat(12)])
        .on(
            "^think",
            [
                ScriptStep::thinking(WORDS, "c2VhbA=="),
                ScriptStep::slow(WORDS, 5, 20).repeat(2),
            ],
        )
        .on(
            "^tools",
            [
                ScriptStep::slow(WORDS, 11, 10),
                ScriptStep::slow_tool(tool::ECHO, json!({"text": "a \"quoted\" word"}), 6, 5),
                ScriptStep::slow_tool(tool::SLEEP, json!({"ms": 80}), 2, 5),
                ScriptStep::slow(WORDS, 11, 10),
                ScriptStep::tool(tool::FAIL, json!({})),
                ScriptStep::slow(WORDS, 9, 15),
            ],
        )
        .on("^quick", [ScriptStep::text(WORDS)])
}

/// A random message; most of them start a long turn.
pub fn question(rng: &mut SeededRng) -> &'static str {
    const QUESTIONS: [&str; 6] = ["talk", "long", "think", "tools", "tools", "quick"];
    QUESTIONS[rng.index(QUESTIONS.len())]
}

/// A shared flag that stops the drivers.
#[derive(Clone, Debug, Default)]
pub struct HaltFlag(Arc<AtomicBool>);

impl HaltFlag {
    /// Stops the start of new turns.
    pub fn halt(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True after [`Self::halt`] was called.
    pub fn is_halted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a driver submitted and cancelled.
#[derive(Clone, Debug, Default)]
pub struct DriverReport {
    pub accepted: Vec<TurnId>,
    /// The number of answered cancels.
    pub cancels: usize,
}

/// Keeps a turn in flight in a session until `halt`; some are cancelled. Returns the accepted
/// turns after all of them have ended.
pub async fn drive(
    api: ApiClient,
    session: SessionId,
    mut rng: SeededRng,
    halt: HaltFlag,
    cancels: u64,
) -> DriverReport {
    let mut done = DriverReport::default();
    while !halt.is_halted() {
        let answer = api.try_submit(session, question(&mut rng)).await;
        let accepted: Option<AcceptedSubmit> = match answer {
            Ok(answer) if answer.status == 202 => serde_json::from_str(&answer.body).ok(),
            // Busy with a turn whose response was lost, draining, or down: retry.
            Ok(_) | Err(_) => None,
        };
        let Some(accepted) = accepted else {
            tokio::time::sleep(rng.millis(5, 40)).await;
            continue;
        };
        done.accepted.push(accepted.turn_id);
        if rng.chance(cancels) {
            tokio::time::sleep(rng.millis(0, 400)).await;
            let answer = api.cancel(accepted.turn_id).await;
            done.cancels += usize::from(answer.is_ok_and(|a| a.status == 202));
        }
        ended(&api, accepted.turn_id).await;
    }
    done
}

/// Waits until a turn has ended, also across restarts; returns the position of its terminal.
pub async fn ended(api: &ApiClient, turn: TurnId) -> Option<Position> {
    let started = std::time::Instant::now();
    loop {
        let row = api.turn(turn).await;
        if let Ok(row) = &row
            && matches!(row["state"].as_str(), Some("completed" | "cancelled"))
        {
            return row["terminal"]["id"]
                .as_str()
                .and_then(|id| id.parse().ok());
        }
        assert!(
            started.elapsed() < Duration::from_secs(90),
            "turn {turn} does not end: {row:?}"
        );
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Waits until no turn of a session runs or waits, of the newest hundred; returns the position of the
/// newest turn's terminal. A queued turn may end before an older one that runs.
pub async fn wait_until_idle(api: &ApiClient, session: SessionId) -> Option<Position> {
    let path = format!("/sessions/{session}/turns?limit=100");
    let turns = loop {
        if let Ok(answer) = api.get(&path).await
            && let Some(turns) = answer.json()["turns"].as_array()
        {
            break turns.clone();
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    };
    let mut newest = None;
    for turn in turns.iter().rev() {
        newest = ended(api, turn["turn_id"].as_str()?.parse().ok()?).await;
    }
    newest
}

/// Creates `count` sessions for a campaign.
pub async fn sessions(api: &ApiClient, count: usize) -> Vec<SessionId> {
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        sessions.push(api.create().await.expect("a session"));
    }
    sessions
}

/// Reads the final log of every session and runs the history checker.
pub async fn check_history(api: &ApiClient, sessions: &[SessionId]) -> History {
    let logs = api.logs(sessions).await.expect("the server answers");
    let history = api.journal().take(logs);
    history.assert_clean();
    history
}
