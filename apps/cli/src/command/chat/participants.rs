//! Who takes part in a turn: its tools and workers, and what a person is to call them.
//!
//! Events and receipts name everything by ids; a person knows a tool by its name, a worker by its
//! task, and a process by the tool that runs it.

use std::collections::HashMap;

use turnwire_event::body::turn::ReceiptLine;
use turnwire_event::body::{delegate, tool};
use turnwire_event::code::{ReceiptKind, ToolType};
use turnwire_event::{ContentBlock, SessionId, Timestamp, ToolUseId};

/// Tools and workers of one turn, by their ids.
#[derive(Debug, Default)]
pub(crate) struct TurnParticipants {
    tools: HashMap<String, KnownTool>,
    /// What each works on.
    workers: HashMap<String, String>,
}

#[derive(Debug)]
struct KnownTool {
    name: String,
    /// None for one that was asked for before we came.
    kind: Option<ToolType>,
    called_at: Option<Timestamp>,
    running: bool,
}

impl TurnParticipants {
    /// A tool is about to act.
    pub(crate) fn called(&mut self, tool: &tool::ToolCalled, at: Timestamp) {
        let called = KnownTool {
            name: tool.tool_name.clone(),
            kind: Some(tool.tool_type),
            called_at: Some(at),
            running: true,
        };
        self.tools.insert(tool.tool_use_id.to_string(), called);
    }

    /// A tool is done; how long it took, if its beginning was seen.
    pub(crate) fn over(&mut self, id: ToolUseId, at: Timestamp) -> Option<i64> {
        let tool = self.tools.get_mut(&id.to_string())?;
        tool.running = false;
        Some(at.as_millis() - tool.called_at?.as_millis())
    }

    /// A worker is about to begin.
    pub(crate) fn given(&mut self, work: &delegate::DelegateStarted) {
        let id = work.worker_session_id.to_string();
        self.workers.insert(id, work.task_summary.clone());
    }

    /// What a worker works on.
    pub(crate) fn task(&self, worker: SessionId) -> Option<&str> {
        self.workers.get(&worker.to_string()).map(String::as_str)
    }

    /// Takes the names out of a message that was there before we came.
    pub(crate) fn learn(&mut self, content: &[ContentBlock]) {
        for block in content {
            if let ContentBlock::ToolUse { id, name, .. } = block {
                self.tools
                    .entry(id.to_string())
                    .or_insert_with(|| KnownTool {
                        name: name.clone(),
                        kind: None,
                        called_at: None,
                        running: false,
                    });
            }
        }
    }

    /// The tools at work, in order.
    pub(crate) fn at_work(&self) -> Vec<&str> {
        let running = self.tools.values().filter(|tool| tool.running);
        let mut names: Vec<_> = running.map(|tool| tool.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// What a line of a receipt is about.
    pub(crate) fn name(&self, line: &ReceiptLine, receipt: &[ReceiptLine]) -> String {
        match line.kind {
            ReceiptKind::Llm => "model call".to_owned(),
            ReceiptKind::Subagent => format!("sub-agent {}", line.id),
            ReceiptKind::Tool => {
                let tool = self.tools.get(&line.id);
                format!("tool {}", tool.map_or(&line.id, |tool| &tool.name))
            }
            ReceiptKind::Worker => match self.workers.get(&line.id) {
                Some(task) => format!("worker on \"{task}\""),
                None => format!("worker {}", line.id),
            },
            ReceiptKind::Process => match self.runs(line, receipt) {
                Some(tool) => format!("process of {tool}"),
                None => format!("process {}", line.id),
            },
        }
    }

    /// The tool that runs a process, where there can be only one: the receipt does not say which.
    /// A tool ends no earlier than its process, mostly with it, and never better.
    fn runs(&self, process: &ReceiptLine, receipt: &[ReceiptLine]) -> Option<&str> {
        let tools = receipt.iter().filter(|line| line.kind == ReceiptKind::Tool);
        let tools: Vec<_> = tools
            .filter_map(|line| Some((line, self.tools.get(&line.id)?)))
            .filter(|(_, tool)| matches!(tool.kind, Some(ToolType::Process) | None))
            .map(|(line, tool)| (line, tool.name.as_str()))
            .collect();
        let with_it = tools
            .iter()
            .filter(|(line, _)| (line.outcome, line.ms) == (process.outcome, process.ms));
        only(tools.iter().map(|(_, name)| *name)).or_else(|| only(with_it.map(|(_, name)| *name)))
    }
}

/// The one name that all have.
fn only<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
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

    fn cast(tools: &[(u128, &str, ToolType)]) -> TurnParticipants {
        let mut cast = TurnParticipants::default();
        for (id, name, tool_type) in tools {
            let called = tool::ToolCalled {
                tool_use_id: ToolUseId(Ulid(*id)),
                tool_name: (*name).to_owned(),
                tool_type: *tool_type,
                input_summary: String::new(),
            };
            cast.called(&called, Timestamp::from_millis(0));
        }
        cast
    }

    fn tool(id: u128, outcome: StopOutcome, ms: u64) -> ReceiptLine {
        let id = ToolUseId(Ulid(id)).to_string();
        line(ReceiptKind::Tool, &id, outcome, ms)
    }

    #[test]
    fn process_is_named_by_its_tool_if_unambiguous() {
        let process = |ms, outcome| line(ReceiptKind::Process, "77", outcome, ms);
        let (killed, stopped) = (StopOutcome::Killed, StopOutcome::Stopped);
        let alone = cast(&[
            (1, "nap", ToolType::Process),
            (2, "clock", ToolType::Function),
        ]);
        let receipt = [tool(1, killed, 9), tool(2, stopped, 9), process(8, killed)];
        assert_eq!(alone.name(&receipt[2], &receipt), "process of nap");

        let two = cast(&[
            (1, "nap", ToolType::Process),
            (2, "wait", ToolType::Process),
        ]);
        let receipt = [tool(1, killed, 9), tool(2, stopped, 3), process(3, stopped)];
        assert_eq!(two.name(&receipt[2], &receipt), "process of wait");
        let same = [tool(1, killed, 9), tool(2, killed, 9), process(9, killed)];
        assert_eq!(
            two.name(&same[2], &same),
            "process 77",
            "which is not known"
        );

        let twins = cast(&[(1, "nap", ToolType::Process), (2, "nap", ToolType::Process)]);
        assert_eq!(twins.name(&same[2], &same), "process of nap");
    }

    #[test]
    fn workers_are_named_by_their_task_and_strangers_by_their_id() {
        let worker = SessionId(Ulid(5));
        let mut cast = TurnParticipants::default();
        let stopped = |kind, id: &str| line(kind, id, StopOutcome::Stopped, 1);
        let of_worker = stopped(ReceiptKind::Worker, &worker.to_string());
        assert_eq!(cast.name(&of_worker, &[]), format!("worker {worker}"));
        cast.given(&delegate::DelegateStarted {
            worker_session_id: worker,
            tool_use_id: ToolUseId(Ulid(1)),
            task_summary: "tea".into(),
        });
        assert_eq!(cast.name(&of_worker, &[]), "worker on \"tea\"");
        assert_eq!(cast.task(worker), Some("tea"));
        for (kind, told) in [
            (ReceiptKind::Llm, "model call"),
            (ReceiptKind::Subagent, "sub-agent x"),
            (ReceiptKind::Tool, "tool x"),
            (ReceiptKind::Process, "process x"),
        ] {
            assert_eq!(cast.name(&stopped(kind, "x"), &[]), told);
        }
    }

    #[test]
    fn names_of_a_message_that_was_there_are_known() {
        let id = ToolUseId(Ulid(1));
        let mut cast = TurnParticipants::default();
        cast.learn(&[ContentBlock::ToolUse {
            id,
            name: "nap".into(),
            input: serde_json::json!({}),
        }]);
        let receipt = [tool(1, StopOutcome::Killed, 4)];
        assert_eq!(cast.name(&receipt[0], &receipt), "tool nap");
        assert!(cast.at_work().is_empty());
    }
}
