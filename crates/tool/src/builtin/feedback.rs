//! Records the feedback of a person about this turn as `feedback.recorded` (R-08, S2-005).

use serde_json::{Value, json};
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::port::{BoxFuture, Emission};
use turnwire_event::{Actor, Body};

use crate::input::InputFields;
use crate::tool::deliver;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// Of a rating: a word or a number.
const RATING_CHARS_MAX: usize = 64;
/// Of a comment, which is stored with the turn.
const COMMENT_CHARS_MAX: usize = 2_000;

/// Emits `feedback.recorded` with a rating and a comment.
pub(crate) struct FeedbackTool;

impl Tool for FeedbackTool {
    fn name(&self) -> &str {
        "llm_feedback"
    }

    fn description(&self) -> &str {
        "Keeps what the person said they thought of an answer: a rating, and a comment if they gave one."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "rating": {"type": "string", "maxLength": RATING_CHARS_MAX},
                "comment": {"type": "string", "maxLength": COMMENT_CHARS_MAX},
            },
            "required": ["rating"],
            "additionalProperties": false,
        })
    }

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
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
            let emission = Emission {
                trace: call.context.trace.clone(),
                ..Emission::new(Actor::tool("llm_feedback"), body)
            };
            match deliver(&*call.emitter, emission).await {
                Ok(_) => Ok(json!("kept")),
                Err(refusal) => {
                    let message = format!("Not recorded: {refusal}.");
                    Err(ToolFailure::new(ToolErrorClass::Cancelled, message))
                }
            }
        })
    }
}

fn checked_text(key: &str, text: &str, chars_max: usize) -> Result<String, ToolFailure> {
    if (1..=chars_max).contains(&text.chars().count()) {
        return Ok(text.to_owned());
    }
    let message = format!("`{key}` must have 1 to {chars_max} characters.");
    Err(ToolFailure::invalid_input(message))
}
