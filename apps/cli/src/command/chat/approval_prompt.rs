//! The approval requests of a paused turn: asked one after the other where a person types, then the
//! turn that continues is followed.
//!
//! ```text
//!   paused ─▶ the first open request ─▶ its whole input ─▶ y or n ─▶ a comment ─▶ sent ──┐
//!     ▲  └── none left: the turn that continues          ▲  │          answered elsewhere ─┤
//!     │                                                  └──┘ anything else               │
//!     └──────────────────────────────────────────◀────────────────────────────────────────┘
//! ```
//! A line answers a request only if it was typed after the whole input was shown; the answer carries
//! the digest of what was shown.

use std::time::{Duration, Instant};

use turnwire_client::{Client, Error};
use turnwire_event::TurnId;
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_event::content::sha256_hex;
use turnwire_wire::rest::approval::{ApprovalAnswer, ApprovalItem};

use crate::terminal::approval_text::{NOT_A_DECISION, approval_text, parse_decision, tool_name};
use crate::terminal::color::TextTone;
use crate::terminal::keyboard;
use crate::terminal::wording::error_text;

use super::conversation::{ChatConversation, next};
use super::line_input::LineInput;
use super::retry_delay::RetryDelay;
use super::session_view::{ChatResult, LeaveReason};
use super::turn_ending::TurnEnding;

/// The pause in typing before a request is asked: lines that arrive sooner were typed before it and
/// are kept for the conversation.
const QUIET: Duration = Duration::from_millis(50);

/// The result of a prompt for an [`ApprovalItem`].
enum PromptAnswer {
    /// A decision, with a comment for the model.
    Decided(Decision, Option<String>),
    /// The request may have been answered elsewhere.
    Changed,
    /// The input has ended.
    EndOfInput,
}

/// The result of one question of a prompt.
enum QuestionAnswer {
    Line(String),
    /// The request may have been answered elsewhere.
    Changed,
    EndOfInput,
}

/// The second question of a prompt.
const COMMENT: &str = "a comment for the model? [Enter for none]";

impl ChatConversation {
    /// Asks for the approvals of a turn that paused, and follows the turns that continue it.
    pub(super) async fn resume(
        &mut self,
        mut turn: TurnId,
        mut ending: TurnEnding,
    ) -> ChatResult<TurnEnding> {
        while ending == TurnEnding::Paused {
            let Some(next) = self.decide(turn).await? else {
                break;
            };
            turn = next;
            ending = self.follow(turn, false).await?;
        }
        Ok(ending)
    }

    /// Asks for the open approvals of the session's last turn.
    pub(super) async fn ask_open_approvals(&mut self) -> ChatResult<()> {
        let view = &self.view;
        let turns = match view.client.turns(view.session, None, Some(1)).await {
            // The requests can be answered later.
            Err(error) if error.is_transient() => return Ok(()),
            turns => turns?.turns,
        };
        if let Some(turn) = turns.last()
            && let Some(end) = &turn.terminal
            && end.payload["status"] == "paused"
        {
            self.resume(turn.turn_id, TurnEnding::Paused).await?;
        }
        Ok(())
    }

    /// Prints the approval requests of a turn, and the command that answers them.
    pub(super) fn print_approvals(&mut self, turn: TurnId) -> ChatResult<()> {
        let printer = &self.view.printer;
        let requests = printer.approvals();
        let requests =
            requests.map(|text| format!("the turn waits for a person to allow: {text}\n"));
        let command = format!("turnwire approve {turn}{}", printer.flags);
        let text: String = requests.collect();
        self.view.say(&text)?;
        let screen = &mut self.view.printer.screen;
        Ok(screen.note_with_command(TextTone::Quiet, "to answer:", &command)?)
    }

    /// Asks for all approvals of a paused turn and returns the turn that continues.
    async fn decide(&mut self, turn: TurnId) -> ChatResult<Option<TurnId>> {
        let printer = &self.view.printer;
        if !printer.is_for_people() || !printer.screen.has_person() {
            self.print_approvals(turn)?;
            return Ok(None);
        }
        loop {
            let list = async |client: &Client| client.approvals(turn).await;
            let list = self.until_response(None, list).await??;
            let mut requests = list.approvals.iter();
            let open = requests.find(|request| request.state == ApprovalState::Pending);
            let Some(request) = open else {
                return Ok(list.next_turn_id);
            };
            let read = async |client: &Client| client.approval(turn, request.approval_id).await;
            let item = self.until_response(None, read).await??;
            let Some(input) = &item.input_json else {
                let text = format!("{} cannot be asked for", tool_name(&request.tool_name));
                let text = format!("{text}: its input is no longer stored");
                self.view.printer.screen.note(TextTone::Bad, &text)?;
                self.print_approvals(turn)?;
                return Ok(None);
            };
            let answer = self.prompt(&item, input).await;
            // The request stays open when the person leaves without an answer.
            if let Ok(PromptAnswer::EndOfInput) | Err(LeaveReason::Interrupted) = answer {
                self.print_approvals(turn)?;
            }
            let (decision, comment) = match answer? {
                PromptAnswer::Decided(decision, comment) => (decision, comment),
                PromptAnswer::Changed => continue,
                PromptAnswer::EndOfInput => return Ok(None),
            };
            self.view.printer.answered_here = Some(request.approval_id);
            let answer = ApprovalAnswer {
                approval_id: request.approval_id.to_string(),
                decision,
                input_sha256: Some(sha256_hex(input.as_bytes())),
                comment,
            };
            // Sending the same answer again is safe.
            let send = async |client: &Client| {
                let answers = vec![answer.clone()];
                client.decide_approvals(turn, answers).await
            };
            match self.until_response(Some("not answered yet"), send).await? {
                Ok(answered) if answered.next_turn_id.is_some() => {
                    return Ok(answered.next_turn_id);
                }
                Ok(_) => {}
                Err(error) => {
                    let text = format!("not answered: {}", error_text(&error));
                    self.view.printer.screen.note(TextTone::Bad, &text)?;
                }
            }
        }
    }

    /// Shows the whole `input` of a request, then asks.
    async fn prompt(&mut self, request: &ApprovalItem, input: &str) -> ChatResult<PromptAnswer> {
        let name = &request.approval.tool_name;
        self.lines.get_or_insert_with(LineInput::pipe);
        let screen = &mut self.view.printer.screen;
        screen.block(&approval_text(name, input, keyboard::columns()))?;
        while let Ok(Some(typed)) = tokio::time::timeout(QUIET, next(&mut self.lines)).await {
            self.typed_ahead.push_back(typed.line);
        }
        keyboard::discard_typed();
        let shown_at = Instant::now();
        let changes = self.view.approval_changes;
        let question = format!("allow {} to run with this input? [y/n]", tool_name(name));
        let decision = loop {
            match self.question(&question, shown_at, changes).await? {
                QuestionAnswer::Line(line) => match parse_decision(&line) {
                    Some(decision) => break decision,
                    None => self.view.say(NOT_A_DECISION)?,
                },
                QuestionAnswer::Changed => return Ok(PromptAnswer::Changed),
                QuestionAnswer::EndOfInput => return Ok(PromptAnswer::EndOfInput),
            }
        };
        let comment = match self.question(COMMENT, shown_at, changes).await? {
            QuestionAnswer::Line(line) => Some(line).filter(|line| !line.is_empty()),
            QuestionAnswer::Changed => return Ok(PromptAnswer::Changed),
            QuestionAnswer::EndOfInput => None,
        };
        Ok(PromptAnswer::Decided(decision, comment))
    }

    /// Asks for a line that was typed after `shown_at`, until the number of approval changes is no
    /// longer `changes`.
    async fn question(
        &mut self,
        text: &str,
        shown_at: Instant,
        changes: u64,
    ) -> ChatResult<QuestionAnswer> {
        while self.view.approval_changes == changes {
            self.view.printer.screen.prompt(text)?;
            tokio::select! {
                typed = next(&mut self.lines) => {
                    self.view.printer.screen.line_typed();
                    return match typed {
                        None => Ok(QuestionAnswer::EndOfInput),
                        Some(typed) if typed.typed_at < shown_at => {
                            self.typed_ahead.push_back(typed.line);
                            continue;
                        }
                        Some(typed) => {
                            let line = typed.line.map_err(LeaveReason::Unreadable)?;
                            Ok(QuestionAnswer::Line(line))
                        }
                    };
                }
                step = self.view.step() => drop(step?),
            }
        }
        Ok(QuestionAnswer::Changed)
    }

    /// Repeats a request until the server responds; prints `pending` after the first failure.
    async fn until_response<T>(
        &mut self,
        pending: Option<&str>,
        request: impl AsyncFn(&Client) -> Result<T, Error>,
    ) -> ChatResult<Result<T, Error>> {
        let mut retry = RetryDelay::default();
        loop {
            let error = match request(&self.view.client).await {
                Err(error) if error.is_transient() => error,
                response => return Ok(response),
            };
            if let Some(pending) = pending.filter(|_| retry.is_first()) {
                self.view
                    .say(&format!("{pending} ({}); trying again", error_text(&error)))?;
            }
            self.view.pause(retry.next()).await?;
        }
    }
}
