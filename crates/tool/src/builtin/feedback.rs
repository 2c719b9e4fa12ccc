//! Records the feedback of a person about this turn as `feedback.recorded` (R-08, S2-005).

use serde_json::{Value, json};
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::{Actor, Body};
use turnwire_pack::BuiltinFunction;

use crate::input::{InputFields, object_schema};
use crate::pack_tool::PackTool;
use crate::tool::{ToolFailure, ToolInvocation};

const NAME: &str = "llm_feedback";
/// The limit of a rating: a word or a number.
const RATING_CHARS_MAX: usize = 64;
/// The limit of a comment, which is stored with the turn.
const COMMENT_CHARS_MAX: usize = 2_000;

/// A tool that emits `feedback.recorded` with a rating and a comment.
pub(super) fn feedback() -> PackTool {
    let properties = json!({
        "rating": {"type": "string", "maxLength": RATING_CHARS_MAX},
        "comment": {"type": "string", "maxLength": COMMENT_CHARS_MAX},
    });
    PackTool::builtin(
        BuiltinFunction::LlmFeedback,
        NAME,
        "Keeps what the person said they thought of an answer: a rating, and a comment if they gave one.",
        object_schema(properties, &["rating"]),
        run,
    )
}

async fn run(call: ToolInvocation) -> Result<Value, ToolFailure> {
    let input = InputFields::new(&call.input, &["rating", "comment"])?;
    let rating = checked_text("rating", input.text("rating")?, RATING_CHARS_MAX)?;
    let comment = input
        .optional_text("comment")?
        .map(|comment| checked_text("comment", comment, COMMENT_CHARS_MAX))
        .transpose()?;
    let body = Body::FeedbackRecorded(FeedbackRecorded {
        message_id: None,
        turn_id: Some(call.context.turn_id),
        rating,
        comment,
    });
    let emitted = call.emit(Actor::tool(NAME), body).await;
    emitted.map_err(|refusal| ToolFailure::refused("recorded", refusal))?;
    Ok(json!("kept"))
}

fn checked_text(key: &str, text: &str, chars_max: usize) -> Result<String, ToolFailure> {
    ToolFailure::require((1..=chars_max).contains(&text.chars().count()), || {
        format!("`{key}` must have 1 to {chars_max} characters.")
    })?;
    Ok(text.to_owned())
}
