//! Checks the rules for the turns of a log:
//!
//! - A turn has one terminal, which is its last event.
//! - Every tool, model call, sub-agent and step of a turn ends before the terminal.
//! - `dispatch.traced` occurs at most once in a turn, directly before the terminal.
//! - No work starts after a cancel request.
//! - Turns do not overlap, except that a queued turn may be withdrawn while another turn runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use turnwire_event::code::{CallPurpose, Phase};
use turnwire_event::{Body, CallId, EventType, InvocationId, ToolUseId, TurnId};

/// Checks the events of one session in order and counts the turns and tools that ended.
#[derive(Debug, Default)]
pub(crate) struct TurnVerifier {
    /// True if retention has trimmed the log: the start of a turn may be missing.
    pub(crate) is_log_trimmed: bool,
    pub(crate) unfinished: HashMap<TurnId, UnfinishedTurn>,
    pub(crate) ended_turn_count: u64,
    pub(crate) ended_tool_count: u64,
    /// The type of the terminal of each turn that has ended.
    terminals: HashMap<TurnId, EventType>,
}

/// A turn without a terminal so far, and its work that has not ended.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedTurn {
    /// All tools of the turn; the value is true while the tool runs.
    tools: BTreeMap<ToolUseId, bool>,
    /// The running model call of the orchestrator, which makes one call at a time.
    orchestrator_call: Option<CallId>,
    /// The running model calls of sub-agents, which run in parallel.
    sub_agent_calls: BTreeSet<CallId>,
    sub_agents: BTreeSet<InvocationId>,
    steps: BTreeSet<String>,
    /// True after `dispatch.traced`; a log without sub-agents has no such event.
    is_traced: bool,
    /// True after `turn.cancel_requested`: no new work may start.
    is_cancel_requested: bool,
    /// True if retention has removed the start of the turn: work may end that has no start.
    is_start_trimmed: bool,
    /// True if the turn started while another turn ran and may only be withdrawn from the queue.
    must_be_withdrawn: bool,
}

impl TurnVerifier {
    /// Checks the next event and returns its violations; `turn_id` is `None` for an event that
    /// belongs to no turn.
    pub(crate) fn check(&mut self, turn_id: Option<TurnId>, body: &Body) -> Vec<String> {
        let Some(id) = turn_id else {
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
        let mut violations = Vec::new();
        let starts = matches!(body, Body::TurnStarted(_));
        match (starts, self.unfinished.contains_key(&id)) {
            (true, true) => violations.push(format!("turn {id} starts twice")),
            (false, false) if !self.is_log_trimmed => {
                violations.push(format!("turn {id} has not started"))
            }
            _ => {}
        }
        let is_start_trimmed = !starts && self.is_log_trimmed;
        let must_be_withdrawn = starts && !self.unfinished.is_empty();
        let turn = self.unfinished.entry(id).or_insert_with(|| UnfinishedTurn {
            is_start_trimmed,
            must_be_withdrawn,
            ..UnfinishedTurn::default()
        });
        if turn.overlaps(body) {
            // Reported once, not for every further event.
            turn.must_be_withdrawn = false;
            violations.push(format!("turn {id} started while another was in flight"));
        }
        self.ended_tool_count += turn.apply(body, &mut violations);
        if is_terminal {
            turn.check_terminal(body, &mut violations);
            self.unfinished.remove(&id);
            self.terminals.insert(id, body.kind());
            self.ended_turn_count += 1;
        }
        violations
    }
}

impl UnfinishedTurn {
    /// True if the turn started while another turn ran, and `body` is not part of a withdrawal from
    /// the queue.
    fn overlaps(&self, body: &Body) -> bool {
        let is_withdrawal = match body {
            Body::TurnStarted(_) | Body::TurnCancelRequested(_) | Body::DispatchTraced(_) => true,
            Body::TurnCancelled(end) => end.phase == Phase::Queued,
            _ => false,
        };
        self.must_be_withdrawn && !is_withdrawal
    }

    /// Checks and applies an event; returns the number of tool calls that it ends, 0 or 1.
    fn apply(&mut self, body: &Body, violations: &mut Vec<String>) -> u64 {
        let kind = body.kind();
        if self.is_cancel_requested && kind.is_start() {
            violations.push(format!("{kind} after the cancel request"));
        }
        if self.is_traced && !kind.is_terminal() {
            violations.push(format!("{kind} after the turn's dispatch was traced"));
        }
        match body {
            Body::TurnCancelRequested(_) => self.is_cancel_requested = true,
            Body::LlmCallStarted(call) if call.purpose == CallPurpose::Subagent => {
                self.sub_agent_calls.insert(call.call_id);
            }
            Body::LlmCallStarted(call) => {
                let earlier = self.orchestrator_call.replace(call.call_id);
                violations.extend(earlier.map(|id| format!("model call {id} has not ended")));
            }
            Body::LlmCallCompleted(call) => self.end_model_call(call.call_id, violations),
            Body::LlmCallFailed(call) => self.end_model_call(call.call_id, violations),
            Body::ToolCalled(tool) => {
                let earlier = self.tools.insert(tool.tool_use_id, true);
                violations.extend(earlier.map(|_| format!("{} is called twice", tool.tool_use_id)));
            }
            Body::ToolCompleted(tool) => return self.end_tool(tool.tool_use_id, true, violations),
            Body::ToolFailed(tool) => {
                return self.end_tool(tool.tool_use_id, tool.called, violations);
            }
            Body::SubagentStarted(agent) => drop(self.sub_agents.insert(agent.invocation_id)),
            Body::SubagentCompleted(agent) => self.end_sub_agent(agent.invocation_id, violations),
            Body::SubagentFailed(agent) => self.end_sub_agent(agent.invocation_id, violations),
            Body::PlanStepStarted(step) => drop(self.steps.insert(step.plan_step_id.clone())),
            Body::PlanStepCompleted(step) => {
                let was_open = self.steps.remove(&step.plan_step_id);
                self.require_start(was_open, violations, || {
                    format!("step {} was not open", step.plan_step_id)
                });
            }
            Body::DispatchTraced(_) => self.is_traced = true,
            _ => {}
        }
        0
    }

    /// Reports the end of work that has no start, unless retention may have removed the start.
    fn require_start(
        &self,
        has_start: bool,
        violations: &mut Vec<String>,
        violation: impl Fn() -> String,
    ) {
        if !has_start && !self.is_start_trimmed {
            violations.push(violation());
        }
    }

    fn end_sub_agent(&mut self, id: InvocationId, violations: &mut Vec<String>) {
        let was_running = self.sub_agents.remove(&id);
        self.require_start(was_running, violations, || {
            format!("sub-agent {id} was not running")
        });
    }

    fn end_model_call(&mut self, id: CallId, violations: &mut Vec<String>) {
        let was_running =
            self.sub_agent_calls.remove(&id) || self.orchestrator_call.take() == Some(id);
        self.require_start(was_running, violations, || {
            format!("model call {id} was not in flight")
        });
    }

    /// Ends a tool and returns the number of ended calls: 0 for a violation, and for a tool that
    /// failed before it was called (D-87) and so has no `tool.called`.
    fn end_tool(&mut self, id: ToolUseId, was_called: bool, violations: &mut Vec<String>) -> u64 {
        match (self.tools.insert(id, false), was_called) {
            (Some(true), true) => return 1,
            (None, false) => {}
            (None, true) if self.is_start_trimmed => return 1,
            (Some(true), false) => violations.push(format!(
                "{id} was called, but its tool.failed says that it was not"
            )),
            (None, true) => violations.push(format!("{id} ends without having been called")),
            (Some(false), _) => violations.push(format!("{id} ends twice")),
        }
        0
    }

    /// Checks that all work has ended, and that a turn ends as cancelled if and only if a cancel was
    /// requested.
    fn check_terminal(&self, body: &Body, violations: &mut Vec<String>) {
        let running_tools = self.tools.iter().filter(|(_, is_running)| **is_running);
        violations
            .extend(running_tools.map(|(id, _)| format!("{id} was called and has not ended")));
        let calls = self.orchestrator_call.iter().chain(&self.sub_agent_calls);
        let calls = calls.map(|id| format!("model call {id}"));
        let sub_agents = self.sub_agents.iter().map(|id| format!("sub-agent {id}"));
        let steps = self.steps.iter().map(|id| format!("step {id}"));
        let running = calls.chain(sub_agents).chain(steps);
        violations.extend(running.map(|subject| format!("{subject} has not ended")));
        let is_cancelled = matches!(body, Body::TurnCancelled(_));
        match (self.is_cancel_requested, is_cancelled) {
            (true, false) => {
                violations.push("the turn completes after a cancel request".to_owned())
            }
            (false, true) if !self.is_start_trimmed => {
                violations.push("the turn is cancelled without a cancel request".to_owned());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
