//! Reads the model calls of a stored session, each with its agent, the agent's input and the
//! model's answer.
//!
//! The log has the start and end of each attempt of a call; the stored message has the text of the
//! answer. The calls of a sub-agent are grouped by invocation. Two invocations of one sub-agent may
//! run in parallel; the trace span of their events tells them apart.

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
/// The prefix of the model name in calls that a template of the pack answers instead of a model.
const TEMPLATE_MODEL_PREFIX: &str = "template:";

/// One attempt of one model call; [`script_writer`](super::script_writer) writes a rule for it.
#[derive(Debug)]
pub(super) struct CallAttempt<'s> {
    pub(super) agent: String,
    /// The number of the call among the [`AgentCalls`], from 1.
    pub(super) call: u32,
    /// The number of the attempt in its call, from 1.
    pub(super) attempt: u32,
    /// The text that the agent answers: the user's message, or the orchestrator's question.
    pub(super) input: String,
    /// The number of inputs that the model sees, including `input`; 0 if the log does not have the
    /// start of the turn.
    pub(super) input_count: usize,
    pub(super) locale: String,
    pub(super) started_at: Timestamp,
    /// The model's answer, complete or partial; `None` if none is stored.
    pub(super) message: Option<&'s StoredMessage>,
    pub(super) end: AttemptEnd,
}

/// How a [`CallAttempt`] ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AttemptEnd {
    /// The model's answer is complete.
    Completed(StopReason, TokenUsage),
    /// The provider or the connection to it failed.
    Failed {
        class: LlmErrorClass,
        /// True if a further attempt followed.
        is_retried: bool,
    },
    /// The answer never ended: the attempt was cancelled, its sub-agent timed out, or the log has
    /// no end of it.
    Stalled,
}

/// The model calls of one agent in one turn: of the orchestrator, or of one invocation of a
/// sub-agent.
struct AgentCalls {
    turn: TurnId,
    agent: String,
    /// The trace span of a sub-agent's invocation; `None` for the orchestrator.
    span: Option<String>,
    /// Indexes into [`CallReader::attempts`], in the order of the calls.
    attempts: Vec<usize>,
    /// Set by [`CallReader::identify_invocations`]; `None` for the orchestrator.
    invocation_id: Option<InvocationId>,
}

/// Reads every [`CallAttempt`] of a [`StoredSession`], in the order they started.
pub(super) fn read(stored: &StoredSession) -> Vec<CallAttempt<'_>> {
    let mut reader = CallReader {
        stored,
        turns: HashMap::new(),
        agent_calls: Vec::new(),
        attempts: Vec::new(),
        open_attempts: HashMap::new(),
    };
    for event in &stored.events {
        reader.apply(event);
    }
    reader.finish()
}

/// Collects [`CallAttempt`]s from the events of a session, in order.
struct CallReader<'s> {
    stored: &'s StoredSession,
    turns: HashMap<TurnId, &'s TurnStarted>,
    agent_calls: Vec<AgentCalls>,
    attempts: Vec<CallAttempt<'s>>,
    /// Indexes into `attempts`, for attempts without an end.
    open_attempts: HashMap<CallId, usize>,
}

impl<'s> CallReader<'s> {
    fn apply(&mut self, event: &'s Event) {
        let Some(turn) = event.turn_id else {
            return;
        };
        match &event.body {
            Body::TurnStarted(started) => drop(self.turns.insert(turn, started)),
            Body::LlmCallStarted(started) if !started.model.starts_with(TEMPLATE_MODEL_PREFIX) => {
                self.start_attempt(turn, event, started);
            }
            Body::LlmCallCompleted(completed) => {
                let end = AttemptEnd::Completed(completed.stop_reason, completed.usage);
                self.end_attempt(completed.call_id, Some(completed.message_id), end);
            }
            Body::LlmCallFailed(failed) => {
                let end = match failed.error_class {
                    LlmErrorClass::Cancelled => AttemptEnd::Stalled,
                    class => AttemptEnd::Failed {
                        class,
                        is_retried: false,
                    },
                };
                self.end_attempt(failed.call_id, failed.message_id, end);
            }
            Body::SubagentFailed(failed) if failed.error_class == AgentErrorClass::Timeout => {
                self.mark_timeout_as_stall(turn, &failed.sub_agent_id);
            }
            Body::TurnCancelled(_) => self.add_calls_after_tools(turn),
            _ => {}
        }
    }

    /// Adds the attempt that `event`, an `llm.call_started`, starts.
    fn start_attempt(&mut self, turn: TurnId, event: &Event, started: &CallStarted) {
        let agent = match (event.actor.kind(), event.actor.name()) {
            (ActorKind::Subagent, Some(name)) => name.to_owned(),
            _ => ORCHESTRATOR.to_owned(),
        };
        // The orchestrator's calls of one turn are in several spans, a sub-agent's in one.
        let span = event.trace.as_ref().map(|trace| trace.span_id.clone());
        let span = span.filter(|_| agent != ORCHESTRATOR);
        let is_same =
            |other: &AgentCalls| other.turn == turn && other.agent == agent && other.span == span;
        let agent_index = self.agent_calls.iter().position(is_same);
        let agent_index = agent_index.unwrap_or_else(|| {
            self.agent_calls.push(AgentCalls {
                turn,
                agent: agent.clone(),
                span,
                attempts: Vec::new(),
                invocation_id: None,
            });
            self.agent_calls.len() - 1
        });
        let previous = self.agent_calls[agent_index].attempts.last();
        let call = match previous.map(|index| &mut self.attempts[*index]) {
            Some(previous) if started.attempt > 1 => {
                if let AttemptEnd::Failed { is_retried, .. } = &mut previous.end {
                    *is_retried = true;
                }
                previous.call
            }
            Some(previous) => previous.call + 1,
            None => 1,
        };
        let attempt_index = self.attempts.len();
        self.open_attempts.insert(started.call_id, attempt_index);
        self.push_attempt(agent_index, agent, (call, started.attempt), event.timestamp);
    }

    /// Adds an attempt that is stalled until [`Self::end_attempt`] sets its end.
    fn push_attempt(
        &mut self,
        agent_index: usize,
        agent: String,
        (call, attempt): (u32, u32),
        started_at: Timestamp,
    ) {
        self.agent_calls[agent_index]
            .attempts
            .push(self.attempts.len());
        self.attempts.push(CallAttempt {
            agent,
            call,
            attempt,
            input: String::new(),
            input_count: 0,
            locale: String::new(),
            started_at,
            message: None,
            end: AttemptEnd::Stalled,
        });
    }

    fn end_attempt(&mut self, id: CallId, message: Option<MessageId>, end: AttemptEnd) {
        if let Some(index) = self.open_attempts.remove(&id) {
            self.attempts[index].end = end;
            self.attempts[index].message = message.and_then(|id| self.stored.message(id));
        }
    }

    /// Turns the timeout of a call into a stall if its sub-agent timed out: the model was still
    /// answering when the sub-agent's time was over, and did not fail by itself.
    fn mark_timeout_as_stall(&mut self, turn: TurnId, agent: &str) {
        let timed_out = self.agent_calls.iter();
        let timed_out = timed_out.filter(|calls| calls.turn == turn && calls.agent == agent);
        for index in timed_out.filter_map(|calls| calls.attempts.last()) {
            let end = &mut self.attempts[*index].end;
            if matches!(end, AttemptEnd::Failed { class, .. } if *class == LlmErrorClass::Timeout) {
                *end = AttemptEnd::Stalled;
            }
        }
    }

    /// Adds a stalled call for each agent that waited for its tools when the turn was cancelled. In
    /// a run of the script the tools may end before the cancel, and the agent then calls its model
    /// again.
    fn add_calls_after_tools(&mut self, turn: TurnId) {
        for agent_index in 0..self.agent_calls.len() {
            let calls = &self.agent_calls[agent_index];
            let last = calls.attempts.last().filter(|_| calls.turn == turn);
            if let Some(last) = last.map(|index| &self.attempts[*index])
                && let AttemptEnd::Completed(StopReason::ToolUse, _) = last.end
            {
                let (agent, next_call) = (last.agent.clone(), last.call + 1);
                self.push_attempt(agent_index, agent, (next_call, 1), last.started_at);
            }
        }
    }

    /// Sets input and locale of each attempt. Attempts of a turn whose start is not in the log are
    /// left out, because their input is unknown.
    fn finish(mut self) -> Vec<CallAttempt<'s>> {
        self.identify_invocations();
        for calls in &self.agent_calls {
            let Some(started) = self.turns.get(&calls.turn) else {
                continue;
            };
            let (input, input_count) = match calls.agent.as_str() {
                ORCHESTRATOR => (
                    text_of(&started.input, ""),
                    self.user_message_count(calls.turn, started),
                ),
                agent => self.sub_agent_input(agent, calls),
            };
            for index in &calls.attempts {
                let attempt = &mut self.attempts[*index];
                attempt.input.clone_from(&input);
                attempt.input_count = input_count;
                attempt.locale.clone_from(&started.locale);
            }
        }
        self.attempts.retain(|attempt| attempt.input_count > 0);
        self.attempts
    }

    /// Sets the invocation id of each sub-agent's calls. The messages of an invocation have its id;
    /// an invocation without messages gets the first id of its sub-agent in the turn that is not
    /// taken.
    fn identify_invocations(&mut self) {
        let started = self.stored.events.iter();
        let started = started.filter_map(|event| match &event.body {
            Body::SubagentStarted(started) => Some((
                event.turn_id?,
                started.sub_agent_id.as_str(),
                started.invocation_id,
            )),
            _ => None,
        });
        let started: Vec<(TurnId, &str, InvocationId)> = started.collect();
        for calls in &mut self.agent_calls {
            let attempts = calls.attempts.iter().map(|index| &self.attempts[*index]);
            let mut messages = attempts.filter_map(|attempt| attempt.message);
            let id_in_message = messages.find_map(invocation_id);
            let found = started
                .iter()
                .find(|(_, _, id)| Some(id.to_string()) == id_in_message);
            calls.invocation_id = found.map(|(_, _, id)| *id);
        }
        for agent_index in 0..self.agent_calls.len() {
            let calls = &self.agent_calls[agent_index];
            let is_free = |id| {
                let mut all = self.agent_calls.iter();
                all.all(|other| other.invocation_id != Some(id))
            };
            let mut free = started.iter().filter(|(turn, agent, id)| {
                *turn == calls.turn && *agent == calls.agent && is_free(*id)
            });
            let id = calls.invocation_id;
            let id = id.or_else(|| free.next().map(|(_, _, id)| *id));
            self.agent_calls[agent_index].invocation_id = id;
        }
    }

    /// The input of a sub-agent's invocation, and the number of inputs that its model sees: those
    /// of earlier turns, and this input.
    fn sub_agent_input(&self, agent: &str, calls: &AgentCalls) -> (String, usize) {
        let messages = self.stored.sub_agents.get(agent).into_iter().flatten();
        let inputs = messages.filter(|stored| stored.message.role == Role::User);
        let inputs: Vec<&StoredMessage> = inputs.collect();
        let id = calls.invocation_id.map(|id| id.to_string());
        let mut candidates = inputs.iter();
        let input = candidates.find(|input| invocation_id(input) == id);
        let text = input.map(|input| input.message.text()).unwrap_or_default();
        let earlier = inputs.iter();
        let earlier = earlier.take_while(|input| input.message.turn_id != calls.turn);
        (text, earlier.count() + 1)
    }

    /// The number of user messages that the orchestrator's model sees in `turn`, including that of
    /// the turn.
    fn user_message_count(&self, turn: TurnId, started: &TurnStarted) -> usize {
        let messages = self.stored.orchestrator.iter();
        let earlier = messages.take_while(|stored| stored.message.turn_id != turn);
        let omitted = usize::try_from(started.history_omitted).unwrap_or(usize::MAX);
        let visible = earlier.skip(omitted);
        let user_messages = visible.filter(|stored| stored.message.role == Role::User);
        user_messages.count() + 1
    }
}

/// The invocation id in the metadata of a sub-agent's message.
fn invocation_id(stored: &StoredMessage) -> Option<String> {
    stored.message.metadata.get_str("invocation_id")
}
