//! The lines beside the answer: workers, approval requests, and a cancel in progress.

use std::io;

use turnwire_event::Message;
use turnwire_event::SessionId;
use turnwire_event::body::approval::ApprovalResolved;
use turnwire_event::body::delegate;
use turnwire_event::code::Decision;

use crate::terminal::color::TextTone;
use crate::terminal::wording::code_name;

use super::EventPrinter;

/// The line of a turn that was asked to stop.
pub(crate) const STOPPING: &str = "stopping…";

impl EventPrinter {
    pub(super) fn worker_started(&mut self, work: &delegate::DelegateStarted) -> io::Result<()> {
        self.participants.worker_started(work);
        let (worker, task) = (work.worker_session_id, &work.task_summary);
        self.note(
            TextTone::Quiet,
            &format!("worker {worker} works on: {task}"),
        )
    }

    pub(super) fn worker_completed(&mut self, end: &delegate::DelegateCompleted) -> io::Result<()> {
        let result = match end.success {
            true => "is done",
            false => "did not do it",
        };
        self.worker_ended(end.worker_session_id, TextTone::Quiet, result)
    }

    /// Prints the failure of a worker. If the turn is stopping, the receipt reports it.
    pub(super) fn worker_failed(&mut self, end: &delegate::DelegateFailed) -> io::Result<()> {
        if self.is_stopping {
            return Ok(());
        }
        let result = format!("did not get to its end ({})", code_name(end.failure_mode));
        self.worker_ended(end.worker_session_id, TextTone::Bad, &result)
    }

    /// Prints the end of a worker, with the command that shows its session.
    fn worker_ended(&mut self, worker: SessionId, tone: TextTone, result: &str) -> io::Result<()> {
        let task = self.participants.task(worker);
        let task = task
            .map(|task| format!(" on \"{task}\""))
            .unwrap_or_default();
        let flags = &self.flags;
        let text = format!("worker{task} {result}; to look: turnwire tail {worker}{flags}");
        self.note(tone, &text)
    }

    /// Prints an answer to an approval request, unless it was given here.
    pub(super) fn approval_resolved(&mut self, answer: &ApprovalResolved) -> io::Result<()> {
        let id = answer.approval_id;
        let request = self.approvals.iter().find(|(open, _)| *open == id);
        let Some((_, request)) = request.filter(|_| self.answered != Some(id)) else {
            return Ok(());
        };
        let decision = match (answer.by.as_str(), answer.decision) {
            ("system", _) => "taken back",
            (_, Decision::Approve) => "allowed elsewhere",
            (_, Decision::Reject) => "refused elsewhere",
        };
        let comment = answer.comment.as_ref().map(|text| format!(": {text}"));
        let text = format!("{decision}: {request}{}", comment.unwrap_or_default());
        self.screen.note(TextTone::Quiet, &text)
    }

    /// The approval requests of the turn, as text.
    pub(crate) fn approvals(&self) -> impl Iterator<Item = &str> {
        self.approvals.iter().map(|(_, text)| text.as_str())
    }

    /// Shows once that the turn was asked to stop, here or elsewhere.
    pub(crate) fn show_stopping(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.is_stopping, true) {
            true => Ok(()),
            false => self.screen.temporary_or_note(STOPPING),
        }
    }

    /// Shows that the turn takes time to stop: on a terminal every second, in a pipe once.
    pub(crate) fn show_stop_progress(&mut self, seconds: u32) -> io::Result<()> {
        let names = self.participants.running_tools();
        let names = match names.is_empty() {
            true => String::new(),
            false => format!("; waiting for {} to end", names.join(", ")),
        };
        let text = format!("{STOPPING} {seconds} s{names}");
        match seconds {
            0..=1 => self.screen.temporary_or_note(&text),
            _ => self.screen.temporary(&text),
        }
    }

    /// Adds the names of tools in a message from before the connection.
    pub(crate) fn add_tool_names(&mut self, message: &Message) {
        self.participants.add_tool_names(&message.content);
    }
}
