//! Questions of a turn that paused: asked on the terminal, where there is a person, one after the
//! other; the turn that goes on is told like any other.
//!
//! ```text
//!   paused ─▶ the first question without an answer ─▶ y, n or a comment ─▶ sent ─┐
//!     ▲  └── none left: the turn that goes on             answered elsewhere ─────┤
//!     └──────────────────────────────◀───────────────────────────────────────────┘
//! ```

use std::time::Duration;

use turnwire_client::Error;
use turnwire_event::TurnId;
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_wire::rest::approval::{
    ApprovalAnswer, ApprovalList, ApprovalRecord, ApprovalsAnswered,
};

use crate::terminal::color::TextTone;

use super::conversation::{ChatConversation, next};
use super::input;
use super::session_view::LeaveReason;
use super::turn_ending::TurnEnding;
use super::{AGAIN, AGAIN_MAX};

/// How long nothing may be typed before a question is asked: what comes sooner was typed ahead,
/// and is no answer to what nobody has seen.
const QUIET: Duration = Duration::from_millis(50);

/// What came of a question.
#[derive(Debug, PartialEq)]
enum PromptAnswer {
    /// An answer, with what to tell the model.
    Word(Decision, Option<String>),
    /// Something happened to it elsewhere.
    Elsewhere,
    /// There is nobody to ask any more.
    Nobody,
}

impl ChatConversation {
    /// A turn has ended; if it waits for a person, asks and tells what goes on then.
    pub(super) async fn goes_on(
        &mut self,
        mut turn: TurnId,
        mut outcome: TurnEnding,
    ) -> Result<TurnEnding, LeaveReason> {
        while outcome == TurnEnding::Paused {
            let Some(next) = self.decide(turn).await? else {
                return Ok(outcome);
            };
            turn = next;
            outcome = self.until_over(turn, false).await?;
        }
        Ok(outcome)
    }

    /// Someone comes back: asks what the last turn has left open.
    pub(super) async fn left_open(&mut self) -> Result<(), LeaveReason> {
        let turns = self.scene.client.turns(self.scene.session, None, Some(1));
        let mut turns = match turns.await {
            // What is asked can be answered later, too.
            Err(error) if error.is_transient() => return Ok(()),
            turns => turns?.turns,
        };
        let Some(turn) = turns.pop() else {
            return Ok(());
        };
        let status = turn.terminal.map(|end| end.payload["status"].clone());
        if status.is_some_and(|status| status == "paused") {
            self.goes_on(turn.turn_id, TurnEnding::Paused).await?;
        }
        Ok(())
    }

    /// Says what a turn asks, and how to answer from elsewhere.
    pub(super) fn tell_questions(&mut self, turn: TurnId) -> Result<(), LeaveReason> {
        let teller = &self.scene.teller;
        let requests = teller
            .asked()
            .map(|what| format!("the turn waits for a person to allow: {what}\n"));
        let hint = format!("to answer: turnwire approve {turn}{}", teller.flags());
        let notice = requests.chain([hint]).collect::<String>();
        Ok(self.scene.say(&notice)?)
    }

    /// Asks all that a paused turn has asked; gives the turn that goes on.
    async fn decide(&mut self, turn: TurnId) -> Result<Option<TurnId>, LeaveReason> {
        if !self.scene.teller.is_for_people() || !self.scene.teller.screen.has_person() {
            self.tell_questions(turn)?;
            return Ok(None);
        }
        loop {
            let mut list = self.questions(turn).await?;
            let open = |question: &ApprovalRecord| question.state == ApprovalState::Pending;
            list.approvals.retain(open);
            let Some(question) = list.approvals.first() else {
                return Ok(list.next_turn_id);
            };
            let answer = self.question(question).await;
            // The question outlives whoever leaves without a word.
            if matches!(
                answer,
                Ok(PromptAnswer::Nobody) | Err(LeaveReason::Interrupted)
            ) {
                self.tell_questions(turn)?;
            }
            let (decision, comment) = match answer? {
                PromptAnswer::Word(decision, comment) => (decision, comment),
                PromptAnswer::Elsewhere => continue,
                PromptAnswer::Nobody => return Ok(None),
            };
            self.scene.teller.answers(question.approval_id);
            let answer = ApprovalAnswer {
                approval_id: question.approval_id.to_string(),
                decision,
                comment,
            };
            match self.answer(turn, answer).await? {
                Ok(ApprovalsAnswered {
                    next_turn_id: Some(next),
                    ..
                }) => return Ok(Some(next)),
                Ok(_) => {}
                Err(error) => {
                    let notice = format!("not answered: {error}");
                    self.scene.teller.screen.note(TextTone::Bad, &notice)?;
                }
            }
        }
    }

    async fn question(&mut self, question: &ApprovalRecord) -> Result<PromptAnswer, LeaveReason> {
        self.lines.get_or_insert_with(input::lines);
        while let Ok(Some(line)) = tokio::time::timeout(QUIET, next(&mut self.lines)).await {
            self.ahead.push_back(line);
        }
        let words = format!(
            "allow {} {}? [y/N, or a comment]",
            question.tool_name, question.input_summary
        );
        let news = self.scene.news;
        while self.scene.news == news {
            self.scene.teller.screen.ask(&words)?;
            tokio::select! {
                line = next(&mut self.lines) => {
                    self.scene.teller.screen.typed();
                    return match line {
                        None => Ok(PromptAnswer::Nobody),
                        Some(line) => Ok(said(&line.map_err(LeaveReason::Unreadable)?)),
                    };
                }
                step = self.scene.step() => drop(step?),
            }
        }
        Ok(PromptAnswer::Elsewhere)
    }

    /// What a turn asks, as soon as the server says.
    async fn questions(&mut self, turn: TurnId) -> Result<ApprovalList, LeaveReason> {
        let mut again = AGAIN;
        loop {
            match self.scene.client.approvals(turn).await {
                Err(error) if error.is_transient() => self.scene.pause(again).await?,
                list => return Ok(list?),
            }
            again = (again * 2).min(AGAIN_MAX);
        }
    }

    /// Sends an answer; the same again says nothing new.
    async fn answer(
        &mut self,
        turn: TurnId,
        answer: ApprovalAnswer,
    ) -> Result<Result<ApprovalsAnswered, Error>, LeaveReason> {
        let mut again = AGAIN;
        loop {
            match self
                .scene
                .client
                .decide_approvals(turn, vec![answer.clone()])
                .await
            {
                Err(error) if error.is_transient() => {
                    if again == AGAIN {
                        let notice = format!("not answered yet ({error}); trying again");
                        self.scene.say(&notice)?;
                    }
                    self.scene.pause(again).await?;
                }
                answered => return Ok(answered),
            }
            again = (again * 2).min(AGAIN_MAX);
        }
    }
}

/// What a line says to a question. Only a plain yes is one.
fn said(line: &str) -> PromptAnswer {
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => PromptAnswer::Word(Decision::Approve, None),
        "" | "n" | "no" => PromptAnswer::Word(Decision::Reject, None),
        _ => PromptAnswer::Word(Decision::Reject, Some(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        for yes in ["y", "Y", "yes", "YES"] {
            assert_eq!(
                said(yes),
                PromptAnswer::Word(Decision::Approve, None),
                "{yes}"
            );
        }
        for no in ["", "n", "No"] {
            assert_eq!(said(no), PromptAnswer::Word(Decision::Reject, None), "{no}");
        }
        let but = "yes, but only tomorrow";
        assert_eq!(
            said(but),
            PromptAnswer::Word(Decision::Reject, Some(but.into()))
        );
    }
}
