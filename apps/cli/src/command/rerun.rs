//! `turnwire rerun`: runs a case against a running server, turn by turn, and reports the
//! differences from the expected results.
//!
//! If the case expects a turn to be cancelled, the command cancels the new turn as soon as it has
//! produced as much text and has started and ended as many tools as the case expects.

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
use crate::regression::difference::{CaseDifference, compare_results};
use crate::regression::test_case::{CaseInput, CaseTurn, RegressionCase, TurnResult};
use crate::session_source::SessionSource;
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::output::print;
use crate::{connect, regression::observed, terminal::sanitize::sanitized_line};

/// The most characters of a user message in the report.
const MESSAGE_CHARS_MAX: usize = 60;
/// The most characters of a difference in the report.
const DIFFERENCE_CHARS_MAX: usize = 400;
/// The time that a turn may take to end after it was cancelled for exceeding the time limit.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the case; the exit code is 1 if a turn is not as expected.
pub(crate) async fn run(args: &RerunArgs) -> Result<ExitCode> {
    let case = RegressionCase::read(&args.case)?;
    let client = connect::client(&args.client)?;
    let error_context = || format!("asking {}", args.client.server);
    let created = client.create_session(&SessionCreate::default()).await;
    let session = created.with_context(error_context)?.session_id;
    let start = WatchStart::After(Position::persisted(Epoch::FIRST, Seq(0)));
    let mut rerun = RerunSession {
        watch: client.watch(session, json!("preset:full"), start),
        source: SessionSource::Server(client.clone()),
        client,
        session,
        turn_timeout: Duration::from_secs(args.timeout),
    };
    let mut differences_by_turn = Vec::new();
    for turn in &case.turns {
        let differences = rerun.run(turn).await.with_context(error_context)?;
        if !args.json {
            let number = differences_by_turn.len() + 1;
            let color = ColorMode::of_stdout();
            print(&turn_report(number, turn, &differences, color));
        }
        differences_by_turn.push(differences);
    }
    let turns = differences_by_turn.len();
    let differing = differences_by_turn.iter().filter(|list| !list.is_empty());
    let differing = differing.count();
    print(&match (args.json, differing) {
        (true, _) => format!("{:#}\n", json_report(&case, session, &differences_by_turn)),
        (false, 0) => format!("{turns} of {turns} turns as expected ({session})\n"),
        (false, _) => format!("{differing} of {turns} turns not as expected ({session})\n"),
    });
    Ok(ExitCode::from(u8::from(differing > 0)))
}

/// The new session in which a [`RegressionCase`] runs, and the connections to it.
struct RerunSession {
    client: Client,
    source: SessionSource,
    session: SessionId,
    watch: SessionWatch,
    turn_timeout: Duration,
}

impl RerunSession {
    /// Submits a [`CaseTurn`], waits for its end, and returns the [`CaseDifference`]s.
    async fn run(&mut self, turn: &CaseTurn) -> Result<Vec<CaseDifference>> {
        let request = submit_request(turn);
        let accepted = self.client.submit(self.session, &request).await?;
        let mut cancel_trigger = CancelTrigger::new(accepted.turn_id, &turn.expect);
        let ended =
            tokio::time::timeout(self.turn_timeout, self.wait_for_end(&mut cancel_trigger)).await;
        let is_timed_out = ended.is_err();
        if let Ok(result) = ended {
            result?;
        } else {
            // The turn may have ended just now, so an error of the cancel request is ignored.
            let reason = Some("rerun: it takes too long");
            let _ = self.client.cancel(accepted.turn_id, reason).await;
            let ended =
                tokio::time::timeout(STOP_TIMEOUT, self.wait_for_end(&mut cancel_trigger)).await;
            ended.context("the turn exceeded the time limit and did not stop")??;
        }
        let observed = self.turn_result(&accepted).await?;
        let mut differences = compare_results(&turn.expect, &observed);
        if is_timed_out {
            let seconds = self.turn_timeout.as_secs();
            let timeout = CaseDifference {
                field: "time",
                description: format!("the turn took more than {seconds} s"),
                expected: json!(seconds),
                observed: Value::Null,
            };
            differences.insert(0, timeout);
        }
        Ok(differences)
    }

    /// Waits for the end of the turn, and cancels the turn when [`CancelTrigger`] says so.
    async fn wait_for_end(&mut self, cancel_trigger: &mut CancelTrigger) -> Result<()> {
        loop {
            let item = self.watch.next().await?;
            let WatchItem::Event(received) = item.context("the session was deleted")? else {
                continue;
            };
            let Some(event) = received.parse() else {
                continue;
            };
            match cancel_trigger.apply(&event) {
                NextStep::Wait => {}
                NextStep::Return => return Ok(()),
                NextStep::Cancel => {
                    match self.client.cancel(cancel_trigger.turn, Some("rerun")).await {
                        // A problem code means that the turn has just ended; its terminal follows.
                        Err(error) if error.code().is_none() => return Err(error.into()),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Reads the events and messages of an ended turn and returns its result.
    async fn turn_result(&self, accepted: &TurnAccepted) -> Result<TurnResult> {
        let id = accepted.turn_id;
        let mut events = Vec::new();
        let mut since = Some(accepted.position);
        while since.is_some() {
            let page = self.source.events(self.session, since).await?;
            let stored = page.events.iter();
            events.extend(stored.filter_map(|(bytes, _)| Event::read(bytes).ok()));
            since = page.next;
        }
        let messages = self.source.messages(self.session, Some(id)).await?;
        let turns = observed::turns(&events, &messages);
        let turn = turns.into_iter().find(|turn| turn.id == id);
        let result = turn.and_then(|turn| turn.result);
        result.with_context(|| format!("the server does not report how turn {id} ended"))
    }
}

/// The request that submits a [`CaseTurn`].
fn submit_request(turn: &CaseTurn) -> TurnSubmit {
    TurnSubmit {
        message: match &turn.message {
            CaseInput::Text(text) => MessageInput::Text(text.clone()),
            CaseInput::TextBlocks(texts) => MessageInput::Blocks(texts.clone()),
        },
        locale: turn.locale.clone(),
        location: turn.location.clone(),
        origin: turn.origin,
        dm_type: turn.dm_type.clone(),
        ..TurnSubmit::text("")
    }
}

/// Decides when to cancel a running turn: once its output reaches the counts that the case expects.
struct CancelTrigger {
    turn: TurnId,
    /// `None` if the case does not expect a cancelled turn, or if the turn was cancelled already.
    cancel_at: Option<OutputCounts>,
    reached: OutputCounts,
}

#[derive(Default)]
struct OutputCounts {
    text_bytes: usize,
    started_tools: usize,
    ended_tools: usize,
}

/// What [`RerunSession::wait_for_end`] does after an event.
enum NextStep {
    Wait,
    Cancel,
    /// The turn has ended.
    Return,
}

impl CancelTrigger {
    fn new(turn: TurnId, expected: &TurnResult) -> Self {
        let is_cancelled = expected.status.as_deref() == Some("cancelled");
        let tools = || expected.tools.iter().flatten();
        let started_tools = tools().filter(|tool| tool.input.is_some());
        let ended_tools = tools().filter(|tool| tool.end != "cancelled");
        let expected_counts = OutputCounts {
            text_bytes: expected.text.as_ref().map_or(0, String::len),
            started_tools: started_tools.count(),
            ended_tools: ended_tools.count(),
        };
        Self {
            turn,
            cancel_at: is_cancelled.then_some(expected_counts),
            reached: OutputCounts::default(),
        }
    }

    /// Counts an event and returns the step that follows.
    fn apply(&mut self, event: &Event) -> NextStep {
        if event.turn_id != Some(self.turn) {
            return NextStep::Wait;
        }
        match &event.body {
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => return NextStep::Return,
            Body::TextDelta(delta) => self.reached.text_bytes += delta.text.len(),
            Body::ToolCalled(_) => self.reached.started_tools += 1,
            Body::ToolCompleted(_) | Body::ToolFailed(_) => self.reached.ended_tools += 1,
            _ => {}
        }
        let reached = &self.reached;
        match self.cancel_at.take_if(|target| reached.is_at_least(target)) {
            Some(_) => NextStep::Cancel,
            None => NextStep::Wait,
        }
    }
}

impl OutputCounts {
    fn is_at_least(&self, target: &Self) -> bool {
        self.text_bytes >= target.text_bytes
            && self.started_tools >= target.started_tools
            && self.ended_tools >= target.ended_tools
    }
}

/// The lines about one turn.
fn turn_report(
    number: usize,
    turn: &CaseTurn,
    differences: &[CaseDifference],
    color: ColorMode,
) -> String {
    let mark = match differences {
        [] => color.tint(TextTone::Good, "✓"),
        _ => color.tint(TextTone::Bad, "✗"),
    };
    let message = sanitized_line(&turn.message.text(), MESSAGE_CHARS_MAX);
    let mut text = format!("{mark} turn {number}: {message}\n");
    for difference in differences {
        let description = sanitized_line(&difference.description, DIFFERENCE_CHARS_MAX);
        text += &format!("    {}: {description}\n", difference.field);
    }
    text
}

/// The report about all turns of `case`.
fn json_report(
    case: &RegressionCase,
    session: SessionId,
    differences_by_turn: &[Vec<CaseDifference>],
) -> Value {
    let turns = differences_by_turn.iter().zip(&case.turns).zip(1..);
    let turns: Vec<Value> = turns
        .map(|((differences, turn), number)| {
            json!({"turn": number, "message": turn.message, "ok": differences.is_empty(),
                   "differences": differences})
        })
        .collect();
    json!({
        "case": case.name,
        "session_id": session,
        "ok": differences_by_turn.iter().all(Vec::is_empty),
        "turns": turns,
    })
}
