//! The tools and workers of a turn, to show them by name.
//!
//! Events and receipts identify them by id. The chat shows a tool by its name, a worker by its task,
//! and a process by the tool that runs it.

use std::collections::HashMap;

use turnwire_event::body::turn::ReceiptLine;
use turnwire_event::body::{delegate, tool};
use turnwire_event::code::{ReceiptKind, ToolType};
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
    /// The type and time of `tool.called`; `None` if that event was not received.
    called: Option<(ToolType, Timestamp)>,
    is_running: bool,
}

impl TurnParticipants {
    /// Adds the running tool of a `tool.called`.
    pub(crate) fn tool_called(&mut self, tool: &tool::ToolCalled, at: Timestamp) {
        let known = KnownTool {
            name: tool.tool_name.clone(),
            called: Some((tool.tool_type, at)),
            is_running: true,
        };
        self.tools.insert(tool.tool_use_id.to_string(), known);
    }

    /// Marks a tool as ended and returns its duration in milliseconds, if `tool.called` was received.
    pub(crate) fn tool_ended(&mut self, id: ToolUseId, at: Timestamp) -> Option<i64> {
        let tool = self.tools.get_mut(&id.to_string())?;
        tool.is_running = false;
        let (_, called_at) = tool.called?;
        Some(at.as_millis() - called_at.as_millis())
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

    /// Learns the names of the tools that a message in a snapshot calls; a receipt has only their
    /// ids.
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

    /// The text for the subject of `line`, a line of `receipt`: `tool nap`, `process of nap`.
    pub(crate) fn receipt_subject(&self, line: &ReceiptLine, receipt: &[ReceiptLine]) -> String {
        let id = &line.id;
        match line.kind {
            ReceiptKind::Llm => "model call".to_owned(),
            ReceiptKind::Subagent => format!("sub-agent {id}"),
            ReceiptKind::Tool => {
                let name = self.tools.get(id).map_or(id, |tool| &tool.name);
                format!("tool {name}")
            }
            ReceiptKind::Worker => match self.worker_tasks.get(id) {
                Some(task) => format!("worker on \"{task}\""),
                None => format!("worker {id}"),
            },
            ReceiptKind::Process => match self.tool_of_process(line, receipt) {
                Some(tool) => format!("process of {tool}"),
                None => format!("process {id}"),
            },
        }
    }

    /// The name of the tool that runs `process`. The receipt does not link the two, so the name is
    /// known only if all process tools in `receipt` have it, or all those with the time and outcome
    /// of the process. A tool may end later than its process, and with a worse outcome.
    fn tool_of_process(&self, process: &ReceiptLine, receipt: &[ReceiptLine]) -> Option<&str> {
        let process_tools = || {
            let lines = receipt.iter().filter(|line| line.kind == ReceiptKind::Tool);
            let tools = lines.filter_map(|line| Some((line, self.tools.get(&line.id)?)));
            tools.filter(|(_, tool)| matches!(tool.called, Some((ToolType::Process, _)) | None))
        };
        let same_end = process_tools()
            .filter(|(line, _)| (line.outcome, line.ms) == (process.outcome, process.ms))
            .map(|(_, tool)| tool.name.as_str());
        let all = process_tools().map(|(_, tool)| tool.name.as_str());
        common_name(all).or_else(|| common_name(same_end))
    }
}

/// The name that all `names` are equal to; `None` if they differ or there are none.
fn common_name<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
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
            outcome,
            ms,
        }
    }

    fn participants(tools: &[(u128, &str, ToolType)]) -> TurnParticipants {
        let mut participants = TurnParticipants::default();
        for (id, name, tool_type) in tools {
            let called = tool::ToolCalled {
                tool_use_id: ToolUseId(Ulid(*id)),
                tool_name: (*name).to_owned(),
                tool_type: *tool_type,
                input_summary: String::new(),
            };
            participants.tool_called(&called, Timestamp::from_millis(0));
        }
        participants
    }

    fn tool(id: u128, outcome: StopOutcome, ms: u64) -> ReceiptLine {
        let id = ToolUseId(Ulid(id)).to_string();
        line(ReceiptKind::Tool, &id, outcome, ms)
    }

    #[test]
    fn process_is_named_by_its_tool_if_unambiguous() {
        let process = |ms, outcome| line(ReceiptKind::Process, "77", outcome, ms);
        let (killed, stopped) = (StopOutcome::Killed, StopOutcome::Stopped);
        let alone = participants(&[
            (1, "nap", ToolType::Process),
            (2, "clock", ToolType::Function),
        ]);
        let receipt = [tool(1, killed, 9), tool(2, stopped, 9), process(8, killed)];
        assert_eq!(
            alone.receipt_subject(&receipt[2], &receipt),
            "process of nap"
        );

        let two = participants(&[
            (1, "nap", ToolType::Process),
            (2, "wait", ToolType::Process),
        ]);
        let receipt = [tool(1, killed, 9), tool(2, stopped, 3), process(3, stopped)];
        assert_eq!(
            two.receipt_subject(&receipt[2], &receipt),
            "process of wait"
        );
        let same = [tool(1, killed, 9), tool(2, killed, 9), process(9, killed)];
        assert_eq!(
            two.receipt_subject(&same[2], &same),
            "process 77",
            "two tools ended like the process"
        );

        let twins = participants(&[(1, "nap", ToolType::Process), (2, "nap", ToolType::Process)]);
        assert_eq!(twins.receipt_subject(&same[2], &same), "process of nap");
    }

    #[test]
    fn worker_is_named_by_its_task_else_by_its_id() {
        let worker = SessionId(Ulid(5));
        let mut participants = TurnParticipants::default();
        let stopped = |kind, id: &str| line(kind, id, StopOutcome::Stopped, 1);
        let of_worker = stopped(ReceiptKind::Worker, &worker.to_string());
        assert_eq!(
            participants.receipt_subject(&of_worker, &[]),
            format!("worker {worker}")
        );
        participants.worker_started(&delegate::DelegateStarted {
            worker_session_id: worker,
            tool_use_id: ToolUseId(Ulid(1)),
            task_summary: "tea".into(),
        });
        assert_eq!(
            participants.receipt_subject(&of_worker, &[]),
            "worker on \"tea\""
        );
        assert_eq!(participants.task(worker), Some("tea"));
        for (kind, expected) in [
            (ReceiptKind::Llm, "model call"),
            (ReceiptKind::Subagent, "sub-agent x"),
            (ReceiptKind::Tool, "tool x"),
            (ReceiptKind::Process, "process x"),
        ] {
            assert_eq!(
                participants.receipt_subject(&stopped(kind, "x"), &[]),
                expected
            );
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
        assert_eq!(
            participants.receipt_subject(&receipt[0], &receipt),
            "tool nap"
        );
        assert!(participants.running_tools().is_empty());
    }
}
