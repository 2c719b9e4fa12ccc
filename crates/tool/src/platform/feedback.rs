//! Keeps what a person said they thought of the answer, as `feedback.recorded` about this turn
//! (R-08, S2-005).

use serde_json::{Value, json};
use turnwire_event::body::feedback::Recorded;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::port::{BoxFuture, Emission};
use turnwire_event::{Actor, Body};

use crate::deliver::deliver;
use crate::input::Input;
use crate::tool::{Call, Tool, ToolFailure};

/// Of a rating: a word or a number.
const RATING_CHARS_MAX: usize = 64;
/// Of a comment.
const COMMENT_CHARS_MAX: usize = 2_000;

/// Emits `feedback.recorded` with a rating and a comment.
pub struct Feedback;

impl Tool for Feedback {
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

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let input = Input::new(&call.input, &["rating", "comment"])?;
            let rating = short("rating", input.text("rating")?, RATING_CHARS_MAX)?;
            let comment = input
                .optional_text("comment")?
                .map(|comment| short("comment", comment, COMMENT_CHARS_MAX))
                .transpose()?;
            let body = Body::FeedbackRecorded(Recorded {
                message_id: None,
                turn_id: Some(call.scene.turn_id),
                rating,
                comment,
            });
            let emission = Emission {
                trace: call.scene.trace.clone(),
                ..Emission::new(Actor::tool("llm_feedback"), body)
            };
            match deliver(&*call.emitter, emission).await {
                Ok(_) => Ok(json!("kept")),
                Err(refusal) => {
                    let told = format!("Not kept: {refusal}.");
                    Err(ToolFailure::new(ToolErrorClass::Cancelled, told))
                }
            }
        })
    }
}

fn short(key: &str, text: &str, chars_max: usize) -> Result<String, ToolFailure> {
    if (1..=chars_max).contains(&text.chars().count()) {
        return Ok(text.to_owned());
    }
    let told = format!("`{key}` must have 1 to {chars_max} characters.");
    Err(ToolFailure::invalid_input(told))
}
