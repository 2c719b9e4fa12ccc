//! `turnwire rerun`: runs a case against a running server, turn by turn, and reports the
//! differences from the expected results.
//!
//! A turn that was cancelled is cancelled again, at the same text and tools.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use turnwire_client::{Client, SessionWatch, WatchItem, WatchStart};
use turnwire_event::{Body, Epoch, Event, Position, Seq, SessionId, TurnId};
use turnwire_wire::rest::content::MessageInput;
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::{TurnAccepted, TurnSubmit};

use crate::args::RerunArgs;
use crate::regression::difference::{CaseDifference, differences};
use crate::regression::test_case::{CaseInput, CaseTurn, ExpectedTurn, RegressionCase};
use crate::session_source::SessionSource;
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::output::print;
use crate::{connect, regression::observed, terminal::sanitize::sanitized_line};

/// The number of characters of a message that a report shows.
const MESSAGE_CHARS_MAX: usize = 60;
/// The number of characters of a difference that a report shows.
const DIFFERENCE_CHARS_MAX: usize = 400;
/// The time that a turn may take to stop after its time limit.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the case; the exit code is 1 if a turn is not as expected.
pub(crate) async fn run(args: &RerunArgs) -> Result<ExitCode> {
    let case = RegressionCase::read(&args.case)?;
    let client = connect::client(&args.client)?;
    let asking = || format!("asking {}", args.client.server);
    let created = client.create_session(&SessionCreate::default()).await;
    let session = created.with_context(asking)?.session_id;
    let start = WatchStart::After(Position::persisted(Epoch::FIRST, Seq(0)));
    let mut rerun = RerunSession {
        watch: client.watch(session, json!("preset:full"), start),
        source: SessionSource::Server(client.clone()),
        client,
        session,
        limit: Duration::from_secs(args.timeout),
    };
    let mut results = Vec::new();
    for turn in &case.turns {
        let found = rerun.run(turn).await.with_context(asking)?;
        results.push(found);
        if let (false, Some(found)) = (args.json, results.last()) {
            print(&as_text(results.len(), turn, found, ColorMode::of_stdout()));
        }
    }
    let all = results.len();
    let red = results.iter().filter(|found| !found.is_empty()).count();
    print(&match (args.json, red) {
        (true, _) => format!("{:#}\n", as_json(&case, session, &results)),
        (false, 0) => format!("{all} of {all} turns as expected ({session})\n"),
        (false, _) => format!("{red} of {all} turns not as expected ({session})\n"),
    });
    Ok(ExitCode::from(u8::from(red > 0)))
}

/// The session in which a [`RegressionCase`] runs.
struct RerunSession {
    client: Client,
    source: SessionSource,
    session: SessionId,
    watch: SessionWatch,
    limit: Duration,
}

impl RerunSession {
    /// Submits a [`CaseTurn`], waits for its end, and returns the [`CaseDifference`]s.
    async fn run(&mut self, turn: &CaseTurn) -> Result<Vec<CaseDifference>> {
        let accepted = self.client.submit(self.session, &submit(turn)).await?;
        let mut progress = TurnProgress::new(accepted.turn_id, &turn.expect);
        let waited = tokio::time::timeout(self.limit, self.follow(&mut progress)).await;
        let is_late = waited.is_err();
        if let Ok(followed) = waited {
            followed?;
        } else {
            // The turn may have ended just now, so an error of the cancel is ignored.
            let reason = Some("rerun: it takes too long");
            let _ = self.client.cancel(accepted.turn_id, reason).await;
            let stopped = tokio::time::timeout(STOP_TIMEOUT, self.follow(&mut progress)).await;
            stopped.context("the turn takes too long and does not stop")??;
        }
        let mut found = differences(&turn.expect, &self.observe(&accepted).await?);
        if is_late {
            let seconds = self.limit.as_secs();
            let late = CaseDifference {
                what: "time",
                words: format!("the turn took more than {seconds} s"),
                expected: json!(seconds),
                came: Value::Null,
            };
            found.insert(0, late);
        }
        Ok(found)
    }

    /// Waits for the end of the turn; cancels it if its case was cancelled.
    async fn follow(&mut self, progress: &mut TurnProgress) -> Result<()> {
        loop {
            let item = self.watch.next().await?;
            let WatchItem::Event(received) = item.context("the session was deleted")? else {
                continue;
            };
            let Some(event) = received.parse() else {
                continue;
            };
            match progress.take(&event) {
                NextStep::Wait => {}
                NextStep::Finish => return Ok(()),
                NextStep::Cancel => match self.client.cancel(progress.turn, Some("rerun")).await {
                    // A problem means that the turn has just ended, which its terminal reports.
                    Err(error) if error.code().is_none() => return Err(error.into()),
                    _ => {}
                },
            }
        }
    }

    /// The result of a turn that has ended.
    async fn observe(&self, accepted: &TurnAccepted) -> Result<ExpectedTurn> {
        let id = accepted.turn_id;
        let mut events = Vec::new();
        let mut since = Some(accepted.position);
        while since.is_some() {
            let page = self.source.events(self.session, since).await?;
            let read = page.events.iter();
            events.extend(read.filter_map(|(bytes, _)| Event::read(bytes).ok()));
            since = page.next;
        }
        let messages = self.source.messages(self.session, Some(id)).await?;
        let turns = observed::turns(&events, &messages);
        let turn = turns.into_iter().find(|turn| turn.id == id);
        let result = turn.and_then(|turn| turn.result);
        result.with_context(|| format!("the server does not report how turn {id} ended"))
    }
}

fn submit(turn: &CaseTurn) -> TurnSubmit {
    let block = |text: &String| json!({"type": "text", "text": text});
    TurnSubmit {
        message: match &turn.message {
            CaseInput::One(text) => MessageInput::Text(text.clone()),
            CaseInput::Many(texts) => MessageInput::Blocks(texts.iter().map(block).collect()),
        },
        locale: turn.locale.clone(),
        location: turn.location.clone(),
        origin: turn.origin,
        dm_type: turn.dm_type.clone(),
        ..TurnSubmit::text("")
    }
}

/// The progress of a running turn.
struct TurnProgress {
    turn: TurnId,
    /// The progress at which to cancel: bytes of text, started tools, ended tools. `None` if the
    /// turn is not to be cancelled or was cancelled already.
    cancel_at: Option<[usize; 3]>,
    reached: [usize; 3],
}

enum NextStep {
    Wait,
    Cancel,
    Finish,
}

impl TurnProgress {
    fn new(turn: TurnId, expect: &ExpectedTurn) -> Self {
        let is_cancelled = expect.status.as_deref() == Some("cancelled");
        let text = expect.text.as_ref().map_or(0, String::len);
        let tools = || expect.tools.iter().flatten();
        let started = tools().filter(|tool| tool.input.is_some()).count();
        let ended = tools().filter(|tool| tool.end != "cancelled").count();
        Self {
            turn,
            cancel_at: is_cancelled.then_some([text, started, ended]),
            reached: [0; 3],
        }
    }

    fn take(&mut self, event: &Event) -> NextStep {
        if event.turn_id != Some(self.turn) {
            return NextStep::Wait;
        }
        match &event.body {
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => return NextStep::Finish,
            Body::TextDelta(delta) => self.reached[0] += delta.text.len(),
            Body::ToolCalled(_) => self.reached[1] += 1,
            Body::ToolCompleted(_) | Body::ToolFailed(_) => self.reached[2] += 1,
            _ => {}
        }
        let is_due = |at: &mut [usize; 3]| self.reached.iter().zip(at).all(|(now, at)| now >= at);
        match self.cancel_at.take_if(is_due) {
            Some(_) => NextStep::Cancel,
            None => NextStep::Wait,
        }
    }
}

fn as_text(number: usize, turn: &CaseTurn, found: &[CaseDifference], color: ColorMode) -> String {
    let mark = match found {
        [] => color.tint(TextTone::Good, "✓"),
        _ => color.tint(TextTone::Bad, "✗"),
    };
    let message = sanitized_line(&turn.message.text(), MESSAGE_CHARS_MAX);
    let mut text = format!("{mark} turn {number}: {message}\n");
    for difference in found {
        let words = sanitized_line(&difference.words, DIFFERENCE_CHARS_MAX);
        text += &format!("    {}: {words}\n", difference.what);
    }
    text
}

fn as_json(case: &RegressionCase, session: SessionId, results: &[Vec<CaseDifference>]) -> Value {
    let turns = results.iter().zip(&case.turns).zip(1..);
    let turns: Vec<Value> = turns
        .map(|((found, turn), number)| {
            json!({"turn": number, "message": turn.message, "ok": found.is_empty(),
                   "differences": found})
        })
        .collect();
    json!({
        "case": case.name,
        "session_id": session,
        "ok": results.iter().all(Vec::is_empty),
        "turns": turns,
    })
}
