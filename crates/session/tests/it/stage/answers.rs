//! Answers to what turns have asked, and what a log tells of them.

use std::path::Path;
use std::sync::Arc;

use turnwire_event::code::{Decision, ToolState};
use turnwire_event::row::ApprovalRow;
use turnwire_event::{ApprovalId, Body, Event, SessionId, TurnId};
use turnwire_session::{
    ApprovalDecision, ApprovalOutcome, Error, Options, SessionService, SubmitRequest,
};

use super::{Book, asking, ended, new_session, owner, say, sessions};

pub fn yes(question: &ApprovalRow) -> ApprovalDecision {
    word(question, Decision::Approve)
}

pub fn no(question: &ApprovalRow) -> ApprovalDecision {
    word(question, Decision::Reject)
}

pub fn word(question: &ApprovalRow, decision: Decision) -> ApprovalDecision {
    ApprovalDecision {
        approval_id: question.id,
        decision,
        comment: None,
    }
}

pub async fn answer(
    sessions: &SessionService,
    turn: TurnId,
    words: Vec<ApprovalDecision>,
) -> Result<ApprovalOutcome, Error> {
    sessions
        .approvals()
        .decide(&owner("local"), turn, words, None)
        .await
}

pub async fn questions(sessions: &SessionService, turn: TurnId) -> Vec<ApprovalRow> {
    let asked = sessions.approvals().list(&owner("local"), turn).await;
    asked.expect("questions").0
}

/// A session with a turn that has asked so many questions.
pub async fn paused(sessions: &SessionService, submit: SubmitRequest) -> (SessionId, TurnId) {
    let id = new_session(sessions).await;
    let turn = super::submit(sessions, &owner("local"), id, submit).await;
    let turn = turn.expect("accepted").turn_id;
    ended(sessions, id, 1).await;
    (id, turn)
}

pub async fn asked_service(dir: &Path) -> (Arc<Book>, SessionService) {
    let (book, act) = asking();
    (book, sessions(dir, Options::default(), act).await)
}

pub fn with(text: &str, metadata: &serde_json::Value) -> SubmitRequest {
    SubmitRequest {
        metadata: metadata.as_object().cloned().expect("an object"),
        ..say(text)
    }
}

pub fn legs(events: &[Event], paused: TurnId) -> Vec<TurnId> {
    let legs = events.iter().filter(|event| match &event.body {
        Body::TurnStarted(start) => start.resumes == Some(paused),
        _ => false,
    });
    legs.filter_map(|event| event.turn_id).collect()
}

pub fn resolved(events: &[Event]) -> Vec<(ApprovalId, Decision, String)> {
    let answers = events.iter().filter_map(|event| match &event.body {
        Body::ApprovalResolved(answer) => {
            assert_eq!(event.turn_id, None, "an answer belongs to no turn");
            Some((answer.approval_id, answer.decision, answer.by.clone()))
        }
        _ => None,
    });
    answers.collect()
}

pub async fn tools(sessions: &SessionService, id: SessionId) -> Vec<ToolState> {
    let listed = sessions
        .reader()
        .tool_calls(&owner("local"), id, None, 100)
        .await;
    let mut listed = listed.expect("tool calls").0;
    listed.reverse();
    listed.iter().map(|tool| tool.status).collect()
}
