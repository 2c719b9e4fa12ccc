//! The rules of a log about turns: each has one terminal, its last event; every tool, model call,
//! sub-agent and step that began has ended before it; the dispatch is traced once, just before it;
//! nothing new begins after a cancel request.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use turnwire_event::code::{CallPurpose, Phase};
use turnwire_event::{Body, CallId, EventType, InvocationId, ToolUseId, TurnId};

/// The turns of a session, as far as its log has been read.
#[derive(Debug, Default)]
pub(crate) struct TurnRules {
    /// True if retention has trimmed the log: the start of a turn may be missing.
    pub(crate) is_trimmed: bool,
    pub(crate) open: HashMap<TurnId, OpenTurn>,
    /// The number of turns that ended.
    pub(crate) ended: u64,
    /// The number of tool calls that ended.
    pub(crate) tools: u64,
    terminals: HashMap<TurnId, EventType>,
}

/// A turn of [`TurnRules`] that has not ended.
#[derive(Debug, Default)]
pub(crate) struct OpenTurn {
    /// The tools of the turn; true while the tool runs.
    tools: BTreeMap<ToolUseId, bool>,
    call: Option<CallId>,
    /// Calls of sub-agents, which may run in parallel.
    sub_agent_calls: BTreeSet<CallId>,
    sub_agents: BTreeSet<InvocationId>,
    steps: BTreeSet<String>,
    /// True after `dispatch.traced`, which logs without sub-agents do not have.
    is_traced: bool,
    is_cancelled: bool,
    /// True if the start of the turn was trimmed: work that it began before is unknown.
    is_cut: bool,
    /// True if it started while another was in flight, as a turn withdrawn from the queue does.
    is_beside: bool,
}

impl TurnRules {
    /// Takes in an event of `turn` and returns the rules that it breaks.
    pub(crate) fn take(&mut self, turn: Option<TurnId>, body: &Body) -> Vec<String> {
        let Some(id) = turn else {
            return Vec::new();
        };
        let is_terminal = body.kind().is_terminal();
        if let Some(terminal) = self.terminals.get(&id) {
            let subject = match is_terminal {
                true => "a second terminal",
                false => "an event",
            };
            return vec![format!("{subject} after {terminal} of turn {id}")];
        }
        let mut wrong = Vec::new();
        let starts = matches!(body, Body::TurnStarted(_));
        match (starts, self.open.contains_key(&id)) {
            (true, true) => wrong.push(format!("turn {id} starts twice")),
            (false, false) if !self.is_trimmed => wrong.push(format!("turn {id} has not started")),
            _ => {}
        }
        let is_cut = !starts && self.is_trimmed;
        let is_beside = starts && !self.open.is_empty();
        let open = self.open.entry(id).or_insert_with(|| OpenTurn {
            is_cut,
            is_beside,
            ..OpenTurn::default()
        });
        if open.overlaps(body) {
            open.is_beside = false;
            wrong.push(format!("turn {id} started while another was in flight"));
        }
        self.tools += open.take(body, &mut wrong);
        if is_terminal {
            open.close(body, &mut wrong);
            self.open.remove(&id);
            self.terminals.insert(id, body.kind());
            self.ended += 1;
        }
        wrong
    }
}

impl OpenTurn {
    /// True if a turn that started beside another does more than a withdrawn turn does.
    fn overlaps(&self, body: &Body) -> bool {
        let is_withdrawal = match body {
            Body::TurnStarted(_) | Body::TurnCancelRequested(_) | Body::DispatchTraced(_) => true,
            Body::TurnCancelled(end) => end.phase == Phase::Queued,
            _ => false,
        };
        self.is_beside && !is_withdrawal
    }

    /// Takes in an event and returns the number of tool calls that it ends.
    fn take(&mut self, body: &Body, wrong: &mut Vec<String>) -> u64 {
        let kind = body.kind();
        if self.is_cancelled && kind.is_start() {
            wrong.push(format!("{kind} after the cancel request"));
        }
        if self.is_traced && !kind.is_terminal() {
            wrong.push(format!("{kind} after the turn's dispatch was traced"));
        }
        match body {
            Body::TurnCancelRequested(_) => self.is_cancelled = true,
            Body::LlmCallStarted(call) if call.purpose == CallPurpose::Subagent => {
                self.sub_agent_calls.insert(call.call_id);
            }
            Body::LlmCallStarted(call) => {
                let open = self.call.replace(call.call_id);
                wrong.extend(open.map(|open| format!("model call {open} has not ended")));
            }
            Body::LlmCallCompleted(call) => self.end_call(call.call_id, wrong),
            Body::LlmCallFailed(call) => self.end_call(call.call_id, wrong),
            Body::ToolCalled(tool) => {
                let before = self.tools.insert(tool.tool_use_id, true);
                wrong.extend(before.map(|_| format!("{} is called twice", tool.tool_use_id)));
            }
            Body::ToolCompleted(tool) => return self.end_tool(tool.tool_use_id, true, wrong),
            Body::ToolFailed(tool) => return self.end_tool(tool.tool_use_id, tool.called, wrong),
            Body::SubagentStarted(agent) => drop(self.sub_agents.insert(agent.invocation_id)),
            Body::SubagentCompleted(agent) => self.end_sub_agent(agent.invocation_id, wrong),
            Body::SubagentFailed(agent) => self.end_sub_agent(agent.invocation_id, wrong),
            Body::PlanStepStarted(step) => drop(self.steps.insert(step.plan_step_id.clone())),
            Body::PlanStepCompleted(step) => {
                let was_open = self.steps.remove(&step.plan_step_id);
                self.require(was_open, wrong, || {
                    format!("step {} was not open", step.plan_step_id)
                });
            }
            Body::DispatchTraced(_) => self.is_traced = true,
            _ => {}
        }
        0
    }

    /// Reports an end without a start, unless the start was trimmed.
    fn require(&self, has_start: bool, wrong: &mut Vec<String>, what: impl Fn() -> String) {
        if !has_start && !self.is_cut {
            wrong.push(what());
        }
    }

    fn end_sub_agent(&mut self, id: InvocationId, wrong: &mut Vec<String>) {
        let was_running = self.sub_agents.remove(&id);
        self.require(was_running, wrong, || {
            format!("sub-agent {id} was not running")
        });
    }

    fn end_call(&mut self, id: CallId, wrong: &mut Vec<String>) {
        let was_running = self.sub_agent_calls.remove(&id) || self.call.take() == Some(id);
        self.require(was_running, wrong, || {
            format!("model call {id} was not in flight")
        });
    }

    /// Ends a tool; a tool that failed before it was called (D-87) has no `tool.called`.
    fn end_tool(&mut self, id: ToolUseId, called: bool, wrong: &mut Vec<String>) -> u64 {
        match (self.tools.insert(id, false), called) {
            (Some(true), true) => return 1,
            (None, false) => {}
            (None, true) if self.is_cut => return 1,
            (Some(true), false) => wrong.push(format!("{id} was called, but its end denies it")),
            (None, true) => wrong.push(format!("{id} ends without having been called")),
            (Some(false), _) => wrong.push(format!("{id} ends twice")),
        }
        0
    }

    fn close(&self, body: &Body, wrong: &mut Vec<String>) {
        let running_tools = self.tools.iter().filter(|(_, is_running)| **is_running);
        wrong.extend(running_tools.map(|(id, _)| format!("{id} was called and has not ended")));
        let calls = self.call.iter().chain(&self.sub_agent_calls);
        let calls = calls.map(|id| format!("model call {id}"));
        let sub_agents = self.sub_agents.iter().map(|id| format!("sub-agent {id}"));
        let steps = self.steps.iter().map(|id| format!("step {id}"));
        let open = calls.chain(sub_agents).chain(steps);
        wrong.extend(open.map(|subject| format!("{subject} has not ended")));
        match (self.is_cancelled, matches!(body, Body::TurnCancelled(_))) {
            (true, false) => wrong.push("the turn completes after a cancel request".to_owned()),
            (false, true) if !self.is_cut => {
                wrong.push("the turn is cancelled without a cancel request".to_owned());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
