//! The lines that [`EventPrinter`] prints besides the answer: workers that start and end, decisions
//! on approval requests, and a cancel in progress.

use std::io;

use turnwire_event::Message;
use turnwire_event::SessionId;
use turnwire_event::body::approval::ApprovalResolved;
use turnwire_event::body::delegate;
use turnwire_event::code::{Decision, FailureMode};

use crate::terminal::color::TextTone;

use super::EventPrinter;

/// Shown while a turn stops after a cancel request.
pub(crate) const STOPPING: &str = "stopping…";

impl EventPrinter {
    pub(super) fn worker_started(&mut self, start: &delegate::DelegateStarted) -> io::Result<()> {
        self.participants.worker_started(start);
        let (worker, task) = (start.worker_session_id, &start.task_summary);
        self.note(
            TextTone::Quiet,
            &format!("worker {worker} works on: {task}"),
        )
    }

    pub(super) fn worker_completed(&mut self, end: &delegate::DelegateCompleted) -> io::Result<()> {
        let result = match end.success {
            true => "is done",
            false => "did not complete its task",
        };
        self.worker_ended(end.worker_session_id, TextTone::Quiet, result)
    }

    /// Prints the failure of a worker, unless the turn is stopping: then the receipt reports the
    /// worker.
    pub(super) fn worker_failed(&mut self, end: &delegate::DelegateFailed) -> io::Result<()> {
        if self.is_stopping {
            return Ok(());
        }
        let result = match end.failure_mode {
            FailureMode::CancelledByUser => "was stopped",
            FailureMode::Timeout => "took too long",
            FailureMode::Error => "failed",
        };
        self.worker_ended(end.worker_session_id, TextTone::Bad, result)
    }

    /// Prints how a worker ended, with the command that shows its session.
    fn worker_ended(&mut self, worker: SessionId, tone: TextTone, result: &str) -> io::Result<()> {
        let task = self.participants.task(worker);
        let task = task
            .map(|task| format!(" on \"{task}\""))
            .unwrap_or_default();
        let flags = &self.flags;
        let text = format!("worker{task} {result}; follow it with:");
        let command = format!("turnwire tail {worker}{flags}");
        self.screen.note_with_command(tone, &text, &command)?;
        self.show_progress()
    }

    /// Prints the decision on an approval request, unless it was made in this chat.
    pub(super) fn approval_resolved(&mut self, resolved: &ApprovalResolved) -> io::Result<()> {
        let id = resolved.approval_id;
        let request = self
            .approvals
            .iter()
            .find(|(request_id, _)| *request_id == id);
        let Some((_, request)) = request.filter(|_| self.answered_here != Some(id)) else {
            return Ok(());
        };
        let decision = match (resolved.by.as_str(), resolved.decision) {
            ("system", _) => "withdrawn",
            (_, Decision::Approve) => "allowed elsewhere",
            (_, Decision::Reject) => "refused elsewhere",
        };
        let comment = resolved.comment.as_ref().map(|text| format!(": {text}"));
        let text = format!("{decision}: {request}{}", comment.unwrap_or_default());
        self.screen.note(TextTone::Quiet, &text)
    }

    /// The approval requests of the turn, each as the name and input of its tool.
    pub(crate) fn approvals(&self) -> impl Iterator<Item = &str> {
        self.approvals.iter().map(|(_, text)| text.as_str())
    }

    /// Shows once that a cancel of the turn was requested, by this client or another.
    pub(crate) fn show_stopping(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.is_stopping, true) {
            true => Ok(()),
            false => self.screen.temporary_or_note(STOPPING),
        }
    }

    /// Shows for how many seconds the turn has been stopping, and which tools still run: on a
    /// terminal every second, in a pipe once.
    pub(crate) fn show_stop_progress(&mut self, seconds: u32) -> io::Result<()> {
        let tools = self.participants.running_tools();
        let waiting = match tools.is_empty() {
            true => String::new(),
            false => format!("; waiting for {} to end", tools.join(", ")),
        };
        let text = format!("{STOPPING} {seconds} s{waiting}");
        match seconds {
            0..=1 => self.screen.temporary_or_note(&text),
            _ => self.screen.temporary(&text),
        }
    }

    /// Learns the names of the tools that a message in a snapshot calls; a receipt has only their
    /// ids.
    pub(crate) fn add_tool_names(&mut self, message: &Message) {
        self.participants.add_tool_names(&message.content);
    }
}
