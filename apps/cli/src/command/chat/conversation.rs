//! The conversation: one question at a time, each to its turn's end, whatever happens to the
//! connection meanwhile.

use std::collections::VecDeque;
use std::io;

use tokio::sync::mpsc::Receiver;
use turnwire_client::{Error, SubmitKey, WatchItem};
use turnwire_event::TurnId;
use turnwire_event::code::TurnState;
use turnwire_event::message::MessageStatus;
use turnwire_wire::problem::Code;
use turnwire_wire::rest::turn::{TurnAccepted, TurnSubmit};

use crate::terminal::color::TextTone;

use super::input::Line;
use super::session_view::{LeaveReason, SessionView};
use super::turn_ending::TurnEnding;
use super::{AGAIN, AGAIN_MAX};

/// How many messages are shown to someone who comes back.
const OLD_MAX: usize = 6;

/// What is said by one who leaves without an answer to the question.
const MAY_BE_RUNNING: &str = "the server did not answer; the turn may be running";

/// Where the questions come from.
pub(crate) enum QuestionSource {
    /// One, from the command line.
    Once(String),
    /// Lines, as they are typed or piped in.
    Lines(Receiver<Line>),
}

pub(crate) struct ChatConversation {
    pub(super) scene: SessionView,
    /// What is typed or piped in, once it is read.
    pub(super) lines: Option<Receiver<Line>>,
    /// What was typed before it was asked for.
    pub(super) ahead: VecDeque<Line>,
}

impl ChatConversation {
    /// A conversation in a session.
    pub(crate) fn new(scene: SessionView) -> Self {
        Self {
            scene,
            lines: None,
            ahead: VecDeque::new(),
        }
    }

    /// Says something of our own.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        self.scene.say(text)
    }

    /// Asks all questions; gives the exit status they add up to.
    pub(crate) async fn run(
        &mut self,
        questions: QuestionSource,
        typed: bool,
    ) -> Result<u8, LeaveReason> {
        let lines = matches!(questions, QuestionSource::Lines(_));
        let typed = typed && lines;
        self.meet(lines && self.scene.teller.is_for_people())
            .await?;
        if self.scene.stopping.is_some() && !typed {
            return Err(LeaveReason::Interrupted);
        }
        match questions {
            QuestionSource::Once(words) => return Ok(self.ask(&words).await?.status()),
            QuestionSource::Lines(lines) => self.lines = Some(lines),
        }
        if typed {
            self.left_open().await?;
        }
        let mut status = 0;
        while let Some(line) = self.line().await? {
            let line = line.map_err(LeaveReason::Unreadable)?;
            if line.is_empty() {
                continue;
            }
            let outcome = self.ask(&line).await?;
            if !typed {
                status = status.max(outcome.status());
                if self.scene.stopping.is_some() {
                    return Err(LeaveReason::Interrupted);
                }
            }
        }
        Ok(status)
    }

    /// Waits for the state of the session, and for the end of a turn that runs there.
    async fn meet(&mut self, shows_old: bool) -> Result<(), LeaveReason> {
        let snapshot = loop {
            tokio::select! {
                item = self.scene.watch.next() => match item?.ok_or(LeaveReason::Deleted)? {
                    WatchItem::Snapshot(snapshot) => break snapshot,
                    other => self.scene.item(other)?,
                },
                _ = self.scene.interrupts.recv() => return Err(LeaveReason::Interrupted),
            };
        };
        if shows_old {
            let is_complete = |m: &&_| is_whole(m);
            let old: Vec<_> = snapshot.messages.iter().filter(is_complete).collect();
            for message in &old[old.len().saturating_sub(OLD_MAX)..] {
                self.scene.teller.screen.old(message)?;
            }
        }
        if snapshot.session["current_turn_id"].is_string() {
            self.scene.say("a turn is running here; Ctrl-C stops it")?;
        }
        self.scene.snapshot(&snapshot)?;
        match self.scene.running {
            None => Ok(()),
            Some(turn) => {
                let outcome = self.scene.until(turn).await?;
                self.goes_on(turn, outcome).await.map(drop)
            }
        }
    }

    /// The next line; meanwhile others may speak.
    async fn line(&mut self) -> Result<Option<Line>, LeaveReason> {
        self.scene.stopping = None;
        loop {
            if self.scene.running.is_none() && self.scene.teller.is_for_people() {
                self.scene.teller.screen.prompt()?;
            }
            if let Some(line) = self.ahead.pop_front() {
                self.scene.teller.screen.typed();
                return Ok(Some(line));
            }
            let ended = tokio::select! {
                line = next(&mut self.lines) => {
                    if line.is_some() {
                        self.scene.teller.screen.typed();
                    }
                    return Ok(line);
                }
                step = self.scene.step() => step?,
            };
            // Whoever types here may be in the midst of a line, which must not become an answer.
            if let Some((turn, TurnEnding::Paused)) = ended {
                self.tell_questions(turn)?;
            }
        }
    }

    /// Asks a question and tells its turn to the end.
    async fn ask(&mut self, words: &str) -> Result<TurnEnding, LeaveReason> {
        let submit = TurnSubmit::text(words);
        let key = SubmitKey::random();
        let mut again = AGAIN;
        let mut has_notified = false;
        self.scene.ended.clear();
        self.scene.asking = Some(words.to_owned());
        loop {
            let error = match self.submit(&submit, key.as_ref()).await? {
                Ok(accepted) => {
                    self.scene.asking = None;
                    let outcome = self.follow(&accepted).await?;
                    return self.goes_on(accepted.turn_id, outcome).await;
                }
                Err(error) => error,
            };
            if error.code() == Some(Code::TurnInFlight) {
                self.wait_for(&error).await?;
                if self.scene.stopping.is_some() {
                    return Ok(TurnEnding::Cancelled);
                }
            } else if !is_worth_repeating(&error) || key.is_none() {
                self.scene
                    .teller
                    .screen
                    .note(TextTone::Bad, &format!("not asked: {error}"))?;
                return Ok(TurnEnding::Refused);
            } else if !has_notified {
                has_notified = true;
                self.scene
                    .say(&format!("not asked yet ({error}); trying again"))?;
            }
            let paused = self.scene.pause(again).await;
            if matches!(paused, Err(LeaveReason::Interrupted)) && is_in_doubt(&error) {
                self.scene.say(MAY_BE_RUNNING)?;
            }
            paused?;
            again = (again * 2).min(AGAIN_MAX);
        }
    }

    /// Sends a question. A Ctrl-C meanwhile stops the turn as soon as it is known: if the answer
    /// is lost, the question is sent once more to learn which turn it is.
    async fn submit(
        &mut self,
        submit: &TurnSubmit,
        key: Option<&SubmitKey>,
    ) -> Result<Result<TurnAccepted, Error>, LeaveReason> {
        let mut interrupted = false;
        let mut answer = self.send(submit, key, &mut interrupted).await?;
        if !interrupted {
            return Ok(answer);
        }
        if key.is_some() && answer.as_ref().is_err_and(is_in_doubt) {
            answer = self.send(submit, key, &mut interrupted).await?;
        }
        match answer {
            Ok(accepted) => {
                self.scene.stop(accepted.turn_id);
                Ok(Ok(accepted))
            }
            Err(error) => {
                if is_in_doubt(&error) {
                    self.scene.say(MAY_BE_RUNNING)?;
                }
                Err(LeaveReason::Interrupted)
            }
        }
    }

    /// Sends a question, until it is answered or Ctrl-C comes a second time.
    async fn send(
        &mut self,
        submit: &TurnSubmit,
        key: Option<&SubmitKey>,
        interrupted: &mut bool,
    ) -> Result<Result<TurnAccepted, Error>, LeaveReason> {
        let (client, session) = (self.scene.client.clone(), self.scene.session);
        let sent = async {
            match key {
                Some(key) => client.submit_once(session, submit, key).await,
                None => client.submit(session, submit).await,
            }
        };
        tokio::pin!(sent);
        loop {
            tokio::select! {
                answer = &mut sent => return Ok(answer),
                _ = self.scene.interrupts.recv() => {
                    if std::mem::replace(interrupted, true) {
                        self.scene.say(MAY_BE_RUNNING)?;
                        return Err(LeaveReason::Interrupted);
                    }
                    self.scene.teller.screen.passing_or_note("stopping…")?;
                }
            }
        }
    }

    /// Tells a turn that was taken to its end, which may have been seen already.
    async fn follow(&mut self, accepted: &TurnAccepted) -> Result<TurnEnding, LeaveReason> {
        self.until_over(accepted.turn_id, is_over(accepted.state))
            .await
    }

    /// Tells a turn of ours to its end; `over` if it has ended already.
    pub(super) async fn until_over(
        &mut self,
        turn: TurnId,
        over: bool,
    ) -> Result<TurnEnding, LeaveReason> {
        self.scene.ours = Some(turn);
        match self.scene.ended.iter().find(|(ended, _)| *ended == turn) {
            Some(&(_, outcome)) => Ok(outcome),
            None => {
                self.scene.running = Some(turn);
                if over {
                    self.scene.look_up(turn);
                }
                self.scene.until(turn).await
            }
        }
    }

    /// Waits for the turn that a refused question has named.
    async fn wait_for(&mut self, refused: &Error) -> Result<(), LeaveReason> {
        let Some(turn) = named_turn(refused) else {
            return Ok(());
        };
        // Asked anew: its end may have been told between the refusal and now.
        match self.scene.client.turn(turn).await {
            Ok(at) if !is_over(at.state) => {
                self.scene.say(
                    "the session is busy with another turn; waiting for its end (Ctrl-C stops it)",
                )?;
                self.scene.running = Some(turn);
                self.scene.until(turn).await.map(drop)
            }
            Ok(_) => Ok(()),
            Err(error) if error.is_transient() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The next line; none if there are no more.
pub(super) async fn next(lines: &mut Option<Receiver<Line>>) -> Option<Line> {
    match lines {
        Some(lines) => lines.recv().await,
        None => None,
    }
}

fn is_over(state: TurnState) -> bool {
    matches!(state, TurnState::Completed | TurnState::Cancelled)
}

fn is_whole(message: &turnwire_event::Message) -> bool {
    message.status != MessageStatus::InProgress
}

/// Whether the same question may be taken a little later.
fn is_worth_repeating(error: &Error) -> bool {
    is_in_doubt(error) || error.code() == Some(Code::Draining)
}

/// Whether the question may have been taken although no answer came.
fn is_in_doubt(error: &Error) -> bool {
    matches!(error, Error::Connection(_) | Error::Timeout(_))
}

/// The turn that a refusal names.
fn named_turn(error: &Error) -> Option<TurnId> {
    match error {
        Error::Problem(problem) => problem.extra.get("turn_id")?.as_str()?.parse().ok(),
        _ => None,
    }
}
