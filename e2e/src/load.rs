//! Load: what the model says in campaigns, and drivers that keep one turn in flight in each of
//! their sessions, whatever happens to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use turnwire_event::{Position, SessionId, TurnId};
use turnwire_testkit::dice::Dice;
use turnwire_testkit::history::History;
use turnwire_testkit::rest::{Accepted, Rest};
use turnwire_testkit::script::{Script, Step, tool};

const WORDS: &str = "Rivers do not hurry, and still – 水は急がない – they arrive. \u{1f30a} ";

/// Turns of several kinds, none longer than a few seconds.
pub fn script() -> Script {
    Script::new()
        .on("^talk", [Step::slow(WORDS, 9, 25).repeat(6)])
        .on("^long", [Step::slow(WORDS, 7, 30).repeat(12)])
        .on(
            "^think",
            [
                Step::thinking(WORDS, "c2VhbA=="),
                Step::slow(WORDS, 5, 20).repeat(2),
            ],
        )
        .on(
            "^tools",
            [
                Step::slow(WORDS, 11, 10),
                Step::slow_tool(tool::ECHO, json!({"text": "a \"quoted\" word"}), 6, 5),
                Step::slow_tool(tool::SLEEP, json!({"ms": 80}), 2, 5),
                Step::slow(WORDS, 11, 10),
                Step::tool(tool::FAIL, json!({})),
                Step::slow(WORDS, 9, 15),
            ],
        )
        .on("^quick", [Step::text(WORDS)])
}

/// What to ask for, mostly what takes a while.
pub fn question(dice: &mut Dice) -> &'static str {
    const QUESTIONS: [&str; 6] = ["talk", "long", "think", "tools", "tools", "quick"];
    QUESTIONS[dice.index(QUESTIONS.len())]
}

/// Tells drivers when to end.
#[derive(Clone, Debug, Default)]
pub struct Halt(Arc<AtomicBool>);

impl Halt {
    /// No new turns.
    pub fn halt(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether to end.
    pub fn is_halted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a driver has done.
#[derive(Clone, Debug, Default)]
pub struct Driven {
    /// Turns that were accepted.
    pub accepted: Vec<TurnId>,
    /// Cancels that were answered.
    pub cancels: usize,
}

/// Keeps a turn in flight in a session until it is halted; some of them are cancelled. Says which
/// were accepted; when it is back, all of them have ended.
pub async fn drive(
    rest: Rest,
    session: SessionId,
    mut dice: Dice,
    halt: Halt,
    cancels: u64,
) -> Driven {
    let mut done = Driven::default();
    while !halt.is_halted() {
        let answer = rest.try_submit(session, question(&mut dice)).await;
        let accepted: Option<Accepted> = match answer {
            Ok(answer) if answer.status == 202 => serde_json::from_str(&answer.body).ok(),
            // Busy with a turn whose acceptance was lost, draining, or down: again in a moment.
            Ok(_) | Err(_) => None,
        };
        let Some(accepted) = accepted else {
            tokio::time::sleep(dice.millis(5, 40)).await;
            continue;
        };
        done.accepted.push(accepted.turn_id);
        if dice.chance(cancels) {
            tokio::time::sleep(dice.millis(0, 400)).await;
            let answer = rest.cancel(accepted.turn_id).await;
            done.cancels += usize::from(answer.is_ok_and(|a| a.status == 202));
        }
        ended(&rest, accepted.turn_id).await;
    }
    done
}

/// Waits until a turn has ended, also over a server that comes and goes; says where it ended.
pub async fn ended(rest: &Rest, turn: TurnId) -> Option<Position> {
    let begun = std::time::Instant::now();
    loop {
        let row = rest.turn(turn).await;
        if let Ok(row) = &row
            && matches!(row["state"].as_str(), Some("completed" | "cancelled"))
        {
            return row["terminal"]["id"]
                .as_str()
                .and_then(|id| id.parse().ok());
        }
        assert!(
            begun.elapsed() < Duration::from_secs(90),
            "turn {turn} does not end: {row:?}"
        );
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Waits until nothing runs in a session, whoever started it; says where its last turn ended.
pub async fn quiet(rest: &Rest, session: SessionId) -> Option<Position> {
    loop {
        let path = format!("/sessions/{session}/turns?limit=1");
        if let Ok(answer) = rest.get(&path).await {
            let turn = answer.json()["turns"][0]["turn_id"]
                .as_str()
                .map(str::parse);
            return ended(rest, turn?.ok()?).await;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Sessions for a campaign.
pub async fn sessions(rest: &Rest, count: usize) -> Vec<SessionId> {
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        sessions.push(rest.create().await.expect("a session"));
    }
    sessions
}

/// Reads the final log of every session and judges everything that happened.
pub async fn judge(rest: &Rest, sessions: &[SessionId]) -> History {
    let logs = rest.logs(sessions).await.expect("the server answers");
    let history = rest.journal().take(logs);
    history.assert_clean();
    history
}
