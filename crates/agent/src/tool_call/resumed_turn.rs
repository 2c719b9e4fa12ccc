//! Going on with a paused turn: the tools that a person allowed run first, those they did not allow
//! have their result, and then the model is asked as always.
//!
//! What was asked for stands in the history, in the message of the turn that paused. The pack may
//! be another one by now: a tool that is gone, or that takes something else, is not run.

use std::sync::Arc;

use turnwire_event::body::approval::Answer;
use turnwire_event::code::{Decision, ToolErrorClass};
use turnwire_event::port::Resumed;
use turnwire_event::{ContentBlock, Role, ToolUseId};
use turnwire_model::Said;
use turnwire_tool::{ToolFailure, check_input};

use crate::resources::agent_resources::Means;
use crate::tool_call::execute::Use;

/// What a model is told of a person's comment, in characters: a remark, not a document.
const COMMENT_CHARS_MAX: usize = 500;

/// What a turn goes on with.
pub(crate) struct Leg {
    /// The tools that run.
    pub(crate) allowed: Vec<Use>,
    /// Those that do not, and why.
    pub(crate) declined: Vec<(Use, ToolFailure)>,
    /// How many calls the model has answered since the person spoke: the next is one more.
    pub(crate) calls: u32,
}

/// What the answers in `resumed` come to, by what was said.
pub(crate) fn leg(means: &Means, resumed: &Resumed, said: &[Arc<Said>]) -> Leg {
    let mut leg = Leg {
        allowed: Vec::new(),
        declined: Vec::new(),
        calls: calls(said),
    };
    for answer in &resumed.answers {
        let mut asked = Use {
            id: answer.tool_use_id,
            name: answer.tool_name.clone(),
            input: serde_json::Value::Null,
            broken: false,
            allowed: answer.decision == Decision::Approve,
        };
        let input = input_of(said, asked.id);
        match verdict(means, answer, input) {
            Ok(input) => {
                asked.input = input.clone();
                leg.allowed.push(asked);
            }
            Err(why) => leg.declined.push((asked, why)),
        }
    }
    leg
}

/// The input that a tool runs with, or why it does not run.
fn verdict<'a>(
    means: &Means,
    answer: &Answer,
    input: Option<&'a serde_json::Value>,
) -> Result<&'a serde_json::Value, ToolFailure> {
    if answer.decision == Decision::Reject {
        let told = said_no(answer.comment.as_deref());
        return Err(ToolFailure::new(ToolErrorClass::Cancelled, told));
    }
    let Some(tool) = means.toolbox.get(&answer.tool_name) else {
        let told = "not executed: there is no such tool any more.";
        return Err(ToolFailure::internal(told));
    };
    let Some(input) = input else {
        let told = "not executed: what it was asked for is no longer kept. Ask again.";
        return Err(ToolFailure::internal(told));
    };
    check_input(&**tool, input)?;
    Ok(input)
}

fn said_no(comment: Option<&str>) -> String {
    let comment: String = comment
        .unwrap_or_default()
        .trim()
        .chars()
        .take(COMMENT_CHARS_MAX)
        .collect();
    match comment.as_str() {
        "" => "not executed: the person said no.".to_owned(),
        comment => format!("not executed: the person said no, and: {comment}"),
    }
}

fn input_of(said: &[Arc<Said>], tool_use: ToolUseId) -> Option<&serde_json::Value> {
    let blocks = said.iter().rev().flat_map(|said| &said.content);
    let mut inputs = blocks.filter_map(|block| match block {
        ContentBlock::ToolUse { id, input, .. } if *id == tool_use => Some(input),
        _ => None,
    });
    inputs.next()
}

/// The messages of the model since the person's last words.
fn calls(said: &[Arc<Said>]) -> u32 {
    let since = said
        .iter()
        .rev()
        .take_while(|said| said.role != Role::User || said.content.is_empty());
    let of_model = since.filter(|said| said.role == Role::Assistant).count();
    u32::try_from(of_model).unwrap_or(u32::MAX)
}
