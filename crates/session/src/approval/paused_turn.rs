//! Questions whether a tool may act: what a paused turn has asked, what was answered, and what
//! becomes of a question when the conversation goes on without an answer.

use std::sync::Arc;

use serde_json::{Map, Value};
use turnwire_event::body::approval::{Answer, Resolved};
use turnwire_event::code::{ApprovalState, Decision, ToolState, ToolType, TurnStatus};
use turnwire_event::fold::rows;
use turnwire_event::port::Resumed;
use turnwire_event::row::{ApprovalRow, NewMessage, RowChange, Scope, TurnRow};
use turnwire_event::{
    Actor, ApprovalId, Body, ContentBlock, Kept, Message, MessageId, MessageStatus, Role,
    SessionId, ToolUseId, Trace, TurnId,
};
use turnwire_log::{Draft, Store};

use crate::error::Error;
use crate::live::session::LiveSession;

/// Who answers where no person does.
const SYSTEM: &str = "system";
/// Who answers otherwise.
const USER: &str = "user";

/// What a model is told of a tool that nobody has allowed or refused.
const NOBODY: &str = "not executed: no one allowed it.";
/// Of one that was allowed beside one that nobody answered for.
const TOO_LATE: &str = "not executed: the person went on with something else.";
/// Of one that was refused beside such a one.
const SAID_NO: &str = "not executed: the person said no.";

/// What a person says to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// Which question.
    pub approval_id: ApprovalId,
    /// The answer.
    pub decision: Decision,
    /// What they say with it.
    pub comment: Option<String>,
}

/// What a turn has asked, as it stands.
pub(crate) struct PausedTurn {
    /// The turn that asked.
    pub(crate) turn: TurnRow,
    /// Its questions, in the order they were asked.
    pub(crate) questions: Vec<ApprovalRow>,
    /// The kinds of its tools.
    types: Vec<(ToolUseId, ToolType)>,
    /// The turn that goes on with it, if there is one.
    pub(crate) leg: Option<TurnId>,
}

impl PausedTurn {
    /// Reads it.
    pub(crate) fn read(store: &dyn Store, turn: TurnRow) -> Result<Self, Error> {
        let questions = store.approvals(turn.id)?;
        let tools = store.turn_tool_calls(turn.id)?.into_iter();
        // It comes with the last answer. One that came between the two reads is not told yet.
        let leg = store.leg(turn.id)?.map(|leg| leg.id);
        let open = questions.iter().any(is_open);
        let leg = leg.filter(|_| !open);
        Ok(Self {
            questions,
            types: tools
                .map(|tool| (tool.tool_use_id, tool.tool_type))
                .collect(),
            leg,
            turn,
        })
    }

    /// Takes the words in; gives those that say something new. All are good, or none is taken.
    pub(crate) fn take(
        &mut self,
        words: Vec<ApprovalDecision>,
    ) -> Result<Vec<ApprovalDecision>, Error> {
        let paused = is_paused(&self.turn);
        if self.questions.is_empty() && !paused {
            return Err(Error::TurnNotPaused);
        }
        let mut fresh = Vec::new();
        for word in words {
            let question = self
                .questions
                .iter_mut()
                .find(|question| question.id == word.approval_id)
                .ok_or(Error::ApprovalNotFound)?;
            let state = state_of(word.decision);
            if question.state == ApprovalState::Pending {
                if !paused {
                    return Err(Error::TurnNotPaused);
                }
                question.state = state;
                question.by = Some(USER.to_owned());
                question.comment.clone_from(&word.comment);
                fresh.push(word);
            } else if question.state != state || question.by.as_deref() != Some(USER) {
                return Err(Error::ApprovalResolved(question.id));
            }
        }
        Ok(fresh)
    }

    /// How many questions have no answer.
    pub(crate) fn remaining(&self) -> usize {
        self.questions.iter().filter(|row| is_open(row)).count()
    }

    /// What the turn that goes on is told.
    pub(crate) fn resumed(&self) -> Resumed {
        let answer = |question: &ApprovalRow| {
            let of_tool = |(id, _): &&(ToolUseId, ToolType)| *id == question.tool_use_id;
            let tool_type = self.types.iter().find(of_tool);
            Answer {
                approval_id: question.id,
                tool_use_id: question.tool_use_id,
                tool_name: question.tool_name.clone(),
                tool_type: tool_type.map_or(ToolType::Function, |(_, tool_type)| *tool_type),
                decision: match question.state {
                    ApprovalState::Approved => Decision::Approve,
                    ApprovalState::Rejected | ApprovalState::Pending => Decision::Reject,
                },
                comment: question.comment.clone(),
            }
        };
        Resumed {
            turn_id: self.turn.id,
            answers: self.questions.iter().map(answer).collect(),
        }
    }
}

fn is_open(question: &ApprovalRow) -> bool {
    question.state == ApprovalState::Pending
}

fn state_of(decision: Decision) -> ApprovalState {
    match decision {
        Decision::Approve => ApprovalState::Approved,
        Decision::Reject => ApprovalState::Rejected,
    }
}

/// Whether a turn has ended to wait for a person.
fn is_paused(turn: &TurnRow) -> bool {
    let status = turn
        .terminal
        .as_ref()
        .and_then(|(_, payload)| payload.get("status"));
    let paused = serde_json::to_value(TurnStatus::Paused).ok();
    status.is_some() && status == paused.as_ref()
}

/// The event of an answer, which belongs to no turn.
fn resolved(actor: Actor, answer: Resolved) -> Draft {
    let body = Body::ApprovalResolved(answer);
    let mut draft = Draft::new(None, actor, body);
    draft.rows = rows(None, &draft.actor, &draft.body);
    draft
}

/// The event of what a person has said.
pub(crate) fn answered(word: ApprovalDecision, trace: Option<&Arc<Trace>>) -> Draft {
    let answer = Resolved {
        approval_id: word.approval_id,
        decision: word.decision,
        by: USER.to_owned(),
        comment: word.comment,
    };
    let mut draft = resolved(Actor::USER, answer);
    draft.trace = trace.cloned();
    draft
}

/// The questions of turns that have one without an answer, answered ones among them.
pub(crate) fn left_open(store: &dyn Store, id: SessionId) -> Result<Vec<ApprovalRow>, Error> {
    let mut turns: Vec<TurnId> = Vec::new();
    for question in store.open_approvals(id)? {
        if !turns.contains(&question.turn_id) {
            turns.push(question.turn_id);
        }
    }
    let mut asked = Vec::new();
    for turn in turns {
        asked.extend(store.approvals(turn)?);
    }
    Ok(asked)
}

/// A turn starts while questions are open: they are taken back, unless they are those it goes on
/// with. Gives the events of it and what the model is told in their tools' place.
pub(crate) fn pass_over(
    live: &LiveSession,
    asked: &[ApprovalRow],
    resumed: Option<&Resumed>,
) -> (Vec<Draft>, Vec<Message>) {
    let answered = resumed.map(|resumed| resumed.turn_id);
    let mut drafts = Vec::new();
    let mut messages = Vec::new();
    let mut rows = Vec::new();
    for question in asked.iter().filter(|row| Some(row.turn_id) != answered) {
        let message = unused(live, question);
        rows.push(put(&message));
        messages.push(message);
        match question.state {
            ApprovalState::Pending => drafts.push(resolved(
                Actor::SYSTEM,
                Resolved {
                    approval_id: question.id,
                    decision: Decision::Reject,
                    by: SYSTEM.to_owned(),
                    comment: None,
                },
            )),
            // Allowed, but not all that was asked with it: nothing goes on with it now.
            ApprovalState::Approved => rows.push(cancelled(question)),
            ApprovalState::Rejected => {}
        }
    }
    if let Some(first) = drafts.first_mut() {
        first.rows.extend(rows);
    }
    (drafts, messages)
}

fn cancelled(question: &ApprovalRow) -> RowChange {
    RowChange::ToolCall {
        tool_use_id: question.tool_use_id,
        turn_id: question.turn_id,
        tool_name: question.tool_name.clone(),
        // Known since the tool was asked for, and kept.
        tool_type: ToolType::Function,
        status: ToolState::Cancelled,
    }
}

fn put(message: &Message) -> RowChange {
    let put = NewMessage {
        id: message.id,
        role: message.role,
        content: message.content.clone(),
        metadata: message.metadata.clone(),
        scope: Scope::Shared,
        kept: Kept::default(),
    };
    RowChange::MessagePut(message.turn_id, put)
}

/// The result of a tool that will not act: a model's vendor wants one for every use.
fn unused(live: &LiveSession, question: &ApprovalRow) -> Message {
    let told = match question.state {
        ApprovalState::Pending => NOBODY,
        ApprovalState::Approved => TOO_LATE,
        ApprovalState::Rejected => SAID_NO,
    };
    Message {
        kept: Kept::default(),
        id: MessageId(live.house.mint.ulid()),
        session_id: live.id,
        turn_id: question.turn_id,
        role: Role::Tool,
        status: MessageStatus::Complete,
        content: vec![ContentBlock::ToolResult {
            tool_use_id: question.tool_use_id,
            content: Value::from(told),
            is_error: true,
        }],
        model: None,
        stop_reason: None,
        usage: None,
        created_at: live.house.clock.now(),
        metadata: Map::new(),
    }
}
