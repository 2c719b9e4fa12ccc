//! `/turns/{id}/approvals`: the approvals that a paused turn has requested, and the decisions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Json, Router};
use turnwire_event::ApprovalId;
use turnwire_session::{ApprovalDecision, Error, TurnApprovals};
use turnwire_wire::budget::cut_to_fit;
use turnwire_wire::rest::approval::{
    ANSWERS_MAX, ApprovalAnswer, ApprovalAnswers, ApprovalItem, ApprovalList, ApprovalRecord,
    ApprovalsAnswered, COMMENT_CHARS_MAX,
};

use crate::config::ServerConfig;
use crate::error::{RequestFault, run_to_end};
use crate::request::{
    ApprovalPath, JsonBody, QueryParams, RequestTrace, ReviewingCaller, TurnPath,
};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/turns/{id}/approvals", get(list).post(answer))
        .route("/turns/{id}/approvals/{approval_id}", get(read))
}

async fn list(
    State(approvals): State<TurnApprovals>,
    State(config): State<Arc<ServerConfig>>,
    caller: ReviewingCaller,
    TurnPath(id): TurnPath,
    mut params: QueryParams,
) -> Result<Json<ApprovalList>, RequestFault> {
    let sizes = &config.session;
    let limit = params.take_limit(sizes.list_page, sizes.list_page_max)?;
    let after: Option<ApprovalId> = params.take_cursor("after")?;
    params.refuse_rest()?;
    let (rows, next_turn_id) = approvals.list(caller.viewer(), id).await?;
    let rows = rows.into_iter();
    let mut rows = rows.filter(|row| after.is_none_or(|after| row.id > after));
    let mut page: Vec<ApprovalRecord> = rows.by_ref().take(limit).map(Into::into).collect();
    let is_cut = cut_to_fit(&mut page, config.http.answer_max_bytes) || rows.next().is_some();
    let next = page.last().filter(|_| is_cut);
    Ok(Json(ApprovalList {
        turn_id: id,
        next: next.map(|approval| approval.approval_id),
        approvals: page,
        next_turn_id,
    }))
}

async fn read(
    State(approvals): State<TurnApprovals>,
    caller: ReviewingCaller,
    ApprovalPath(turn, approval): ApprovalPath,
    params: QueryParams,
) -> Result<Json<ApprovalItem>, RequestFault> {
    params.refuse_rest()?;
    let (row, input_json) = approvals.read(caller.viewer(), turn, approval).await?;
    Ok(Json(ApprovalItem::new(row, input_json)))
}

async fn answer(
    State(approvals): State<TurnApprovals>,
    Extension(trace): Extension<RequestTrace>,
    caller: ReviewingCaller,
    TurnPath(id): TurnPath,
    JsonBody(body): JsonBody<ApprovalAnswers>,
) -> Result<(StatusCode, Json<ApprovalsAnswered>), RequestFault> {
    let decisions = checked(body)?;
    let trace = trace.for_turn();
    let decide = async move {
        approvals
            .decide(caller.viewer(), id, decisions, trace)
            .await
    };
    let outcome = run_to_end(decide).await?;
    let status = match outcome.next {
        Some(_) => StatusCode::ACCEPTED,
        None => StatusCode::OK,
    };
    let answered = ApprovalsAnswered {
        turn_id: id,
        remaining: outcome.remaining,
        next_turn_id: outcome.next,
    };
    Ok((status, Json(answered)))
}

/// The [`ApprovalDecision`]s of a body, or what is wrong with it.
fn checked(body: ApprovalAnswers) -> Result<Vec<ApprovalDecision>, RequestFault> {
    let answers = match (body.approval_id, body.decision, body.answers) {
        (Some(approval_id), Some(decision), None) => vec![ApprovalAnswer {
            approval_id,
            decision,
            input_sha256: body.input_sha256.flatten(),
            comment: body.comment.flatten(),
        }],
        (None, None, Some(answers)) if body.comment.is_none() && body.input_sha256.is_none() => {
            answers
        }
        (Some(_), None, None) => return Err(RequestFault::invalid("decision", "is missing")),
        (_, _, Some(_)) => {
            return Err(RequestFault::invalid(
                "answers",
                "stands alone, or not at all",
            ));
        }
        (None, _, None) => return Err(RequestFault::invalid("approval_id", "is missing")),
    };
    if !(1..=ANSWERS_MAX).contains(&answers.len()) {
        let rule = format!("must have 1 to {ANSWERS_MAX} answers");
        return Err(RequestFault::invalid("answers", rule));
    }
    let mut decisions: Vec<ApprovalDecision> = Vec::with_capacity(answers.len());
    for ApprovalAnswer {
        approval_id,
        decision,
        input_sha256,
        comment,
    } in answers
    {
        RequestFault::check_length("comment", comment.as_deref(), COMMENT_CHARS_MAX)?;
        if input_sha256.as_deref().is_some_and(|hex| !is_sha256(hex)) {
            let rule = "must be 64 lower-case hexadecimal digits";
            return Err(RequestFault::invalid("input_sha256", rule));
        }
        let approval_id = approval_id.parse().map_err(|_| Error::ApprovalNotFound)?;
        let mut earlier = decisions.iter();
        if earlier.any(|other| other.approval_id == approval_id && other.decision != decision) {
            let rule = "must not say both to one question";
            return Err(RequestFault::invalid("answers", rule));
        }
        decisions.push(ApprovalDecision {
            approval_id,
            decision,
            input_sha256,
            comment,
        });
    }
    Ok(decisions)
}

/// True for the form of [`SHA256_PATTERN`](turnwire_wire::rest::approval::SHA256_PATTERN).
fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use turnwire_event::code::Decision;
    use turnwire_event::{ApprovalId, Ulid};
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
            input_sha256: None,
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
            json!({"answers": [one], "input_sha256": "0".repeat(64)}),
            json!({"approval_id": id, "decision": "approve", "input_sha256": "F".repeat(64)}),
            json!({"approval_id": id, "decision": "reject", "comment": "x".repeat(501)}),
            json!({"answers": vec![one.clone(); 257]}),
        ] {
            assert_eq!(check(body.clone()), Err(Code::InvalidRequest), "{body}");
        }
        for body in [
            json!({"answers": [one], "approval_id": null}),
            json!({"answers": null, "approval_id": id, "decision": "approve"}),
        ] {
            assert!(serde_json::from_value::<ApprovalAnswers>(body).is_err());
        }
        let alone = json!({"answers": [one], "comment": null});
        assert_eq!(check(alone), Err(Code::InvalidRequest));
        let silent = json!({"approval_id": id, "decision": "approve", "comment": null});
        assert_eq!(check(silent).map(|decisions| decisions.len()), Ok(1));
        let odd = json!({"approval_id": "x", "decision": "approve"});
        assert_eq!(check(odd), Err(Code::ApprovalNotFound));
    }
}
