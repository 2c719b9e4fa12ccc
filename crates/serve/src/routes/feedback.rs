//! `/sessions/{id}/feedback`: a person's rating of a message or a turn.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use turnwire_event::TurnId;
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_session::{Error, SessionReader, SessionWriter};
use turnwire_wire::problem::Code;
use turnwire_wire::rest::feedback::{
    COMMENT_CHARS_MAX, FeedbackAccepted, FeedbackRequest, RATING_CHARS_MAX,
};

use crate::error::RequestFault;
use crate::request::path::find_turn;
use crate::request::{Identity, JsonBody, SessionPath};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/sessions/{id}/feedback", post(record))
}

async fn record(
    State(writer): State<SessionWriter>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    State(reader): State<SessionReader>,
    JsonBody(mut body): JsonBody<FeedbackRequest>,
) -> Result<(StatusCode, Json<FeedbackAccepted>), RequestFault> {
    if let (None, Some(turn)) = (&body.message_id, &mut body.turn_id) {
        *turn = find_turn(&reader, &owner, turn).await?.to_string();
    }
    let feedback = checked(body)?;
    let position = writer.record_feedback(&owner, id, feedback).await?;
    Ok((StatusCode::ACCEPTED, Json(FeedbackAccepted { position })))
}

/// The [`FeedbackRecorded`] of a body, or what is wrong with it.
fn checked(body: FeedbackRequest) -> Result<FeedbackRecorded, RequestFault> {
    let rating = body.rating.to_string();
    if !(1..=RATING_CHARS_MAX).contains(&rating.chars().count()) {
        let rule = format!("must have 1 to {RATING_CHARS_MAX} characters");
        return Err(RequestFault::invalid("rating", rule));
    }
    RequestFault::check_length("comment", body.comment.as_deref(), COMMENT_CHARS_MAX)?;
    let (message_id, turn) = match (body.message_id, body.turn_id) {
        (Some(message), None) => {
            let id = message.parse().map_err(|_| Error::MessageNotFound)?;
            (Some(id), None)
        }
        (None, Some(turn)) => (
            None,
            Some(TurnId::named(&turn).map_err(|_| Error::TurnNotFound)?),
        ),
        (Some(_), Some(_)) | (None, None) => {
            let detail = "Feedback is about exactly one: a message_id or a turn_id.";
            return Err(RequestFault::new(Code::InvalidRequest, detail).with("field", "message_id"));
        }
    };
    Ok(FeedbackRecorded {
        message_id,
        turn_id: turn,
        rating,
        comment: body.comment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use turnwire_event::{MessageId, Ulid};

    fn check(body: Value) -> Result<FeedbackRecorded, Code> {
        let body = serde_json::from_value(body).expect("a body");
        checked(body).map_err(|fault| fault.code())
    }

    //
    #[test]
    fn feedback_is_about_exactly_one_thing() {
        let id = MessageId(Ulid(5)).to_string();
        let about = |message, turn| FeedbackRecorded {
            message_id: message,
            turn_id: turn,
            rating: "5".into(),
            comment: None,
        };
        assert_eq!(
            check(json!({"message_id": id, "rating": 5})),
            Ok(about(Some(MessageId(Ulid(5))), None))
        );
        for turn in [id.clone(), format!("resp_{id}")] {
            assert_eq!(
                check(json!({"turn_id": turn, "rating": "5"})),
                Ok(about(None, Some(TurnId(Ulid(5)))))
            );
        }
        for body in [
            json!({"rating": 1}),
            json!({"message_id": id, "turn_id": id, "rating": 1}),
            json!({"turn_id": id, "rating": ""}),
            json!({"turn_id": id, "rating": "x".repeat(65)}),
            json!({"turn_id": id, "rating": 1, "comment": "x".repeat(8_193)}),
        ] {
            assert_eq!(check(body), Err(Code::InvalidRequest));
        }
        assert_eq!(
            check(json!({"message_id": "x", "rating": 1})),
            Err(Code::MessageNotFound)
        );
        assert_eq!(
            check(json!({"turn_id": "x", "rating": 1})),
            Err(Code::TurnNotFound)
        );
    }
}
