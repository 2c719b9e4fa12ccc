//! `/turns/{id}/approvals`: what a paused turn has asked, and the answers that let it go on.

use std::collections::HashMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Json, Router};
use tracing::Instrument as _;
use turnwire_event::ApprovalId;
use turnwire_session::{ApprovalDecision, Error, TurnApprovals};
use turnwire_wire::rest::approval::{
    ANSWERS_MAX, ApprovalAnswer, ApprovalAnswers, ApprovalList, ApprovalsAnswered,
    COMMENT_CHARS_MAX,
};

use crate::error::RequestFault;
use crate::request::body::JsonBody;
use crate::request::identity::Identity;
use crate::request::path::TurnPath;
use crate::request::query::QueryParams;
use crate::request::submit::invalid;
use crate::request::trace::RequestTrace;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/turns/{id}/approvals", get(list).post(answer))
}

async fn list(
    State(approvals): State<TurnApprovals>,
    Identity(owner): Identity,
    TurnPath(id): TurnPath,
    params: QueryParams,
) -> Result<Json<ApprovalList>, RequestFault> {
    params.done()?;
    let (rows, next_turn_id) = approvals.list(&owner, id).await?;
    Ok(Json(ApprovalList {
        turn_id: id,
        approvals: rows.into_iter().map(Into::into).collect(),
        next_turn_id,
    }))
}

async fn answer(
    State(approvals): State<TurnApprovals>,
    Extension(trace): Extension<RequestTrace>,
    Identity(owner): Identity,
    TurnPath(id): TurnPath,
    JsonBody(body): JsonBody<ApprovalAnswers>,
) -> Result<(StatusCode, Json<ApprovalsAnswered>), RequestFault> {
    let decisions = checked(body)?;
    let trace = trace.for_turn();
    // A task of its own: a client that leaves now has answered or not, never half.
    let deciding = async move { approvals.decide(&owner, id, decisions, trace).await };
    let outcome = tokio::spawn(deciding.in_current_span()).await;
    let outcome = outcome.map_err(|_| RequestFault::internal())??;
    let status = match outcome.next {
        Some(_) => StatusCode::ACCEPTED,
        None => StatusCode::OK,
    };
    Ok((
        status,
        Json(ApprovalsAnswered {
            turn_id: id,
            remaining: outcome.remaining,
            next_turn_id: outcome.next,
        }),
    ))
}

/// What the body says, or why it says nothing.
fn checked(body: ApprovalAnswers) -> Result<Vec<ApprovalDecision>, RequestFault> {
    let answers = match (body.approval_id, body.decision, body.answers) {
        (Some(approval_id), Some(decision), None) => vec![ApprovalAnswer {
            approval_id,
            decision,
            comment: body.comment,
        }],
        (None, None, Some(answers)) if body.comment.is_none() => answers,
        (Some(_), None, None) => return Err(invalid("decision", "is missing")),
        (_, _, Some(_)) => return Err(invalid("answers", "stands alone, or not at all")),
        (None, _, None) => return Err(invalid("approval_id", "is missing")),
    };
    if !(1..=ANSWERS_MAX).contains(&answers.len()) {
        let message = format!("must have 1 to {ANSWERS_MAX} answers");
        return Err(invalid("answers", &message));
    }
    let mut decisions = HashMap::new();
    let mut words = Vec::with_capacity(answers.len());
    for answer in answers {
        let long = |comment: &String| comment.chars().count() > COMMENT_CHARS_MAX;
        if answer.comment.as_ref().is_some_and(long) {
            let message = format!("may have {COMMENT_CHARS_MAX} characters");
            return Err(invalid("comment", &message));
        }
        let id: Result<ApprovalId, _> = answer.approval_id.parse();
        let approval_id = id.map_err(|_| Error::ApprovalNotFound)?;
        let before = decisions.insert(approval_id, answer.decision);
        if before.is_some_and(|before| before != answer.decision) {
            return Err(invalid("answers", "must not say both to one question"));
        }
        words.push(ApprovalDecision {
            approval_id,
            decision: answer.decision,
            comment: answer.comment,
        });
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use turnwire_event::Ulid;
    use turnwire_event::code::Decision;
    use turnwire_wire::problem::Code;

    fn check(body: Value) -> Result<Vec<ApprovalDecision>, Code> {
        let body = serde_json::from_value(body).expect("a body");
        checked(body).map_err(|fault| fault.code())
    }

    #[test]
    fn one_answer_or_several_but_not_both() {
        let id = ApprovalId(Ulid(5));
        let yes = ApprovalDecision {
            approval_id: id,
            decision: Decision::Approve,
            comment: None,
        };
        let one = json!({"approval_id": id, "decision": "approve"});
        assert_eq!(check(one.clone()), Ok(vec![yes.clone()]));
        assert_eq!(check(json!({"answers": [one]})), Ok(vec![yes]));
        let no = json!({"approval_id": id, "decision": "reject"});
        for body in [
            json!({}),
            json!({"approval_id": id}),
            json!({"decision": "approve"}),
            json!({"answers": []}),
            json!({"answers": [one, no]}),
            json!({"answers": [one], "decision": "approve"}),
            json!({"answers": [one], "comment": "x"}),
            json!({"approval_id": id, "decision": "reject", "comment": "x".repeat(501)}),
            json!({"answers": vec![one.clone(); 257]}),
        ] {
            assert_eq!(check(body.clone()), Err(Code::InvalidRequest), "{body}");
        }
        let odd = json!({"approval_id": "x", "decision": "approve"});
        assert_eq!(check(odd), Err(Code::ApprovalNotFound));
    }
}
