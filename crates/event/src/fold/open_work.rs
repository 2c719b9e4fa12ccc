//! The work that a session has open at a position: running tools, sub-agents and workers, and
//! approvals without a decision. A snapshot shows it to a client that has seen none of the events.

use crate::actor::Actor;
use crate::body::approval::ApprovalRequested;
use crate::body::delegate::DelegateStarted;
use crate::body::subagent::SubagentStarted;
use crate::body::tool::ToolCalled;
use crate::body::{Body, family};
use crate::clock::Timestamp;
use crate::code::ApprovalState;
use crate::envelope::EventHead;
use crate::id::{SessionId, TurnId};
use crate::position::Position;
use crate::row::ApprovalRow;

/// Work that has started and not ended, with the event that started it.
#[derive(Clone, Debug, PartialEq)]
pub struct Running<T> {
    /// The position of the event.
    pub at: Position,
    pub turn_id: TurnId,
    pub actor: Actor,
    pub time: Timestamp,
    /// True if the rendering policy hides the event.
    pub is_hidden: bool,
    /// The payload of the event.
    pub started: T,
}

/// The open work of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenWork {
    /// The tools that were called and have not ended, in the order of their calls.
    pub tools: Vec<Running<ToolCalled>>,
    /// The running sub-agents, in the order of their start.
    pub sub_agents: Vec<Running<SubagentStarted>>,
    /// The running workers, in the order of their start.
    pub workers: Vec<Running<DelegateStarted>>,
    /// The approvals without a decision, in the order of their requests; they outlive their turn.
    pub approvals: Vec<ApprovalRow>,
}

impl OpenWork {
    /// Applies the next event of the session.
    pub fn apply(&mut self, session: SessionId, head: &EventHead, time: Timestamp, body: &Body) {
        match body {
            Body::ToolCalled(tool) => self.tools.extend(running(head, time, tool)),
            Body::ToolCompleted(end) => self
                .tools
                .retain(|tool| tool.started.tool_use_id != end.tool_use_id),
            Body::ToolFailed(end) => self
                .tools
                .retain(|tool| tool.started.tool_use_id != end.tool_use_id),
            Body::SubagentStarted(agent) => self.sub_agents.extend(running(head, time, agent)),
            Body::SubagentCompleted(end) => self
                .sub_agents
                .retain(|agent| agent.started.invocation_id != end.invocation_id),
            Body::SubagentFailed(end) => self
                .sub_agents
                .retain(|agent| agent.started.invocation_id != end.invocation_id),
            Body::DelegateStarted(worker) => self.workers.extend(running(head, time, worker)),
            Body::DelegateCompleted(end) => self
                .workers
                .retain(|worker| worker.started.worker_session_id != end.worker_session_id),
            Body::DelegateFailed(end) => self
                .workers
                .retain(|worker| worker.started.worker_session_id != end.worker_session_id),
            Body::ApprovalRequested(request) => {
                let pending = head
                    .turn
                    .map(|turn| pending((session, turn), request, time));
                self.approvals.extend(pending);
            }
            Body::ApprovalResolved(resolved) => self
                .approvals
                .retain(|approval| approval.id != resolved.approval_id),
            // Nothing of a turn runs after its terminal.
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
                self.tools.retain(|tool| Some(tool.turn_id) != head.turn);
                self.sub_agents
                    .retain(|agent| Some(agent.turn_id) != head.turn);
                self.workers
                    .retain(|worker| Some(worker.turn_id) != head.turn);
            }
            family!(Session | Routing | Llm | Plan | Display | Bus | Delta | Mcp | Note)
            | Body::TurnStarted(_)
            | Body::TurnCancelRequested(_)
            | Body::DispatchTraced(_)
            | Body::StatusEmitted(_)
            | Body::MessageStart(_)
            | Body::MessageComplete(_) => {}
        }
    }
}

/// The work that an event with this head and payload starts; `None` if it belongs to no turn.
fn running<T: Clone>(head: &EventHead, time: Timestamp, started: &T) -> Option<Running<T>> {
    Some(Running {
        at: head.position,
        turn_id: head.turn?,
        actor: head.actor.clone(),
        time,
        is_hidden: head.suppressed,
        started: started.clone(),
    })
}

/// The row of an approval that was requested at `time`.
fn pending(
    (session_id, turn_id): (SessionId, TurnId),
    request: &ApprovalRequested,
    time: Timestamp,
) -> ApprovalRow {
    ApprovalRow {
        id: request.approval_id,
        session_id,
        turn_id,
        tool_use_id: request.tool_use_id,
        tool_name: request.tool_name.clone(),
        input_summary: request.input_summary.clone(),
        input_bytes: request.input_bytes,
        input_sha256: request.input_sha256.clone(),
        state: ApprovalState::Pending,
        requested_at: time,
        resolved_at: None,
        by: None,
        comment: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::approval::ApprovalResolved;
    use crate::body::delegate::{DelegateCompleted, DelegateFailed};
    use crate::body::subagent::{SubagentCompleted, SubagentContext, SubagentFailed};
    use crate::body::tool::{ToolCompleted, ToolFailed};
    use crate::body::turn::TurnCompleted;
    use crate::code::{
        AgentErrorClass, Decision, DispatchOutcome, FailureMode, ToolErrorClass, ToolType,
        TurnStatus,
    };
    use crate::content::TokenUsage;
    use crate::id::{ApprovalId, EpisodeId, InvocationId, ToolUseId, Ulid};
    use crate::position::{Epoch, Seq};

    const SESSION: SessionId = SessionId(Ulid(1));

    /// Applies bodies of turn 2 at positions 1, 2, …
    fn folded(bodies: &[Body]) -> OpenWork {
        let mut work = OpenWork::default();
        for (index, body) in bodies.iter().enumerate() {
            let head = EventHead {
                position: Position::persisted(Epoch(1), Seq(index as u64 + 1)),
                kind: body.kind(),
                turn: Some(TurnId(Ulid(2))),
                actor: Actor::ORCHESTRATOR,
                suppressed: false,
            };
            work.apply(SESSION, &head, Timestamp::from_millis(7), body);
        }
        work
    }

    fn called(id: u128) -> Body {
        Body::ToolCalled(ToolCalled {
            upstream_id: None,
            tool_use_id: ToolUseId(Ulid(id)),
            tool_name: "clock".into(),
            tool_type: ToolType::Function,
            input_summary: "{}".into(),
        })
    }

    fn worker(id: u128) -> Body {
        Body::DelegateStarted(DelegateStarted {
            worker_session_id: SessionId(Ulid(id)),
            tool_use_id: ToolUseId(Ulid(3)),
            task_summary: "sums".into(),
        })
    }

    fn asked(id: u128) -> Body {
        Body::ApprovalRequested(ApprovalRequested {
            approval_id: ApprovalId(Ulid(id)),
            tool_use_id: ToolUseId(Ulid(3)),
            tool_name: "note".into(),
            input_summary: "{}".into(),
            input_truncated: false,
            input_bytes: Some(2),
            input_sha256: None,
        })
    }

    fn ids(work: &OpenWork) -> (Vec<u128>, Vec<u128>, Vec<u128>) {
        let tools = work.tools.iter().map(|tool| tool.started.tool_use_id.0.0);
        let workers = work.workers.iter();
        let workers = workers.map(|worker| worker.started.worker_session_id.0.0);
        let approvals = work.approvals.iter().map(|approval| approval.id.0.0);
        (tools.collect(), workers.collect(), approvals.collect())
    }

    fn agent_started(id: u128) -> Body {
        Body::SubagentStarted(SubagentStarted {
            invocation_id: InvocationId(Ulid(id)),
            sub_agent_id: "shop".into(),
            tool_use_id: ToolUseId(Ulid(id)),
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

    fn agent_completed(id: u128) -> Body {
        Body::SubagentCompleted(SubagentCompleted {
            invocation_id: InvocationId(Ulid(id)),
            sub_agent_id: "shop".into(),
            tool_use_id: ToolUseId(Ulid(id)),
            outcome: DispatchOutcome::Success,
            latency_ms: 1,
            status_events: 0,
        })
    }

    fn agent_failed(id: u128) -> Body {
        Body::SubagentFailed(SubagentFailed {
            invocation_id: InvocationId(Ulid(id)),
            sub_agent_id: "shop".into(),
            tool_use_id: ToolUseId(Ulid(id)),
            latency_ms: 1,
            error_class: AgentErrorClass::Timeout,
            status_events: 0,
        })
    }

    fn tool_completed(id: u128) -> Body {
        Body::ToolCompleted(ToolCompleted {
            upstream_id: None,
            tool_use_id: ToolUseId(Ulid(id)),
            tool_name: "clock".into(),
            tool_type: ToolType::Function,
            duration_ms: 1,
            result_summary: String::new(),
            result_sha256: String::new(),
        })
    }

    fn worker_failed(id: u128) -> Body {
        Body::DelegateFailed(DelegateFailed {
            worker_session_id: SessionId(Ulid(id)),
            failure_mode: FailureMode::Error,
        })
    }

    #[test]
    fn end_closes_the_work_that_it_names() {
        let sub_agents = |work: &OpenWork| -> Vec<u128> {
            let agents = work.sub_agents.iter();
            agents
                .map(|agent| agent.started.invocation_id.0.0)
                .collect()
        };
        let mut events = vec![
            called(3),
            called(4),
            worker(8),
            worker(9),
            agent_started(5),
            agent_started(6),
            agent_started(7),
        ];
        assert_eq!(sub_agents(&folded(&events)), [5, 6, 7]);
        events.extend([
            tool_completed(3),
            worker_failed(8),
            agent_completed(5),
            agent_failed(6),
        ]);
        let work = folded(&events);
        assert_eq!(ids(&work), (vec![4], vec![9], vec![]));
        assert_eq!(sub_agents(&work), [7]);
        // Ends of other work close nothing.
        events.extend([
            tool_completed(99),
            worker_failed(99),
            agent_completed(99),
            agent_failed(99),
        ]);
        assert_eq!(folded(&events), work);
    }

    #[test]
    fn end_of_another_turn_closes_nothing() {
        let mut work = folded(&[called(3), agent_started(5), worker(8)]);
        let before = work.clone();
        let end = Body::TurnCompleted(completed(TurnStatus::Ok));
        for (turn, is_same) in [(1, false), (2, true)] {
            let head = EventHead {
                position: Position::persisted(Epoch(1), Seq(9)),
                kind: end.kind(),
                turn: Some(TurnId(Ulid(turn))),
                actor: Actor::ORCHESTRATOR,
                suppressed: false,
            };
            work.apply(SESSION, &head, Timestamp::from_millis(9), &end);
            let expected = match is_same {
                true => OpenWork::default(),
                false => before.clone(),
            };
            assert_eq!(work, expected);
        }
    }

    fn completed(status: TurnStatus) -> TurnCompleted {
        TurnCompleted {
            status,
            usage: TokenUsage::default(),
            error: None,
            reason: None,
            partial: None,
            paused: None,
        }
    }

    #[test]
    fn work_is_open_from_its_start_to_its_end() {
        let mut events = vec![
            called(3),
            called(4),
            worker(8),
            worker(9),
            asked(5),
            asked(6),
        ];
        let all = (vec![3, 4], vec![8, 9], vec![5, 6]);
        assert_eq!(ids(&folded(&events)), all);
        events.extend([
            Body::ToolFailed(ToolFailed {
                upstream_id: None,
                tool_use_id: ToolUseId(Ulid(3)),
                tool_name: "clock".into(),
                tool_type: ToolType::Function,
                error_class: ToolErrorClass::Cancelled,
                called: true,
            }),
            Body::DelegateCompleted(DelegateCompleted {
                worker_session_id: SessionId(Ulid(8)),
                success: true,
                summary: String::new(),
            }),
            Body::ApprovalResolved(ApprovalResolved {
                approval_id: ApprovalId(Ulid(5)),
                decision: Decision::Approve,
                by: "user".into(),
                comment: None,
            }),
        ]);
        let rest = (vec![4], vec![9], vec![6]);
        assert_eq!(ids(&folded(&events)), rest);
        events.push(Body::TurnCompleted(completed(TurnStatus::Paused)));
        let work = folded(&events);
        assert_eq!(ids(&work), (vec![], vec![], vec![6]), "approvals stay");
        assert_eq!(work.approvals[0].requested_at, Timestamp::from_millis(7));
    }
}
