//! The model calls of a session in the order they started: the agent, its input, and the model's
//! answer.
//!
//! The log has the start and end of a call; the message that ended with it has the text. Calls of a
//! sub-agent belong to an invocation, identified by its span: two invocations of one sub-agent may
//! run in parallel.

use std::collections::HashMap;

use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::turn::TurnStarted;
use turnwire_event::code::{AgentErrorClass, LlmErrorClass};
use turnwire_event::row::StoredMessage;
use turnwire_event::{
    ActorKind, Body, CallId, Event, InvocationId, MessageId, Role, StopReason, Timestamp,
    TokenUsage, TurnId,
};

use super::stored_session::StoredSession;
use crate::terminal::wording::text_of;

/// The name of the orchestrator in scripts.
const ORCHESTRATOR: &str = "orchestrator";
/// The prefix of the model name in calls that a template answers.
const TEMPLATE: &str = "template:";

/// One attempt of one model call, for [`script_writer`](super::script_writer).
#[derive(Debug)]
pub(super) struct RecordedCall<'s> {
    pub(super) agent: String,
    /// The number of the call in its invocation, from 1.
    pub(super) call: u32,
    /// The number of the attempt, from 1.
    pub(super) attempt: u32,
    /// The input that the agent answers: the user's message, or the orchestrator's question.
    pub(super) says: String,
    /// The number of inputs that the model sees, this one included; 0 if the turn is unknown.
    pub(super) turn: usize,
    pub(super) locale: String,
    pub(super) began: Timestamp,
    /// The model's answer, as far as it is stored.
    pub(super) message: Option<&'s StoredMessage>,
    pub(super) end: CallEnd,
}

/// How a [`RecordedCall`] ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CallEnd {
    /// The model's answer is complete.
    Stop(StopReason, TokenUsage),
    /// The provider failed, or the connection to it.
    Failed {
        class: LlmErrorClass,
        is_retried: bool,
    },
    /// The call was stopped, or has no end.
    Stalled,
}

/// An agent in a turn, with its calls.
struct Invocation {
    turn: TurnId,
    agent: String,
    span: Option<String>,
    /// Indexes of the calls.
    calls: Vec<usize>,
    id: Option<InvocationId>,
}

/// The calls of a [`StoredSession`] in the order they started.
pub(super) fn read(stored: &StoredSession) -> Vec<RecordedCall<'_>> {
    let mut reader = CallReader {
        stored,
        turns: HashMap::new(),
        invocations: Vec::new(),
        calls: Vec::new(),
        open: HashMap::new(),
    };
    for event in &stored.events {
        reader.take(event);
    }
    reader.finish()
}

struct CallReader<'s> {
    stored: &'s StoredSession,
    turns: HashMap<TurnId, &'s TurnStarted>,
    invocations: Vec<Invocation>,
    calls: Vec<RecordedCall<'s>>,
    open: HashMap<CallId, usize>,
}

impl<'s> CallReader<'s> {
    fn take(&mut self, event: &'s Event) {
        let Some(turn) = event.turn_id else {
            return;
        };
        match &event.body {
            Body::TurnStarted(started) => drop(self.turns.insert(turn, started)),
            Body::LlmCallStarted(call) if !call.model.starts_with(TEMPLATE) => {
                self.start(turn, event, call);
            }
            Body::LlmCallCompleted(end) => {
                let stop = CallEnd::Stop(end.stop_reason, end.usage);
                self.end(end.call_id, Some(end.message_id), stop);
            }
            Body::LlmCallFailed(end) => {
                let failed = match end.error_class {
                    LlmErrorClass::Cancelled => CallEnd::Stalled,
                    class => CallEnd::Failed {
                        class,
                        is_retried: false,
                    },
                };
                self.end(end.call_id, end.message_id, failed);
            }
            Body::SubagentFailed(end) if end.error_class == AgentErrorClass::Timeout => {
                self.time_out(turn, &end.sub_agent_id);
            }
            Body::TurnCancelled(_) => self.cancel(turn),
            _ => {}
        }
    }

    fn start(&mut self, turn: TurnId, event: &Event, started: &CallStarted) {
        let agent = match (event.actor.kind(), event.actor.name()) {
            (ActorKind::Subagent, Some(name)) => name.to_owned(),
            _ => ORCHESTRATOR.to_owned(),
        };
        // The orchestrator works in several spans.
        let span = event.trace.as_ref().map(|trace| trace.span_id.clone());
        let span = span.filter(|_| agent != ORCHESTRATOR);
        let is_same = |one: &Invocation| one.turn == turn && one.agent == agent && one.span == span;
        let at = self.invocations.iter().position(is_same);
        let at = at.unwrap_or_else(|| {
            self.invocations.push(Invocation {
                turn,
                agent: agent.clone(),
                span,
                calls: Vec::new(),
                id: None,
            });
            self.invocations.len() - 1
        });
        let last = self.invocations[at].calls.last();
        let call = match last.map(|last| &mut self.calls[*last]) {
            Some(last) if started.attempt > 1 => {
                if let CallEnd::Failed { is_retried, .. } = &mut last.end {
                    *is_retried = true;
                }
                last.call
            }
            Some(last) => last.call + 1,
            None => 1,
        };
        self.open.insert(started.call_id, self.calls.len());
        self.push(at, agent, (call, started.attempt), event.timestamp);
    }

    /// Adds a call without an end to an invocation.
    fn push(&mut self, at: usize, agent: String, number: (u32, u32), began: Timestamp) {
        self.invocations[at].calls.push(self.calls.len());
        let (call, attempt) = number;
        self.calls.push(RecordedCall {
            agent,
            call,
            attempt,
            says: String::new(),
            turn: 0,
            locale: String::new(),
            began,
            message: None,
            end: CallEnd::Stalled,
        });
    }

    fn end(&mut self, id: CallId, message: Option<MessageId>, end: CallEnd) {
        if let Some(at) = self.open.remove(&id) {
            self.calls[at].end = end;
            self.calls[at].message = message.and_then(|id| self.stored.message(id));
        }
    }

    /// The time of a sub-agent ran out: the rest of its model's answer did not arrive.
    fn time_out(&mut self, turn: TurnId, agent: &str) {
        let late = self.invocations.iter();
        let late = late.filter(|one| one.turn == turn && one.agent == agent);
        for last in late.filter_map(|one| one.calls.last()) {
            let end = &mut self.calls[*last].end;
            if matches!(end, CallEnd::Failed { class, .. } if *class == LlmErrorClass::Timeout) {
                *end = CallEnd::Stalled;
            }
        }
    }

    /// The turn was cancelled: an agent that waited for tools would have called its model again.
    fn cancel(&mut self, turn: TurnId) {
        for at in 0..self.invocations.len() {
            let one = &self.invocations[at];
            let last = one.calls.last().filter(|_| one.turn == turn);
            if let Some(last) = last.map(|last| &self.calls[*last])
                && let CallEnd::Stop(StopReason::ToolUse, _) = last.end
            {
                let (agent, call, began) = (last.agent.clone(), last.call + 1, last.began);
                self.push(at, agent, (call, 1), began);
            }
        }
    }

    /// Adds the agent's input to each call.
    fn finish(mut self) -> Vec<RecordedCall<'s>> {
        self.identify_invocations();
        for one in &self.invocations {
            let Some(started) = self.turns.get(&one.turn) else {
                continue;
            };
            let (says, turn) = match one.agent.as_str() {
                ORCHESTRATOR => (
                    text_of(&started.input, ""),
                    self.user_turn(one.turn, started),
                ),
                agent => self.sub_agent_input(agent, one),
            };
            for at in &one.calls {
                let call = &mut self.calls[*at];
                call.says.clone_from(&says);
                call.turn = turn;
                call.locale.clone_from(&started.locale);
            }
        }
        // The input of a turn that started before the log begins is unknown.
        self.calls.retain(|call| call.turn > 0);
        self.calls
    }

    /// Finds the id of each invocation: its messages have it; an invocation without messages takes
    /// the first id of the sub-agent that no other has.
    fn identify_invocations(&mut self) {
        let started = self.stored.events.iter();
        let started = started.filter_map(|event| match &event.body {
            Body::SubagentStarted(one) => {
                Some((event.turn_id?, one.sub_agent_id.as_str(), one.invocation_id))
            }
            _ => None,
        });
        let started: Vec<(TurnId, &str, InvocationId)> = started.collect();
        for one in &mut self.invocations {
            let mut messages = one.calls.iter().filter_map(|at| self.calls[*at].message);
            let named = messages.find_map(invocation_id);
            let named = started
                .iter()
                .find(|(_, _, id)| Some(&*id.to_string()) == named);
            one.id = named.map(|(_, _, id)| *id);
        }
        for at in 0..self.invocations.len() {
            let one = &self.invocations[at];
            let is_free = |id| self.invocations.iter().all(|other| other.id != Some(id));
            let mut free = started.iter().filter(|(turn, agent, id)| {
                *turn == one.turn && *agent == one.agent && is_free(*id)
            });
            let id = one.id.or_else(|| free.next().map(|(_, _, id)| *id));
            self.invocations[at].id = id;
        }
    }

    /// The input of a sub-agent, and its number among the inputs that the sub-agent's model sees:
    /// those before the turn, and this one.
    fn sub_agent_input(&self, agent: &str, invocation: &Invocation) -> (String, usize) {
        let own = self.stored.sub_agents.get(agent).into_iter().flatten();
        let inputs: Vec<_> = own.filter(|one| one.message.role == Role::User).collect();
        let id = invocation.id.map(|id| id.to_string());
        let mut all = inputs.iter();
        let this = all.find(|one| invocation_id(one) == id.as_deref());
        let before = inputs.iter();
        let before = before.take_while(|one| one.message.turn_id != invocation.turn);
        let says = this.map(|one| one.message.text()).unwrap_or_default();
        (says, before.count() + 1)
    }

    /// The number of user messages that the orchestrator's model sees in `turn`.
    fn user_turn(&self, turn: TurnId, started: &TurnStarted) -> usize {
        let messages = self.stored.orchestrator.iter();
        let before = messages.take_while(|one| one.message.turn_id != turn);
        let omitted = usize::try_from(started.history_omitted).unwrap_or(usize::MAX);
        let visible = before.skip(omitted);
        visible.filter(|one| one.message.role == Role::User).count() + 1
    }
}

/// The invocation of a sub-agent's message.
fn invocation_id(stored: &StoredMessage) -> Option<&str> {
    stored.message.metadata.get("invocation_id")?.as_str()
}
