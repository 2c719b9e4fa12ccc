//! The model calls of a session, in the order they began: who asked, what they had been asked, and
//! what the model said.
//!
//! The log tells when a call began and how it ended; the message that ended with it has the words.
//! Calls of a sub-agent belong to an invocation, which is told by the span it worked in: two of one
//! sub-agent may run at once.

use std::collections::HashMap;

use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::turn::TurnStarted;
use turnwire_event::code::{AgentErrorClass, LlmErrorClass};
use turnwire_event::row::StoredMessage;
use turnwire_event::{
    ActorKind, Body, CallId, ContentBlock, Event, InvocationId, MessageId, Role, StopReason,
    Timestamp, TokenUsage, TurnId,
};

use super::stored_session::StoredSession;

/// The agent that speaks, as scripts name it.
const SPEAKER: &str = "orchestrator";
/// What stands before the name of what speaks when no model can.
const TEMPLATE: &str = "template:";

/// One try of one call.
#[derive(Debug)]
pub(super) struct RecordedCall<'s> {
    pub(super) agent: String,
    /// Which call of the invocation, from 1.
    pub(super) call: u32,
    /// Which try of it, from 1.
    pub(super) attempt: u32,
    /// What the agent had been asked.
    pub(super) says: String,
    /// How often it had been asked something in what its model was shown, this with it.
    pub(super) turn: usize,
    pub(super) locale: String,
    pub(super) began: Timestamp,
    /// What the model wrote, as far as it is kept.
    pub(super) message: Option<&'s StoredMessage>,
    pub(super) end: CallEnd,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CallEnd {
    /// The model had said all it had to say.
    Stop(StopReason, TokenUsage),
    /// It failed; whether it was tried again.
    Failed(LlmErrorClass, RetryFlag),
    /// It was stopped while it went on, or has no end.
    Stalled,
}

/// Whether a call that failed was tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryFlag {
    Yes,
    No,
}

/// An agent at work in a turn.
struct Work {
    turn: TurnId,
    agent: String,
    span: Option<String>,
    /// Its calls, by their places.
    calls: Vec<usize>,
    invocation: Option<InvocationId>,
}

/// The calls of `stored`, in the order they began.
pub(super) fn of(stored: &StoredSession) -> Vec<RecordedCall<'_>> {
    let mut reading = CallReader {
        stored,
        turns: HashMap::new(),
        works: Vec::new(),
        calls: Vec::new(),
        open: HashMap::new(),
    };
    for event in &stored.events {
        reading.take(event);
    }
    reading.finish()
}

struct CallReader<'s> {
    stored: &'s StoredSession,
    turns: HashMap<TurnId, &'s TurnStarted>,
    works: Vec<Work>,
    calls: Vec<RecordedCall<'s>>,
    open: HashMap<CallId, usize>,
}

impl<'s> CallReader<'s> {
    fn take(&mut self, event: &'s Event) {
        let Some(turn) = event.turn_id else {
            return;
        };
        match &event.body {
            Body::TurnStarted(started) => {
                self.turns.insert(turn, started);
            }
            Body::LlmCallStarted(call) if !call.model.starts_with(TEMPLATE) => {
                self.start(turn, event, call);
            }
            Body::LlmCallCompleted(end) => {
                let stop = CallEnd::Stop(end.stop_reason, end.usage);
                self.end(end.call_id, Some(end.message_id), stop);
            }
            Body::LlmCallFailed(end) => {
                let call_end = match end.error_class {
                    LlmErrorClass::Cancelled => CallEnd::Stalled,
                    class => CallEnd::Failed(class, RetryFlag::No),
                };
                self.end(end.call_id, end.message_id, call_end);
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
            _ => SPEAKER.to_owned(),
        };
        // What the one that speaks does stands in several spans.
        let span = event.trace.as_ref().map(|trace| trace.span_id.clone());
        let span = span.filter(|_| agent != SPEAKER);
        let is_same = |work: &Work| work.turn == turn && work.agent == agent && work.span == span;
        let work = match self.works.iter().position(is_same) {
            Some(work) => work,
            None => {
                self.works.push(Work {
                    turn,
                    agent: agent.clone(),
                    span,
                    calls: Vec::new(),
                    invocation: None,
                });
                self.works.len() - 1
            }
        };
        let at = self.calls.len();
        let before = self.works[work].calls.last().copied();
        let call = match before.map(|before| &mut self.calls[before]) {
            Some(before) if started.attempt > 1 => {
                if let CallEnd::Failed(class, _) = before.end {
                    before.end = CallEnd::Failed(class, RetryFlag::Yes);
                }
                before.call
            }
            Some(before) => before.call + 1,
            None => 1,
        };
        self.works[work].calls.push(at);
        self.open.insert(started.call_id, at);
        self.calls.push(RecordedCall {
            agent,
            call,
            attempt: started.attempt,
            says: String::new(),
            turn: 0,
            locale: String::new(),
            began: event.timestamp,
            message: None,
            end: CallEnd::Stalled,
        });
    }

    fn end(&mut self, id: CallId, message: Option<MessageId>, end: CallEnd) {
        let Some(at) = self.open.remove(&id) else {
            return;
        };
        self.calls[at].end = end;
        self.calls[at].message = message.and_then(|id| self.stored.message(id));
    }

    /// A sub-agent had no time left: whatever its model was about to say did not come.
    fn time_out(&mut self, turn: TurnId, agent: &str) {
        let late = self
            .works
            .iter()
            .filter(|work| work.turn == turn && work.agent == agent);
        for last in late.filter_map(|work| work.calls.last()) {
            let call = &mut self.calls[*last];
            if matches!(call.end, CallEnd::Failed(LlmErrorClass::Timeout, _)) {
                call.end = CallEnd::Stalled;
            }
        }
    }

    /// A turn was stopped: whoever waited for tools then would have been asked again by now.
    fn cancel(&mut self, turn: TurnId) {
        let works = self.works.iter_mut().filter(|work| work.turn == turn);
        for work in works {
            let Some(last) = work.calls.last().map(|last| &self.calls[*last]) else {
                continue;
            };
            if !matches!(last.end, CallEnd::Stop(StopReason::ToolUse, _)) {
                continue;
            }
            work.calls.push(self.calls.len());
            self.calls.push(RecordedCall {
                agent: last.agent.clone(),
                call: last.call + 1,
                attempt: 1,
                says: String::new(),
                turn: 0,
                locale: String::new(),
                began: last.began,
                message: None,
                end: CallEnd::Stalled,
            });
        }
    }

    /// Puts to each call what its agent had been asked.
    fn finish(mut self) -> Vec<RecordedCall<'s>> {
        self.find_invocations();
        for work in &self.works {
            let Some(started) = self.turns.get(&work.turn) else {
                continue;
            };
            let (says, turn) = match work.agent.as_str() {
                SPEAKER => (text(&started.input), self.heard(work.turn, started)),
                agent => self.question(agent, work),
            };
            for at in &work.calls {
                let call = &mut self.calls[*at];
                call.says.clone_from(&says);
                call.turn = turn;
                call.locale.clone_from(&started.locale);
            }
        }
        // Of a turn that began before the log does, nobody knows what was asked.
        let is_seen: Vec<bool> = {
            let mut seen = vec![false; self.calls.len()];
            for work in &self.works {
                let is = self.turns.contains_key(&work.turn);
                work.calls.iter().for_each(|at| seen[*at] = is);
            }
            seen
        };
        let calls = self.calls.into_iter().zip(is_seen);
        calls
            .filter_map(|(call, known)| known.then_some(call))
            .collect()
    }

    /// Which invocation a sub-agent's work was: its messages say so; without one, the first that
    /// nobody else was.
    fn find_invocations(&mut self) {
        let invocations: Vec<(TurnId, &str, InvocationId)> = self
            .stored
            .events
            .iter()
            .filter_map(|event| match &event.body {
                Body::SubagentStarted(one) => {
                    Some((event.turn_id?, one.sub_agent_id.as_str(), one.invocation_id))
                }
                _ => None,
            })
            .collect();
        for work in &mut self.works {
            let messages = work.calls.iter().filter_map(|at| self.calls[*at].message);
            let marks = messages.filter_map(|one| invocation(one).map(str::to_owned));
            let mark = marks.into_iter().next();
            let named = invocations
                .iter()
                .find(|(_, _, id)| Some(id.to_string()) == mark);
            work.invocation = named.map(|(_, _, id)| *id);
        }
        for at in 0..self.works.len() {
            if self.works[at].invocation.is_some() {
                continue;
            }
            let free =
                |id: &InvocationId| self.works.iter().all(|work| work.invocation != Some(*id));
            let work = &self.works[at];
            let mut same = invocations
                .iter()
                .filter(|(turn, agent, _)| *turn == work.turn && *agent == work.agent);
            let invocation = same.find(|(_, _, id)| free(id)).map(|(_, _, id)| *id);
            self.works[at].invocation = invocation;
        }
    }

    /// What a sub-agent had been asked, and how often it had been by then: of its past it is shown
    /// what was before the turn.
    fn question(&self, agent: &str, work: &Work) -> (String, usize) {
        let own = self.stored.own.get(agent).into_iter().flatten();
        let questions: Vec<&StoredMessage> =
            own.filter(|one| one.message.role == Role::User).collect();
        let mark = work.invocation.map(|id| id.to_string());
        let this = questions
            .iter()
            .find(|one| invocation(one) == mark.as_deref());
        let says = this.map(|one| one.message.text()).unwrap_or_default();
        let before = questions
            .iter()
            .take_while(|one| one.message.turn_id != work.turn);
        (says, before.count() + 1)
    }

    /// How often the person had spoken in what the one that speaks was shown.
    fn heard(&self, turn: TurnId, started: &TurnStarted) -> usize {
        let before: Vec<&StoredMessage> = self
            .stored
            .heard
            .iter()
            .take_while(|one| one.message.turn_id != turn)
            .collect();
        let omitted = usize::try_from(started.history_omitted).unwrap_or(usize::MAX);
        let visible = before.iter().skip(omitted);
        visible.filter(|one| one.message.role == Role::User).count() + 1
    }
}

/// The invocation that a message is of.
fn invocation(stored: &StoredMessage) -> Option<&str> {
    stored.message.metadata.get("invocation_id")?.as_str()
}

fn text(blocks: &[ContentBlock]) -> String {
    blocks.iter().filter_map(ContentBlock::as_text).collect()
}
