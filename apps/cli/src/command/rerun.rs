//! `turnwire rerun`: a case played against a running server, turn by turn, and what came of it
//! beside what was expected.
//!
//! A turn that was cancelled is cancelled again, once everything is there that was there before.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use turnwire_client::{Client, EventPageQuery, SessionWatch, WatchItem, WatchStart};
use turnwire_event::{Body, Event, Message, MessageId, Position, SessionId, TurnId};
use turnwire_wire::rest::content::MessageInput;
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::{TurnAccepted, TurnSubmit};

use crate::args::RerunArgs;
use crate::regression::difference::{CaseDifference, differences};
use crate::regression::test_case::{CaseInput, CaseTurn, ExpectedTurn, RegressionCase};
use crate::terminal::color::{ColorMode, TextTone};
use crate::{connect, regression::observed, terminal::sanitize};

/// Events and messages that are read at once.
const PAGE: usize = 200;
/// Characters of what a person said that a report shows.
const SHOWN: usize = 60;
/// How long a turn that takes too long may take to stop.
const STOPPING: Duration = Duration::from_secs(30);

/// Plays the case; the exit code says whether all was as expected.
pub(crate) async fn run(args: &RerunArgs) -> Result<ExitCode> {
    let case = RegressionCase::read(&args.case)?;
    let client = connect::client(&args.speaker)?;
    let asking = || format!("asking {}", args.speaker.server);
    let created = client
        .create_session(&SessionCreate::default())
        .await
        .with_context(asking)?;
    let session = created.session_id;
    let start = WatchStart::After(Position::persisted(
        turnwire_event::Epoch::FIRST,
        turnwire_event::Seq(0),
    ));
    let mut stage = RerunSession {
        watch: client.watch(session, json!("preset:full"), start),
        client,
        session,
        limit: Duration::from_secs(args.timeout),
    };
    let mut results = Vec::new();
    for turn in &case.turns {
        let differences = stage.play(turn).await.with_context(asking)?;
        if !args.json {
            let text = as_text(
                results.len() + 1,
                turn,
                &differences,
                ColorMode::of_stdout(),
            );
            // Whoever reads may have seen enough; the exit code still tells.
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
        results.push(differences);
    }
    let red = results.iter().filter(|found| !found.is_empty()).count();
    let end = match args.json {
        true => format!("{:#}\n", as_json(&case, session, &results)),
        false => verdict(red, results.len(), session),
    };
    let _ = std::io::stdout().write_all(end.as_bytes());
    Ok(ExitCode::from(u8::from(red > 0)))
}

/// A session in which a case is played.
struct RerunSession {
    client: Client,
    session: SessionId,
    watch: SessionWatch,
    limit: Duration,
}

impl RerunSession {
    /// Asks one turn and waits for its end; gives what is not as expected.
    async fn play(&mut self, turn: &CaseTurn) -> Result<Vec<CaseDifference>> {
        let accepted = self.client.submit(self.session, &submit(turn)).await?;
        let id = accepted.turn_id;
        let mut follow = EventFollower::new(id, &turn.expect);
        let waited = tokio::time::timeout(self.limit, self.follow(&mut follow)).await;
        let late = match waited {
            Ok(followed) => followed.map(|()| None)?,
            Err(_) => {
                // It may have ended in this very moment.
                let _ = self
                    .client
                    .cancel(id, Some("rerun: it takes too long"))
                    .await;
                let stopped = tokio::time::timeout(STOPPING, self.follow(&mut follow)).await;
                stopped.context("the turn takes too long and does not stop")??;
                Some(format!(
                    "the turn took more than {} s",
                    self.limit.as_secs()
                ))
            }
        };
        let observed = self.came(&accepted).await?;
        let mut differences = differences(&turn.expect, &observed);
        if let Some(words) = late {
            let time = CaseDifference {
                what: "time",
                words,
                expected: json!(self.limit.as_secs()),
                came: Value::Null,
            };
            differences.insert(0, time);
        }
        Ok(differences)
    }

    /// Waits for the end of the turn; cancels it where it was cancelled before.
    async fn follow(&mut self, follow: &mut EventFollower) -> Result<()> {
        loop {
            let item = self.watch.next().await?;
            let item = item.context("the session was deleted")?;
            let WatchItem::Event(received) = item else {
                continue;
            };
            let Some(event) = received.parse() else {
                continue;
            };
            match follow.take(&event) {
                FollowStep::Ended => return Ok(()),
                FollowStep::Cancel => {
                    let cancelled = self.client.cancel(follow.turn, Some("rerun")).await;
                    // A turn that has ended meanwhile says so itself.
                    if let Err(error) = cancelled
                        && error.code().is_none()
                    {
                        return Err(error.into());
                    }
                }
                FollowStep::On => {}
            }
        }
    }

    /// What came of a turn that has ended.
    async fn came(&self, accepted: &TurnAccepted) -> Result<ExpectedTurn> {
        let events = self.events(accepted.position).await?;
        let messages = self.messages(accepted.turn_id).await?;
        let seen = observed::turns(&events, &messages);
        let this = seen.into_iter().find(|seen| seen.id == accepted.turn_id);
        match this.and_then(|seen| seen.came) {
            Some(came) => Ok(came),
            None => bail!(
                "the server does not tell how turn {} ended",
                accepted.turn_id
            ),
        }
    }

    async fn events(&self, mut since: Position) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            let query = EventPageQuery {
                since: Some(since),
                limit: Some(PAGE),
                ..EventPageQuery::default()
            };
            let page = self.client.records(self.session).events(query).await?;
            let read = page.events.iter();
            events.extend(read.filter_map(|raw| Event::read(raw.get().as_bytes()).ok()));
            match page.next {
                Some(next) => since = next,
                None => return Ok(events),
            }
        }
    }

    /// The messages of a turn, oldest first; older pages are read only as far as it goes back.
    async fn messages(&self, turn: TurnId) -> Result<Vec<Message>> {
        let mut pages: Vec<Vec<Message>> = Vec::new();
        let mut before: Option<MessageId> = None;
        loop {
            let page = self
                .client
                .records(self.session)
                .messages(before, Some(PAGE))
                .await?;
            let older = page
                .messages
                .first()
                .is_some_and(|first| first.turn_id == turn);
            let own = page.messages.into_iter();
            pages.push(own.filter(|message| message.turn_id == turn).collect());
            before = page.next;
            if before.is_none() || !older {
                pages.reverse();
                return Ok(pages.concat());
            }
        }
    }
}

fn submit(turn: &CaseTurn) -> TurnSubmit {
    let message = match &turn.message {
        CaseInput::One(text) => MessageInput::Text(text.clone()),
        CaseInput::Many(texts) => {
            let blocks = texts
                .iter()
                .map(|text| json!({"type": "text", "text": text}));
            MessageInput::Blocks(blocks.collect())
        }
    };
    TurnSubmit {
        message,
        locale: turn.locale.clone(),
        location: turn.location.clone(),
        origin: turn.origin,
        dm_type: turn.dm_type.clone(),
        ..TurnSubmit::text("")
    }
}

/// A turn on its way.
struct EventFollower {
    turn: TurnId,
    /// What must be there before it is cancelled: bytes of text, tools that have begun, and tools
    /// that have ended. None if it is not, or was.
    cancel_at: Option<[usize; 3]>,
    there: [usize; 3],
}

enum FollowStep {
    On,
    Cancel,
    Ended,
}

impl EventFollower {
    fn new(turn: TurnId, expect: &ExpectedTurn) -> Self {
        let cancelled = expect.status.as_deref() == Some("cancelled");
        let text = expect.text.as_ref().map_or(0, String::len);
        let tools: Vec<_> = expect.tools.iter().flatten().collect();
        let called = tools.iter().filter(|tool| tool.input.is_some()).count();
        let stopped = |end: &str| end == "cancelled";
        let ended = tools.iter().filter(|tool| !stopped(&tool.end)).count();
        Self {
            turn,
            cancel_at: cancelled.then_some([text, called, ended]),
            there: [0; 3],
        }
    }

    fn take(&mut self, event: &Event) -> FollowStep {
        if event.turn_id != Some(self.turn) {
            return FollowStep::On;
        }
        match &event.body {
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => return FollowStep::Ended,
            Body::TextDelta(delta) => self.there[0] += delta.text.len(),
            Body::ToolCalled(_) => self.there[1] += 1,
            Body::ToolCompleted(_) | Body::ToolFailed(_) => self.there[2] += 1,
            _ => {}
        }
        let all = |at: &[usize; 3]| self.there.iter().zip(at).all(|(there, at)| there >= at);
        match self.cancel_at.take_if(|at| all(at)) {
            Some(_) => FollowStep::Cancel,
            None => FollowStep::On,
        }
    }
}

fn as_text(number: usize, turn: &CaseTurn, found: &[CaseDifference], paint: ColorMode) -> String {
    let (mark, tone) = match found {
        [] => ("✓", TextTone::Good),
        _ => ("✗", TextTone::Bad),
    };
    let words = sanitize::line(&turn.message.text(), SHOWN);
    let mut text = format!("{} turn {number}: {words}\n", paint.tint(tone, mark));
    for difference in found {
        let words = sanitize::line(&difference.words, 400);
        text.push_str(&format!("    {}: {words}\n", difference.what));
    }
    text
}

fn verdict(red: usize, all: usize, session: SessionId) -> String {
    match red {
        0 => format!("{all} of {all} turns as expected ({session})\n"),
        _ => format!("{red} of {all} turns not as expected ({session})\n"),
    }
}

fn as_json(case: &RegressionCase, session: SessionId, results: &[Vec<CaseDifference>]) -> Value {
    let turns: Vec<Value> = results
        .iter()
        .zip(&case.turns)
        .enumerate()
        .map(|(at, (found, turn))| {
            let differences: Vec<Value> = found
                .iter()
                .map(|one| {
                    json!({"what": one.what, "words": one.words, "expected": one.expected,
                           "came": one.came})
                })
                .collect();
            json!({"turn": at + 1, "message": turn.message, "ok": differences.is_empty(),
                   "differences": differences})
        })
        .collect();
    json!({
        "case": case.name,
        "session_id": session,
        "ok": results.iter().all(Vec::is_empty),
        "turns": turns,
    })
}
