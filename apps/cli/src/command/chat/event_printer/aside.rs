//! What is told beside the answer: who works for the turn, what it asks a person, and that it is
//! about to stop.

use std::io;

use turnwire_event::body::{approval, delegate};
use turnwire_event::code::Decision;
use turnwire_event::{ApprovalId, Message, SessionId};

use crate::terminal::color::TextTone;
use crate::terminal::event_line::word;

use super::EventPrinter;

/// What is said of a turn that was asked to stop.
pub(super) const STOPPING: &str = "stopping…";

impl EventPrinter {
    /// A worker is about to begin.
    pub(super) fn worker_begins(&mut self, work: &delegate::DelegateStarted) -> io::Result<()> {
        self.cast.given(work);
        let (worker, task) = (work.worker_session_id, &work.task_summary);
        self.shown_as(
            TextTone::Quiet,
            &format!("worker {worker} works on: {task}"),
        )
    }

    /// A worker has ended its turn.
    pub(super) fn worker_done(&mut self, end: &delegate::DelegateCompleted) -> io::Result<()> {
        let result = match end.success {
            true => "is done",
            false => "did not do it",
        };
        self.worker_end(end.worker_session_id, TextTone::Quiet, result)
    }

    /// A worker did not get there. When the turn itself stops, the receipt says so.
    pub(super) fn worker_failed(&mut self, end: &delegate::DelegateFailed) -> io::Result<()> {
        if self.stopping {
            return Ok(());
        }
        let result = format!("did not get to its end ({})", word(&end.failure_mode));
        self.worker_end(end.worker_session_id, TextTone::Bad, &result)
    }

    /// A worker has ended, with how to look at what it did.
    fn worker_end(&mut self, worker: SessionId, tone: TextTone, how: &str) -> io::Result<()> {
        let task = self.cast.task(worker).map(|task| format!(" on \"{task}\""));
        let text = format!(
            "worker{} {how}; to look: turnwire tail {worker}{}",
            task.unwrap_or_default(),
            self.flags
        );
        self.shown_as(tone, &text)
    }

    /// The turn will wait for a person.
    pub(super) fn asks(&mut self, question: &approval::ApprovalRequested) {
        let description = format!("{} {}", question.tool_name, question.input_summary);
        self.asked.push((question.approval_id, description));
    }

    /// A question has its answer. One that was given here needs no telling.
    pub(super) fn resolved(&mut self, answer: &approval::ApprovalResolved) -> io::Result<()> {
        let mut open_requests = self.asked.iter();
        let description = open_requests.find(|(id, _)| *id == answer.approval_id);
        let Some((_, what)) = description.filter(|_| self.answered != Some(answer.approval_id))
        else {
            return Ok(());
        };
        let decision = match (answer.by.as_str(), answer.decision) {
            ("system", _) => "taken back",
            (_, Decision::Approve) => "allowed elsewhere",
            (_, Decision::Reject) => "refused elsewhere",
        };
        let comment = answer.comment.iter().map(|said| format!(": {said}"));
        let text = format!("{decision}: {what}{}", comment.collect::<String>());
        self.screen.note(TextTone::Quiet, &text)
    }

    /// A question is about to be answered here.
    pub(crate) fn answers(&mut self, question: ApprovalId) {
        self.answered = Some(question);
    }

    /// What the turn has asked, in words.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(|(_, what)| what.as_str())
    }

    /// What a later command must be told.
    pub(crate) fn flags(&self) -> &str {
        &self.flags
    }

    /// The turn is asked to stop, here or elsewhere; said once.
    pub(crate) fn stops(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.stopping, true) {
            true => Ok(()),
            false => self.screen.passing_or_note(STOPPING),
        }
    }

    /// The turn is asked to stop, which was said already.
    pub(crate) fn stops_as_said(&mut self) {
        self.stopping = true;
    }

    /// The turn takes its time to stop. A terminal is told again and again, a pipe once.
    pub(crate) fn stops_still(&mut self, seconds: u32) -> io::Result<()> {
        let names = self.cast.at_work();
        let names = match names.is_empty() {
            true => String::new(),
            false => format!("; waiting for {} to end", names.join(", ")),
        };
        let text = format!("{STOPPING} {seconds} s{names}");
        match seconds {
            0..=1 => self.screen.passing_or_note(&text),
            _ => self.screen.passing(&text),
        }
    }

    /// Takes the names out of a message that was there before we came.
    pub(crate) fn learn(&mut self, message: &Message) {
        self.cast.learn(&message.content);
    }
}
