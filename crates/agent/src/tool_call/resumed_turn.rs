//! A turn that resumes a paused turn: the approved tools run first, the rejected ones get a result,
//! and then the model is called as always.
//!
//! The inputs of the tools are in the history, in the message of the turn that paused. The pack may
//! have changed since: a tool that is gone, or whose schema no longer accepts the input, does not
//! run. Nor does a tool whose input is not, byte for byte, the one that the person approved.

use std::sync::Arc;

use serde_json::Value;
use turnwire_event::body::approval::ResolvedApproval;
use turnwire_event::code::{Decision, ToolErrorClass};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::ResumeInput;
use turnwire_event::{ContentBlock, Role, ToolUseId};
use turnwire_model::ModelMessage;
use turnwire_tool::{ToolFailure, check_input};

use super::tool_request::{DeclinedRequest, ToolRequest};
use crate::resources::agent_resources::AgentResources;

/// The most characters of a person's comment that the model is sent: a remark, not a document.
const COMMENT_CHARS_MAX: usize = 500;

/// What a resumed turn starts with.
pub(crate) struct ResumedTurn {
    /// The tools that run.
    pub(crate) approved: Vec<ToolRequest>,
    /// The tools that do not run, each with its [`ToolFailure`].
    pub(crate) declined: Vec<DeclinedRequest>,
    /// The number of model calls since the user's last message: the next call is one more.
    pub(crate) call_count: u32,
}

impl ResumedTurn {
    /// Matches the answers of a [`ResumeInput`] with the tool uses in `messages`.
    pub(crate) fn new(
        resources: &AgentResources,
        resumed: &ResumeInput,
        messages: &[Arc<ModelMessage>],
    ) -> Self {
        let mut turn = Self {
            approved: Vec::new(),
            declined: Vec::new(),
            call_count: calls_since_user_message(messages),
        };
        for answer in &resumed.answers {
            let mut request = ToolRequest {
                id: answer.tool_use_id,
                name: answer.tool_name.clone(),
                input: Value::Null,
                is_broken: false,
                is_approved: answer.decision == Decision::Approve,
            };
            let input = input_of(messages, request.id);
            match executable_input(resources, answer, input) {
                Ok(input) => {
                    request.input = input.clone();
                    turn.approved.push(request);
                }
                Err(failure) => turn.declined.push((request, failure)),
            }
        }
        turn
    }
}

/// The input that the tool of `answer` runs with, or why the tool does not run.
fn executable_input<'a>(
    resources: &AgentResources,
    answer: &ResolvedApproval,
    input: Option<&'a Value>,
) -> Result<&'a Value, ToolFailure> {
    if answer.decision == Decision::Reject {
        let message = rejection(answer.comment.as_deref());
        return Err(ToolFailure::new(ToolErrorClass::Cancelled, message));
    }
    let Some(tool) = resources.toolbox.get(&answer.tool_name) else {
        let message = "not executed: there is no such tool any more.";
        return Err(ToolFailure::internal(message));
    };
    let Some(input) = input else {
        let message = "not executed: what it was asked for is no longer kept. Ask again.";
        return Err(ToolFailure::internal(message));
    };
    let is_approved = answer
        .input_sha256
        .as_ref()
        .is_none_or(|approved| *approved == sha256_hex(input.to_string().as_bytes()));
    if !is_approved {
        let message = "not executed: the input is not the one that was approved. Ask again.";
        return Err(ToolFailure::internal(message));
    }
    check_input(&**tool, input)?;
    Ok(input)
}

fn rejection(comment: Option<&str>) -> String {
    let comment = comment.unwrap_or_default().trim().chars();
    let comment: String = comment.take(COMMENT_CHARS_MAX).collect();
    match comment.as_str() {
        "" => "not executed: the person said no.".to_owned(),
        comment => format!("not executed: the person said no, and: {comment}"),
    }
}

fn input_of(messages: &[Arc<ModelMessage>], tool_use: ToolUseId) -> Option<&Value> {
    let blocks = messages.iter().rev().flat_map(|message| &message.content);
    let mut inputs = blocks.filter_map(|block| match block {
        ContentBlock::ToolUse { id, input, .. } if *id == tool_use => Some(input),
        _ => None,
    });
    inputs.next()
}

fn calls_since_user_message(messages: &[Arc<ModelMessage>]) -> u32 {
    let is_user =
        |message: &ModelMessage| message.role == Role::User && !message.content.is_empty();
    let since = messages
        .iter()
        .rev()
        .take_while(|message| !is_user(message));
    let replies = since.filter(|message| message.role == Role::Assistant);
    u32::try_from(replies.count()).unwrap_or(u32::MAX)
}
