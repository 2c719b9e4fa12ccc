//! The tools and workers of a turn, to show them by name.
//!
//! Events identify them by id. The chat shows a tool by its name, a worker by its task, and a process
//! by the tool that runs it.

use std::collections::HashMap;

use turnwire_event::body::turn::ReceiptLine;
use turnwire_event::body::{delegate, tool};
use turnwire_event::code::ReceiptKind;
use turnwire_event::{ContentBlock, SessionId, Timestamp, ToolUseId};

/// The tools and workers of one turn, by their ids.
#[derive(Debug, Default)]
pub(crate) struct TurnParticipants {
    tools: HashMap<String, KnownTool>,
    worker_tasks: HashMap<String, String>,
}

/// A tool of the turn, from its `tool.called` or from a message.
#[derive(Debug)]
struct KnownTool {
    name: String,
    /// The time of `tool.called`; `None` if that event was not received.
    called: Option<Timestamp>,
    is_running: bool,
}

impl TurnParticipants {
    /// Adds the running tool of a `tool.called`.
    pub(crate) fn tool_called(&mut self, tool: &tool::ToolCalled, at: Timestamp) {
        let known = KnownTool {
            name: tool.tool_name.clone(),
            called: Some(at),
            is_running: true,
        };
        self.tools.insert(tool.tool_use_id.to_string(), known);
    }

    /// Marks a tool as ended and returns its duration in milliseconds, if `tool.called` was received.
    pub(crate) fn tool_ended(&mut self, id: ToolUseId, at: Timestamp) -> Option<i64> {
        let tool = self.tools.get_mut(&id.to_string())?;
        tool.is_running = false;
        Some(at.as_millis() - tool.called?.as_millis())
    }

    /// Adds the worker of a `delegate.started`.
    pub(crate) fn worker_started(&mut self, started: &delegate::DelegateStarted) {
        let id = started.worker_session_id.to_string();
        self.worker_tasks.insert(id, started.task_summary.clone());
    }

    /// The task of a worker, if its `delegate.started` was received.
    pub(crate) fn task(&self, worker: SessionId) -> Option<&str> {
        self.worker_tasks
            .get(&worker.to_string())
            .map(String::as_str)
    }

    /// Learns the names of the tools that a message in a snapshot calls.
    pub(crate) fn add_tool_names(&mut self, content: &[ContentBlock]) {
        for block in content {
            if let ContentBlock::ToolUse { id, name, .. } = block {
                let tool = self.tools.entry(id.to_string());
                tool.or_insert_with(|| KnownTool {
                    name: name.clone(),
                    called: None,
                    is_running: false,
                });
            }
        }
    }

    /// The names of the running tools, sorted.
    pub(crate) fn running_tools(&self) -> Vec<&str> {
        let running = self.tools.values().filter(|tool| tool.is_running);
        let mut names: Vec<_> = running.map(|tool| tool.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The text for the subject of a receipt line: `tool nap`, `process of nap`. A receipt of an older
    /// server has ids only.
    pub(crate) fn receipt_subject(&self, line: &ReceiptLine) -> String {
        let id = &line.id;
        let name = Some(&line.name).filter(|name| !name.is_empty());
        match line.kind {
            ReceiptKind::Llm => "model call".to_owned(),
            ReceiptKind::Subagent => format!("sub-agent {}", name.unwrap_or(id)),
            ReceiptKind::Tool => {
                let known = self.tools.get(id).map(|tool| &tool.name);
                format!("tool {}", name.or(known).unwrap_or(id))
            }
            ReceiptKind::Worker => match self.worker_tasks.get(id) {
                Some(task) => format!("worker on \"{task}\""),
                None => format!("worker {id}"),
            },
            ReceiptKind::Process => match name {
                Some(tool) => format!("process of {tool}"),
                None => format!("process {id}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::Ulid;
    use turnwire_event::code::StopOutcome;

    fn line(kind: ReceiptKind, id: &str, outcome: StopOutcome, ms: u64) -> ReceiptLine {
        ReceiptLine {
            kind,
            id: id.to_owned(),
            name: String::new(),
            outcome,
            ms,
        }
    }

    fn tool(id: u128, outcome: StopOutcome, ms: u64) -> ReceiptLine {
        let id = ToolUseId(Ulid(id)).to_string();
        line(ReceiptKind::Tool, &id, outcome, ms)
    }

    #[test]
    fn receipt_line_is_shown_by_its_name() {
        let participants = TurnParticipants::default();
        for (kind, expected) in [
            (ReceiptKind::Llm, "model call"),
            (ReceiptKind::Subagent, "sub-agent nap"),
            (ReceiptKind::Tool, "tool nap"),
            (ReceiptKind::Worker, "worker 77"),
            (ReceiptKind::Process, "process of nap"),
        ] {
            let line = ReceiptLine {
                name: "nap".into(),
                ..line(kind, "77", StopOutcome::Stopped, 1)
            };
            assert_eq!(participants.receipt_subject(&line), expected);
        }
    }

    #[test]
    fn worker_is_named_by_its_task_else_by_its_id() {
        let worker = SessionId(Ulid(5));
        let mut participants = TurnParticipants::default();
        let stopped = |kind, id: &str| line(kind, id, StopOutcome::Stopped, 1);
        let of_worker = stopped(ReceiptKind::Worker, &worker.to_string());
        assert_eq!(
            participants.receipt_subject(&of_worker),
            format!("worker {worker}")
        );
        participants.worker_started(&delegate::DelegateStarted {
            worker_session_id: worker,
            tool_use_id: ToolUseId(Ulid(1)),
            task_summary: "tea".into(),
        });
        assert_eq!(
            participants.receipt_subject(&of_worker),
            "worker on \"tea\""
        );
        assert_eq!(participants.task(worker), Some("tea"));
        for (kind, expected) in [
            (ReceiptKind::Llm, "model call"),
            (ReceiptKind::Subagent, "sub-agent x"),
            (ReceiptKind::Tool, "tool x"),
            (ReceiptKind::Process, "process x"),
        ] {
            assert_eq!(participants.receipt_subject(&stopped(kind, "x")), expected);
        }
    }

    #[test]
    fn tool_names_of_an_earlier_message_are_known() {
        let id = ToolUseId(Ulid(1));
        let mut participants = TurnParticipants::default();
        participants.add_tool_names(&[ContentBlock::ToolUse {
            id,
            name: "nap".into(),
            input: serde_json::json!({}),
        }]);
        let receipt = [tool(1, StopOutcome::Killed, 4)];
        assert_eq!(participants.receipt_subject(&receipt[0]), "tool nap");
        assert!(participants.running_tools().is_empty());
    }
}
