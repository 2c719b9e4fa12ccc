//! The conversation: submits one message at a time and waits for the end of its turn, across lost
//! connections.

use std::collections::VecDeque;

use turnwire_client::{Error, SubmitKey, WatchItem};
use turnwire_event::TurnId;
use turnwire_event::code::TurnState;
use turnwire_event::message::MessageStatus;
use turnwire_wire::problem::Code;
use turnwire_wire::rest::turn::{TurnAccepted, TurnSubmit};

use crate::terminal::color::TextTone;
use crate::terminal::wording::error_text;

use super::command::{self, ChatCommand};
use super::event_printer::STOPPING;
use super::input::{Line, TypedLine};
use super::line_input::{LineInput, PromptLine};
use super::retry_delay::RetryDelay;
use super::session_view::{ChatResult, LeaveReason, SessionView};
use super::turn_ending::TurnEnding;

/// The number of past messages that are shown when a session is continued.
const PAST_MESSAGES_MAX: usize = 6;

/// The note when the chat ends before the server has responded to a submit.
const MAY_BE_RUNNING: &str = "the server did not answer; the turn may be running";

/// The source of the messages.
pub(crate) enum MessageSource {
    /// One message, from the command line.
    Once(String),
    /// The lines of standard input.
    Lines(LineInput),
}

/// The lines that a person types or pipes in, and the [`SessionView`] that they are sent to.
pub(crate) struct ChatConversation {
    pub(super) view: SessionView,
    /// The lines of standard input, once they are read.
    pub(super) lines: Option<LineInput>,
    /// Lines that were typed before a prompt.
    pub(super) typed_ahead: VecDeque<Line>,
}

impl ChatConversation {
    pub(crate) fn new(view: SessionView) -> Self {
        Self {
            view,
            lines: None,
            typed_ahead: VecDeque::new(),
        }
    }

    /// Submits all messages and returns the exit status; `is_typed` if a person types them.
    pub(crate) async fn run(&mut self, messages: MessageSource, is_typed: bool) -> ChatResult<u8> {
        let has_lines = matches!(messages, MessageSource::Lines(_));
        let is_typed = is_typed && has_lines;
        let shows_past = has_lines && self.view.printer.is_for_people();
        let once = match messages {
            MessageSource::Once(text) => Some(text),
            MessageSource::Lines(lines) => {
                self.lines = Some(lines);
                None
            }
        };
        self.open(shows_past).await?;
        if self.view.stopping.is_some() && !is_typed {
            return Err(LeaveReason::Interrupted);
        }
        if let Some(text) = once {
            return Ok(self.ask(&text).await?.exit_status());
        }
        if is_typed {
            self.ask_open_approvals().await?;
        }
        let mut status = 0;
        while let Some(line) = self.line().await? {
            let line = line.map_err(LeaveReason::Unreadable)?;
            if line.is_empty() {
                continue;
            }
            // A line of a pipe is always a message.
            let message = match is_typed.then(|| ChatCommand::parse(&line)).flatten() {
                None => line,
                Some(ChatCommand::Message(text)) => text,
                Some(ChatCommand::Quit) => break,
                Some(command) => {
                    self.obey(command)?;
                    continue;
                }
            };
            let ending = self.ask(&message).await?;
            if !is_typed {
                status = status.max(ending.exit_status());
                if self.view.stopping.is_some() {
                    return Err(LeaveReason::Interrupted);
                }
            }
        }
        Ok(status)
    }

    /// Waits for the session's snapshot, and for the end of a turn that runs.
    async fn open(&mut self, shows_past: bool) -> ChatResult<()> {
        let view = &mut self.view;
        let snapshot = loop {
            tokio::select! {
                item = view.watch.next() => match item?.ok_or(LeaveReason::Deleted)? {
                    WatchItem::Snapshot(snapshot) => break snapshot,
                    other => view.item(other)?,
                },
                _ = view.interrupts.recv() => return Err(LeaveReason::Interrupted),
            };
        };
        if shows_past {
            let messages = snapshot.messages.iter();
            let complete = messages.filter(|m| m.status != MessageStatus::InProgress);
            let complete: Vec<_> = complete.collect();
            for message in &complete[complete.len().saturating_sub(PAST_MESSAGES_MAX)..] {
                view.printer.screen.past_message(message)?;
            }
        }
        if snapshot.session["current_turn_id"].is_string() {
            view.say("a turn is running here; Ctrl-C stops it")?;
        }
        view.snapshot(&snapshot)?;
        if let Some(turn) = view.running {
            let ending = self.wait_for_end(turn).await?;
            self.resume(turn, ending).await?;
        }
        Ok(())
    }

    /// Waits for the end of a turn; at a terminal, lines that are typed meanwhile are commands or are
    /// kept for the prompt.
    async fn wait_for_end(&mut self, turn: TurnId) -> ChatResult<TurnEnding> {
        loop {
            let ended = tokio::select! {
                typed = next_meanwhile(&mut self.lines) => {
                    self.view.printer.screen.typed_meanwhile();
                    self.typed_meanwhile(typed.line)?;
                    continue;
                }
                step = self.view.step() => step?,
            };
            if let Some((ended, ending)) = ended
                && ended == turn
            {
                return Ok(ending);
            }
        }
    }

    fn typed_meanwhile(&mut self, line: Line) -> ChatResult<()> {
        let command = line.as_ref().ok().and_then(|line| ChatCommand::parse(line));
        match command {
            None | Some(ChatCommand::Message(_)) => self.typed_ahead.push_back(line),
            Some(ChatCommand::Quit) => return Err(LeaveReason::Quit),
            Some(command) => self.obey(command)?,
        }
        Ok(())
    }

    /// Does what a command asks, except for those that end the chat or send a message.
    fn obey(&mut self, command: ChatCommand) -> ChatResult<()> {
        let view = &mut self.view;
        match command {
            ChatCommand::Stop => match view.running {
                None => view.say("nothing is running")?,
                Some(turn) if view.stopping == Some(turn) => {}
                Some(turn) => {
                    view.stop(turn);
                    view.printer.show_stopping()?;
                }
            },
            ChatCommand::Details => {
                let codes = view.printer.codes.clone();
                let text = codes
                    .as_deref()
                    .unwrap_or("the last turn has no error codes");
                view.say(text)?;
            }
            ChatCommand::Unknown(name) => {
                view.say(&format!("there is no command {name}; /help lists them"))?;
            }
            ChatCommand::Help | ChatCommand::Quit | ChatCommand::Message(_) => {
                view.printer.screen.help(command::HELP)?;
            }
        }
        Ok(())
    }

    /// The next line; meanwhile the view handles other events.
    async fn line(&mut self) -> ChatResult<Option<Line>> {
        self.view.stopping = None;
        let has_editor = self.lines.as_ref().is_some_and(LineInput::is_terminal);
        loop {
            let printer = &mut self.view.printer;
            if self.view.running.is_none() && printer.is_for_people() {
                match has_editor {
                    true => printer.screen.make_room()?,
                    false => printer.screen.prompt(">")?,
                }
            }
            if let Some(line) = self.typed_ahead.pop_front() {
                printer.screen.line_typed();
                if let (true, Ok(line)) = (has_editor, &line) {
                    printer.screen.typed_ahead(line)?;
                }
                return Ok(Some(line));
            }
            let ended = tokio::select! {
                line = at_prompt(&mut self.lines) => match line {
                    PromptLine::Line(typed) => {
                        self.view.printer.screen.line_typed();
                        return Ok(Some(typed.line));
                    }
                    PromptLine::EndOfInput => return Ok(None),
                    PromptLine::Interrupted => self.view.interrupted()?,
                },
                step = self.view.step() => step?,
            };
            // A person may be typing a line here, which must not become an approval.
            if let Some((turn, TurnEnding::Paused)) = ended {
                self.print_approvals(turn)?;
            }
        }
    }

    /// Submits a message and waits for the [`TurnEnding`].
    async fn ask(&mut self, message: &str) -> ChatResult<TurnEnding> {
        let submit = TurnSubmit::text(message);
        let key = SubmitKey::random();
        let mut retry = RetryDelay::default();
        let mut has_notified = false;
        self.view.ended.clear();
        self.view.submitted = Some(message.to_owned());
        loop {
            let error = match self.submit(&submit, key.as_ref()).await? {
                Ok(accepted) => {
                    self.view.submitted = None;
                    let turn = accepted.turn_id;
                    let ending = self.follow(turn, has_ended(accepted.state)).await?;
                    return self.resume(turn, ending).await;
                }
                Err(error) => error,
            };
            if error.code() == Some(Code::TurnInFlight) {
                self.wait_for_other(&error).await?;
                if self.view.stopping.is_some() {
                    return Ok(TurnEnding::Cancelled);
                }
            } else if !is_repeatable(&error) || key.is_none() {
                let text = format!("not asked: {}", error_text(&error));
                self.view.printer.screen.note(TextTone::Bad, &text)?;
                return Ok(TurnEnding::Rejected);
            } else if !std::mem::replace(&mut has_notified, true) {
                let text = format!("not asked yet ({}); trying again", error_text(&error));
                self.view.say(&text)?;
            }
            let paused = self.view.pause(retry.next()).await;
            if matches!(paused, Err(LeaveReason::Interrupted)) && may_be_accepted(&error) {
                self.view.say(MAY_BE_RUNNING)?;
            }
            paused?;
        }
    }

    /// Sends a submit. After a Ctrl-C, the turn is stopped as soon as its id is known: if the
    /// response is lost, the submit is sent again to learn it.
    async fn submit(
        &mut self,
        submit: &TurnSubmit,
        key: Option<&SubmitKey>,
    ) -> ChatResult<Result<TurnAccepted, Error>> {
        let mut interrupted = false;
        let mut response = self.send(submit, key, &mut interrupted).await?;
        if !interrupted {
            return Ok(response);
        }
        if key.is_some() && response.as_ref().is_err_and(may_be_accepted) {
            response = self.send(submit, key, &mut interrupted).await?;
        }
        match &response {
            Ok(accepted) => self.view.stop(accepted.turn_id),
            Err(error) => {
                if may_be_accepted(error) {
                    self.view.say(MAY_BE_RUNNING)?;
                }
                return Err(LeaveReason::Interrupted);
            }
        }
        Ok(response)
    }

    /// Sends a submit and waits for the response, or for a second Ctrl-C.
    async fn send(
        &mut self,
        submit: &TurnSubmit,
        key: Option<&SubmitKey>,
        interrupted: &mut bool,
    ) -> ChatResult<Result<TurnAccepted, Error>> {
        let (client, session) = (self.view.client.clone(), self.view.session);
        let sent = async {
            match key {
                Some(key) => client.submit_once(session, submit, key).await,
                None => client.submit(session, submit).await,
            }
        };
        tokio::pin!(sent);
        loop {
            tokio::select! {
                response = &mut sent => return Ok(response),
                _ = self.view.interrupts.recv() => {
                    if std::mem::replace(interrupted, true) {
                        self.view.say(MAY_BE_RUNNING)?;
                        return Err(LeaveReason::Interrupted);
                    }
                    self.view.printer.screen.temporary_or_note(STOPPING)?;
                }
            }
        }
    }

    /// Waits for the end of a turn of this chat; `has_ended` if the server reports that it is over.
    pub(super) async fn follow(&mut self, turn: TurnId, has_ended: bool) -> ChatResult<TurnEnding> {
        let view = &mut self.view;
        view.own = Some(turn);
        if let Some((_, ending)) = view.ended.iter().find(|(ended, _)| *ended == turn) {
            return Ok(*ending);
        }
        view.running = Some(turn);
        if has_ended {
            view.look_up(turn);
        }
        self.wait_for_end(turn).await
    }

    /// Waits for the end of the running turn that a rejected submit names.
    async fn wait_for_other(&mut self, rejected: &Error) -> ChatResult<()> {
        let Some(turn) = running_turn(rejected) else {
            return Ok(());
        };
        // Its end may have arrived between the rejection and now.
        match self.view.client.turn(turn).await {
            Ok(info) if !has_ended(info.state) => {
                self.view.say(
                    "the session is busy with another turn; waiting for its end (Ctrl-C stops it)",
                )?;
                self.view.running = Some(turn);
                self.wait_for_end(turn).await.map(drop)
            }
            Err(error) if !error.is_transient() => Err(error.into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The next line; `None` at the end of the input.
pub(super) async fn next(lines: &mut Option<LineInput>) -> Option<TypedLine> {
    lines.as_mut()?.next().await
}

/// The next line at the prompt.
async fn at_prompt(lines: &mut Option<LineInput>) -> PromptLine {
    match lines {
        Some(lines) => lines.edited().await,
        None => PromptLine::EndOfInput,
    }
}

/// A line that is typed at a terminal while a turn runs; pending without a terminal, and after the end
/// of its input.
async fn next_meanwhile(lines: &mut Option<LineInput>) -> TypedLine {
    if let Some(lines) = lines.as_mut().filter(|lines| lines.is_terminal())
        && let Some(typed) = lines.next().await
    {
        return typed;
    }
    std::future::pending().await
}

fn has_ended(state: TurnState) -> bool {
    matches!(state, TurnState::Completed | TurnState::Cancelled)
}

/// True if the same submit may be accepted a little later.
fn is_repeatable(error: &Error) -> bool {
    may_be_accepted(error) || error.code() == Some(Code::Draining)
}

/// True if the submit may have been accepted although no response arrived.
fn may_be_accepted(error: &Error) -> bool {
    matches!(error, Error::Connection(_) | Error::Timeout(_))
}

/// The running turn that a rejection names.
fn running_turn(error: &Error) -> Option<TurnId> {
    match error {
        Error::Problem(problem) => problem.extra.get("turn_id")?.as_str()?.parse().ok(),
        _ => None,
    }
}
