//! The dispatch state of a turn: open steps and sub-agents, and the trace of all of them.

use std::cmp::Ordering;

use crate::actor::Actor;
use crate::body::dispatch::{AgentOutcome, DispatchTraced};
use crate::body::plan::{SlotEnd, StepCompleted, StepStarted};
use crate::body::subagent::{SubagentFailed, SubagentStarted};
use crate::body::{Body, family};
use crate::clock::Timestamp;
use crate::code::{AgentErrorClass, CapBehavior, DispatchOutcome, SlotStatus, StepStatus};
use crate::id::{InvocationId, ToolUseId};

/// A sub-agent that is running.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenAgent {
    /// The event that started it.
    pub started: SubagentStarted,
    /// The time of its start.
    pub since: Timestamp,
    /// The number of status events that it emitted.
    pub status_events: u32,
}

/// A plan step that has not completed.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenStep {
    /// The event that started it.
    pub started: StepStarted,
    /// The slots that have ended.
    pub ended: Vec<SlotEnd>,
}

impl OpenStep {
    /// All slots, in the order of the requests. A slot that never started has no tool use to name its
    /// result: its key is the sub-agent's id.
    fn slots(&self) -> Vec<SlotEnd> {
        let mut ended = self.ended.clone();
        let mut slots = Vec::with_capacity(self.started.expected_subagents.len());
        for expected in &self.started.expected_subagents {
            let index = ended.iter().position(|end| end.subagent == *expected);
            slots.push(match index {
                Some(at) => ended.remove(at),
                None => SlotEnd {
                    subagent: expected.clone(),
                    result_key: expected.clone(),
                    status: SlotStatus::Error,
                },
            });
        }
        slots.extend(ended);
        slots
    }
}

/// The sub-agents and steps that a turn has dispatched so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DispatchState {
    /// The running sub-agents, in the order of their start.
    pub agents: Vec<OpenAgent>,
    pub steps: Vec<OpenStep>,
    traced: DispatchTraced,
    reported: bool,
}

impl DispatchState {
    pub(super) fn apply(&mut self, time: Timestamp, actor: &Actor, body: &Body) {
        match body {
            Body::TurnStarted(start) => {
                let versions = &start.versions;
                self.traced
                    .agent_definition_version
                    .clone_from(&versions.agent_definition);
                self.traced.prompt_version.clone_from(&versions.prompt);
            }
            Body::PlanStepStarted(step) => self.step(step),
            Body::PlanStepCompleted(end) => self
                .steps
                .retain(|step| step.started.plan_step_id != end.plan_step_id),
            Body::SubagentStarted(started) => {
                self.traced
                    .sub_agents_invoked
                    .push(started.sub_agent_id.clone());
                self.agents.push(OpenAgent {
                    started: started.clone(),
                    since: time,
                    status_events: 0,
                });
            }
            Body::SubagentCompleted(end) => {
                let slot = match end.outcome {
                    DispatchOutcome::Success => SlotStatus::Success,
                    // A failed data service makes its slot an error (C-25).
                    DispatchOutcome::StatusError
                    | DispatchOutcome::Failure
                    | DispatchOutcome::Discarded => SlotStatus::Error,
                };
                self.end(&end.tool_use_id, slot);
                self.outcome(&end.sub_agent_id, end.outcome, end.latency_ms);
            }
            Body::SubagentFailed(end) => {
                let (slot, outcome) = match end.error_class {
                    AgentErrorClass::Timeout => (SlotStatus::Timeout, DispatchOutcome::Failure),
                    AgentErrorClass::Cancelled => (SlotStatus::Error, DispatchOutcome::Discarded),
                    AgentErrorClass::Instantiation
                    | AgentErrorClass::Model
                    | AgentErrorClass::Tool
                    | AgentErrorClass::Internal => (SlotStatus::Error, DispatchOutcome::Failure),
                };
                self.end(&end.tool_use_id, slot);
                self.outcome(&end.sub_agent_id, outcome, end.latency_ms);
            }
            Body::StatusEmitted(status) => self.count_status(actor, status.invocation_id),
            Body::DispatchTraced(_) => self.reported = true,
            family!(
                Session
                    | TurnEnd
                    | Approval
                    | Routing
                    | Llm
                    | Tool
                    | Delegate
                    | Display
                    | Bus
                    | Delta
                    | Mcp
                    | Note
            )
            | Body::TurnCancelRequested(_)
            | Body::MessageStart(_)
            | Body::MessageComplete(_) => {}
        }
    }

    /// The [`DispatchTraced`] of the turn; `None` if the turn has emitted it.
    pub fn traced(&self) -> Option<DispatchTraced> {
        (!self.reported).then(|| self.traced.clone())
    }

    /// The failures of the running sub-agents when their turn ends.
    pub(super) fn closing_agents(
        &self,
        class: AgentErrorClass,
        now: Timestamp,
    ) -> Vec<SubagentFailed> {
        let failed = |agent: &OpenAgent| SubagentFailed {
            invocation_id: agent.started.invocation_id,
            sub_agent_id: agent.started.sub_agent_id.clone(),
            tool_use_id: agent.started.tool_use_id,
            latency_ms: now.ms_since(agent.since),
            error_class: class,
            status_events: agent.status_events,
        };
        self.agents.iter().map(failed).collect()
    }

    /// The completions of the open steps when their turn ends, after their sub-agents.
    pub(super) fn closing_steps(&self) -> Vec<StepCompleted> {
        let completed = |step: &OpenStep| StepCompleted {
            plan_step_id: step.started.plan_step_id.clone(),
            status: StepStatus::Terminated,
            slots: step.slots(),
        };
        self.steps.iter().map(completed).collect()
    }

    fn step(&mut self, step: &StepStarted) {
        let requested = (step.expected_subagents.len() + step.dropped.len()) as u32;
        let behavior = match requested.cmp(&step.cap) {
            Ordering::Less => CapBehavior::Within,
            Ordering::Equal => CapBehavior::At,
            Ordering::Greater => CapBehavior::Over,
        };
        let traced = &mut self.traced;
        // The intents of one response (001 3.3): a turn with several reports its largest.
        traced.intent_count = traced.intent_count.max(requested);
        traced.cap = step.cap;
        traced.cap_behavior = traced.cap_behavior.max(behavior);
        traced.dropped.extend(step.dropped.iter().cloned());
        self.steps.push(OpenStep {
            started: step.clone(),
            ended: Vec::new(),
        });
    }

    /// Counts a status for the invocation that emitted it. The logs of older versions do not name
    /// it: there the first running sub-agent with the name of `actor` is meant.
    fn count_status(&mut self, actor: &Actor, invocation: Option<InvocationId>) {
        let emitted = |agent: &&mut OpenAgent| match invocation {
            Some(id) => agent.started.invocation_id == id,
            None => actor.is_subagent(&agent.started.sub_agent_id),
        };
        if let Some(agent) = self.agents.iter_mut().find(emitted) {
            agent.status_events += 1;
        }
    }

    fn end(&mut self, tool: &ToolUseId, status: SlotStatus) {
        let of_tool = |agent: &OpenAgent| agent.started.tool_use_id == *tool;
        let Some(at) = self.agents.iter().position(of_tool) else {
            return;
        };
        let agent = self.agents.remove(at).started;
        let mut steps = self.steps.iter_mut();
        if let Some(step) = steps.find(|s| s.started.plan_step_id == agent.plan_step_id) {
            step.ended.push(SlotEnd {
                subagent: agent.sub_agent_id,
                result_key: agent.tool_use_id.to_string(),
                status,
            });
        }
    }

    fn outcome(&mut self, sub_agent_id: &str, outcome: DispatchOutcome, latency_ms: u64) {
        self.traced.outcomes.push(AgentOutcome {
            sub_agent_id: sub_agent_id.to_owned(),
            outcome,
            latency_ms,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::status::StatusEmitted;
    use crate::body::subagent::SubagentContext;
    use crate::id::{EpisodeId, Ulid};

    fn step(n: u32, expected: &[&str], dropped: &[&str]) -> Body {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Body::PlanStepStarted(StepStarted {
            plan_step_id: format!("step-{n}"),
            expected_subagents: names(expected),
            cap: 2,
            dropped: names(dropped),
            deadline_ms: 1,
        })
    }

    fn told(bodies: &[Body]) -> DispatchTraced {
        let mut dispatch = DispatchState::default();
        for body in bodies {
            dispatch.apply(Timestamp::from_millis(1), &Actor::ORCHESTRATOR, body);
        }
        dispatch.traced().expect("not told yet")
    }

    // S2-064
    #[test]
    fn trace_reports_the_cap_of_the_worst_step() {
        let within = step(1, &["shop"], &[]);
        let at = step(2, &["shop", "rewards"], &[]);
        let over = step(3, &["shop", "rewards"], &["receipts"]);
        let cases = [
            (vec![], (0, 0, CapBehavior::Within)),
            (vec![within.clone()], (1, 2, CapBehavior::Within)),
            (vec![within.clone(), at.clone()], (2, 2, CapBehavior::At)),
            (vec![over, at, within], (3, 2, CapBehavior::Over)),
        ];
        for (steps, expected) in cases {
            let traced = told(&steps);
            let found = (traced.intent_count, traced.cap, traced.cap_behavior);
            assert_eq!(found, expected, "{steps:?}");
        }
    }

    #[test]
    fn completed_step_is_no_longer_open() {
        let mut dispatch = DispatchState::default();
        let time = Timestamp::from_millis(1);
        let completed = Body::PlanStepCompleted(StepCompleted {
            plan_step_id: "step-1".into(),
            status: StepStatus::Success,
            slots: Vec::new(),
        });
        for body in [step(1, &["shop"], &[]), step(2, &["shop"], &[]), completed] {
            dispatch.apply(time, &Actor::ORCHESTRATOR, &body);
        }
        let steps = dispatch.steps.iter();
        let open: Vec<_> = steps
            .map(|step| step.started.plan_step_id.as_str())
            .collect();
        assert_eq!(open, ["step-2"]);
    }

    #[test]
    fn interrupted_step_lists_slots_that_never_began() {
        let mut dispatch = DispatchState::default();
        let time = Timestamp::from_millis(1);
        let expected = ["rewards", "shop", "receipts", "shop"];
        let (shop, rewards) = (ToolUseId(Ulid(1)), ToolUseId(Ulid(2)));
        for body in [
            step(1, &expected, &["travel"]),
            started("shop", shop),
            started("rewards", rewards),
        ] {
            dispatch.apply(time, &Actor::ORCHESTRATOR, &body);
        }
        dispatch.end(&shop, SlotStatus::Success);
        dispatch.end(&rewards, SlotStatus::Timeout);
        let [completed] = &dispatch.closing_steps()[..] else {
            panic!("one step")
        };
        let slot = |subagent: &str, key: String, status| SlotEnd {
            subagent: subagent.into(),
            result_key: key,
            status,
        };
        assert_eq!(
            completed.slots,
            [
                slot("rewards", rewards.to_string(), SlotStatus::Timeout),
                slot("shop", shop.to_string(), SlotStatus::Success),
                slot("receipts", "receipts".into(), SlotStatus::Error),
                slot("shop", "shop".into(), SlotStatus::Error),
            ]
        );
    }

    fn started(id: &str, tool_use_id: ToolUseId) -> Body {
        Body::SubagentStarted(SubagentStarted {
            invocation_id: InvocationId(tool_use_id.0),
            sub_agent_id: id.into(),
            tool_use_id,
            plan_step_id: "step-1".into(),
            context: SubagentContext {
                principal: "local".into(),
                user_id: "local".into(),
                episode_id: EpisodeId(Ulid(1)),
                locale: "en".into(),
                location: None,
                prior_context: None,
            },
        })
    }

    /// The statuses that `emitted` counts for sub-agents with these names, in their order.
    fn counted(names: &[&str], emitted: &[(Actor, Option<InvocationId>)]) -> Vec<u32> {
        let mut dispatch = DispatchState::default();
        let time = Timestamp::from_millis(1);
        for (name, n) in names.iter().zip(1..) {
            let started = started(name, ToolUseId(Ulid(n)));
            dispatch.apply(time, &Actor::ORCHESTRATOR, &started);
        }
        for (actor, invocation_id) in emitted {
            let status = Body::StatusEmitted(StatusEmitted {
                event_id: "searching".into(),
                message: String::new(),
                invocation_id: *invocation_id,
            });
            dispatch.apply(time, actor, &status);
        }
        let failed = dispatch.closing_agents(AgentErrorClass::Internal, time);
        failed.iter().map(|f| f.status_events).collect()
    }

    #[test]
    fn status_counts_for_its_emitting_sub_agent() {
        let emitted = [
            (Actor::subagent("rewards"), None),
            (Actor::ORCHESTRATOR, None),
            (Actor::subagent("rewards"), None),
            (Actor::tool("shop"), None),
        ];
        assert_eq!(counted(&["shop", "rewards"], &emitted), [0, 2]);
    }

    #[test]
    fn status_counts_for_its_own_invocation() {
        let shop = |n| (Actor::subagent("shop"), Some(InvocationId(Ulid(n))));
        let emitted = [shop(2), shop(1), shop(2), shop(2), shop(9)];
        assert_eq!(counted(&["shop", "shop"], &emitted), [1, 3]);
        // A log of an older version.
        let unnamed = vec![(Actor::subagent("shop"), None); 2];
        assert_eq!(counted(&["shop", "shop"], &unnamed), [2, 0]);
    }
}
