//! Decisions on approvals, and the events of a log that belong to them.

use std::path::Path;
use std::sync::Arc;

use turnwire_event::code::{Decision, ToolState};
use turnwire_event::row::ApprovalRow;
use turnwire_event::{ApprovalId, Body, Event, SessionId, TurnId};
use turnwire_session::{
    ApprovalDecision, ApprovalOutcome, Error, Options, SessionService, SubmitRequest,
};

use super::{
    TurnRecorder, approval_producer, new_session, owner, start_service, text_request,
    wait_for_terminals,
};

pub fn approve(approval: &ApprovalRow) -> ApprovalDecision {
    decision_on(approval, Decision::Approve)
}

pub fn reject(approval: &ApprovalRow) -> ApprovalDecision {
    decision_on(approval, Decision::Reject)
}

pub fn decision_on(approval: &ApprovalRow, decision: Decision) -> ApprovalDecision {
    ApprovalDecision {
        approval_id: approval.id,
        decision,
        input_sha256: None,
        comment: None,
    }
}

pub async fn decide(
    sessions: &SessionService,
    turn: TurnId,
    decisions: Vec<ApprovalDecision>,
) -> Result<ApprovalOutcome, Error> {
    sessions
        .approvals()
        .decide(&owner("local"), turn, decisions, None)
        .await
}

pub async fn approvals_of(sessions: &SessionService, turn: TurnId) -> Vec<ApprovalRow> {
    let approvals = sessions.approvals().list(&owner("local"), turn).await;
    approvals.expect("questions").0
}

/// A new session with a paused turn.
pub async fn pause_turn(sessions: &SessionService, submit: SubmitRequest) -> (SessionId, TurnId) {
    let id = new_session(sessions).await;
    let turn = super::submit(sessions, &owner("local"), id, submit).await;
    let turn = turn.expect("accepted").turn_id;
    wait_for_terminals(sessions, id, 1).await;
    (id, turn)
}

pub async fn approval_service(dir: &Path) -> (Arc<TurnRecorder>, SessionService) {
    let (recorder, act) = approval_producer();
    (recorder, start_service(dir, Options::default(), act).await)
}

pub fn with_metadata(text: &str, metadata: &serde_json::Value) -> SubmitRequest {
    SubmitRequest {
        metadata: metadata.as_object().cloned().expect("an object").into(),
        ..text_request(text)
    }
}

pub fn resuming_turns(events: &[Event], paused: TurnId) -> Vec<TurnId> {
    let legs = events.iter().filter(|event| match &event.body {
        Body::TurnStarted(start) => start.resumes == Some(paused),
        _ => false,
    });
    legs.filter_map(|event| event.turn_id).collect()
}

pub fn resolved_approvals(events: &[Event]) -> Vec<(ApprovalId, Decision, String)> {
    let resolved = events.iter().filter_map(|event| match &event.body {
        Body::ApprovalResolved(answer) => {
            assert_eq!(event.turn_id, None, "an answer belongs to no turn");
            Some((answer.approval_id, answer.decision, answer.by.clone()))
        }
        _ => None,
    });
    resolved.collect()
}

pub async fn tool_states(sessions: &SessionService, id: SessionId) -> Vec<ToolState> {
    let listed = sessions
        .reader()
        .tool_calls(&owner("local"), id, None, 100)
        .await;
    let mut listed = listed.expect("tool calls").0;
    listed.reverse();
    listed.iter().map(|tool| tool.status).collect()
}
