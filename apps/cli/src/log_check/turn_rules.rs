//! What a log must say about its turns: one terminal each, last of its turn; every tool, every
//! model call, every sub-agent and every step that began has ended before it; what was dispatched
//! is traced once, just before it; nothing new after a cancel was asked for.

use std::collections::{BTreeSet, HashMap};

use turnwire_event::code::{CallPurpose, Phase};
use turnwire_event::{Body, CallId, EventType, InvocationId, ToolUseId, TurnId};

/// The turns of a session, as far as its log has been read.
#[derive(Debug, Default)]
pub(crate) struct TurnRules {
    /// Whether the beginning of the log is gone: then a turn may be without its start.
    pub(crate) trimmed: bool,
    /// Turns that have not ended.
    pub(crate) open: HashMap<TurnId, OpenTurn>,
    pub(crate) ended: u64,
    /// How many tool calls were closed.
    pub(crate) tools: u64,
    done: HashMap<TurnId, EventType>,
}

/// A turn that has not ended.
#[derive(Debug, Default)]
pub(crate) struct OpenTurn {
    tools: HashMap<ToolUseId, bool>,
    call: Option<CallId>,
    /// Calls of sub-agents, which may be several at once.
    inner: BTreeSet<CallId>,
    agents: BTreeSet<InvocationId>,
    steps: BTreeSet<String>,
    /// Its dispatch was traced; logs written before there were sub-agents have no trace.
    traced: bool,
    cancelled: bool,
    /// Its start was trimmed, so what it opened before is not known.
    cut: bool,
    /// It started while another was in flight, as only one may that is withdrawn from the queue.
    beside: bool,
}

impl TurnRules {
    /// Takes in an event of `turn`; gives back what is wrong with it.
    pub(crate) fn take(&mut self, turn: Option<TurnId>, body: &Body) -> Vec<String> {
        let Some(id) = turn else {
            return Vec::new();
        };
        if let Some(terminal) = self.done.get(&id) {
            let again = body.kind().is_terminal();
            let which = if again {
                "a second terminal"
            } else {
                "an event"
            };
            return vec![format!("{which} after {terminal} of turn {id}")];
        }
        let mut violations = Vec::new();
        let starts = matches!(body, Body::TurnStarted(_));
        match (starts, self.open.contains_key(&id)) {
            (true, true) => violations.push(format!("turn {id} starts twice")),
            (false, false) if !self.trimmed => {
                violations.push(format!("turn {id} has not started"))
            }
            _ => {}
        }
        let cut = !starts && self.trimmed;
        let beside = starts && !self.open.is_empty();
        let open = self.open.entry(id).or_insert_with(|| OpenTurn {
            cut,
            beside,
            ..OpenTurn::default()
        });
        if open.overlaps(body) {
            open.beside = false;
            violations.push(format!("turn {id} started while another was in flight"));
        }
        self.tools += open.take(body, &mut violations);
        if body.kind().is_terminal() {
            open.close(body, &mut violations);
            self.open.remove(&id);
            self.done.insert(id, body.kind());
            self.ended += 1;
        }
        violations
    }
}

impl OpenTurn {
    /// Whether a turn that started beside another does what one that is withdrawn does not.
    fn overlaps(&self, body: &Body) -> bool {
        let withdrawn = match body {
            Body::TurnStarted(_) | Body::TurnCancelRequested(_) | Body::DispatchTraced(_) => true,
            Body::TurnCancelled(end) => end.phase == Phase::Queued,
            _ => false,
        };
        self.beside && !withdrawn
    }

    /// Takes in an event; gives back how many tool calls it closed.
    fn take(&mut self, body: &Body, wrong: &mut Vec<String>) -> u64 {
        if self.cancelled && body.kind().is_start() {
            wrong.push(format!("{} after the cancel was asked for", body.kind()));
        }
        if self.traced && !body.kind().is_terminal() {
            wrong.push(format!(
                "{} after the turn's dispatch was traced",
                body.kind()
            ));
        }
        match body {
            Body::TurnCancelRequested(_) => self.cancelled = true,
            Body::LlmCallStarted(call) if call.purpose == CallPurpose::Subagent => {
                self.inner.insert(call.call_id);
            }
            Body::LlmCallStarted(call) => {
                if let Some(open) = self.call.replace(call.call_id) {
                    wrong.push(format!("model call {open} has not ended"));
                }
            }
            Body::LlmCallCompleted(call) => self.end_call(call.call_id, wrong),
            Body::LlmCallFailed(call) => self.end_call(call.call_id, wrong),
            Body::ToolCalled(tool) => {
                let before = self.tools.insert(tool.tool_use_id, true);
                wrong.extend(before.map(|_| format!("{} is called twice", tool.tool_use_id)));
            }
            Body::ToolCompleted(tool) => return self.end_tool(tool.tool_use_id, true, wrong),
            Body::ToolFailed(tool) => return self.end_tool(tool.tool_use_id, tool.called, wrong),
            Body::SubagentStarted(agent) => drop(self.agents.insert(agent.invocation_id)),
            Body::SubagentCompleted(agent) => self.end_agent(agent.invocation_id, wrong),
            Body::SubagentFailed(agent) => self.end_agent(agent.invocation_id, wrong),
            Body::PlanStepStarted(step) => drop(self.steps.insert(step.plan_step_id.clone())),
            Body::PlanStepCompleted(step) => self.end_step(&step.plan_step_id, wrong),
            Body::DispatchTraced(_) => self.traced = true,
            _ => {}
        }
        0
    }

    fn end_agent(&mut self, id: InvocationId, wrong: &mut Vec<String>) {
        if !self.agents.remove(&id) && !self.cut {
            wrong.push(format!("sub-agent {id} was not at work"));
        }
    }

    fn end_step(&mut self, id: &str, wrong: &mut Vec<String>) {
        if !self.steps.remove(id) && !self.cut {
            wrong.push(format!("step {id} was not open"));
        }
    }

    fn end_call(&mut self, id: CallId, wrong: &mut Vec<String>) {
        if self.inner.remove(&id) {
            return;
        }
        if self.call.take() != Some(id) && !self.cut {
            wrong.push(format!("model call {id} was not in flight"));
        }
    }

    /// A tool ends; one that failed before it was called (D-87) had no `tool.called`.
    fn end_tool(&mut self, id: ToolUseId, called: bool, wrong: &mut Vec<String>) -> u64 {
        match (self.tools.insert(id, false), called) {
            (Some(true), true) => return 1,
            (None, false) => {}
            (None, true) if self.cut => return 1,
            (Some(true), false) => wrong.push(format!("{id} was called, but its end denies it")),
            (None, true) => wrong.push(format!("{id} ends without having been called")),
            (Some(false), _) => wrong.push(format!("{id} ends twice")),
        }
        0
    }

    fn close(&self, body: &Body, wrong: &mut Vec<String>) {
        let mut open_tools: Vec<_> = self.tools.iter().filter(|(_, open)| **open).collect();
        open_tools.sort();
        for (id, _) in open_tools {
            wrong.push(format!("{id} was called and has not ended"));
        }
        for call in self.call.iter().chain(&self.inner) {
            wrong.push(format!("model call {call} has not ended"));
        }
        for agent in &self.agents {
            wrong.push(format!("sub-agent {agent} has not ended"));
        }
        for step in &self.steps {
            wrong.push(format!("step {step} has not ended"));
        }
        let cancelled = matches!(body, Body::TurnCancelled(_));
        if self.cancelled && !cancelled {
            wrong.push("a cancel was asked for, but the turn ends as completed".to_owned());
        }
        if !self.cancelled && !self.cut && cancelled {
            wrong.push("the turn ends as cancelled, but no cancel was asked for".to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
