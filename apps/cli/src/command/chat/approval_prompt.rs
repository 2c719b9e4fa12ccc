//! The approval requests of a paused turn: asked one after the other where a person types, then the
//! turn that continues is followed.
//!
//! ```text
//!   paused ─▶ the first open request ─▶ its whole input ─▶ y, n or a comment ─▶ sent ───┐
//!     ▲  └── none left: the turn that continues                       answered elsewhere ─┤
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

use crate::terminal::approval_text::{approval_text, tool_name};
use crate::terminal::color::TextTone;
use crate::terminal::keyboard;

use super::conversation::{ChatConversation, next};
use super::input;
use super::retry_delay::RetryDelay;
use super::session_view::{ChatResult, LeaveReason};
use super::turn_ending::TurnEnding;

/// The pause in typing before a request is asked: lines that arrive sooner were typed before it and
/// are kept for the conversation.
const QUIET: Duration = Duration::from_millis(50);

/// The result of a prompt for an [`ApprovalItem`].
#[derive(Debug, PartialEq)]
enum PromptAnswer {
    /// A decision, with a comment for the model.
    Decided(Decision, Option<String>),
    /// The request may have been answered elsewhere.
    Changed,
    /// The input has ended.
    EndOfInput,
}

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
        let hint = format!("to answer: turnwire approve {turn}{}", printer.flags);
        let text: String = requests.chain([hint]).collect();
        Ok(self.view.say(&text)?)
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
                    let text = format!("not answered: {error}");
                    self.view.printer.screen.note(TextTone::Bad, &text)?;
                }
            }
        }
    }

    /// Shows the whole `input` of a request, then asks.
    async fn prompt(&mut self, request: &ApprovalItem, input: &str) -> ChatResult<PromptAnswer> {
        let name = &request.approval.tool_name;
        self.lines.get_or_insert_with(input::lines);
        let screen = &mut self.view.printer.screen;
        screen.block(&approval_text(name, input, keyboard::columns()))?;
        while let Ok(Some(typed)) = tokio::time::timeout(QUIET, next(&mut self.lines)).await {
            self.typed_ahead.push_back(typed.line);
        }
        keyboard::discard_typed();
        let shown_at = Instant::now();
        let text = format!(
            "allow {} to run with this input? [y/N, or a comment]",
            tool_name(name)
        );
        let changes = self.view.approval_changes;
        while self.view.approval_changes == changes {
            self.view.printer.screen.prompt(&text)?;
            tokio::select! {
                typed = next(&mut self.lines) => {
                    self.view.printer.screen.line_typed();
                    return match typed {
                        None => Ok(PromptAnswer::EndOfInput),
                        Some(typed) if typed.typed_at < shown_at => {
                            self.typed_ahead.push_back(typed.line);
                            continue;
                        }
                        Some(typed) => {
                            let line = typed.line.map_err(LeaveReason::Unreadable)?;
                            Ok(parse_answer(&line))
                        }
                    };
                }
                step = self.view.step() => drop(step?),
            }
        }
        Ok(PromptAnswer::Changed)
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
                    .say(&format!("{pending} ({error}); trying again"))?;
            }
            self.view.pause(retry.next()).await?;
        }
    }
}

/// The decision in a typed line. Only a plain yes approves.
fn parse_answer(line: &str) -> PromptAnswer {
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => PromptAnswer::Decided(Decision::Approve, None),
        "" | "n" | "no" => PromptAnswer::Decided(Decision::Reject, None),
        _ => PromptAnswer::Decided(Decision::Reject, Some(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_approves() {
        for yes in ["y", "Y", "yes", "YES"] {
            assert_eq!(
                parse_answer(yes),
                PromptAnswer::Decided(Decision::Approve, None),
                "{yes}"
            );
        }
        for no in ["", "n", "No"] {
            assert_eq!(
                parse_answer(no),
                PromptAnswer::Decided(Decision::Reject, None),
                "{no}"
            );
        }
        let but = "yes, but only tomorrow";
        assert_eq!(
            parse_answer(but),
            PromptAnswer::Decided(Decision::Reject, Some(but.into()))
        );
    }
}
