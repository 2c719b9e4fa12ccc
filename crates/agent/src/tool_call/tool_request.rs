//! The tool calls that a message contains, and results for calls that are declined.

use std::sync::Arc;

use serde_json::Value;
use turnwire_event::body::tool::ToolFailed;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::port::Emission;
use turnwire_event::row::NewMessage;
use turnwire_event::{Actor, Body, ContentBlock, ToolUseId};
use turnwire_model::ModelMessage;
use turnwire_tool::ToolFailure;

use super::tool_result::{stored_message, tool_result};
use crate::resources::agent_context::{AgentContext, EmitResult, ModelMessages};
use crate::resources::agent_resources::AgentResources;
use crate::resources::message_metadata::mark_not_executed;

/// The result of a tool call whose input cannot be read.
pub(crate) const BROKEN_INPUT: &str =
    "The input was cut or is not a JSON object; ask again with a whole one.";

/// A tool call of the model.
pub(crate) struct ToolRequest {
    pub(crate) id: ToolUseId,
    pub(crate) name: String,
    pub(crate) input: Value,
    /// True if the input is unusable.
    pub(crate) is_broken: bool,
    /// True if a person has approved the call.
    pub(crate) is_approved: bool,
}

/// A [`ToolRequest`] that is not executed, and why.
pub(crate) type DeclinedRequest = (ToolRequest, ToolFailure);

/// The tool calls in `content`, in its order.
pub(crate) fn tool_requests(content: &[ContentBlock], broken: &[ToolUseId]) -> Vec<ToolRequest> {
    let request = |block: &ContentBlock| match block {
        ContentBlock::ToolUse { id, name, input } => Some(ToolRequest {
            is_broken: broken.contains(id),
            is_approved: false,
            id: *id,
            name: name.clone(),
            input: input.clone(),
        }),
        _ => None,
    };
    content.iter().filter_map(request).collect()
}

/// Splits off the requests beyond the number that one message may make.
pub(crate) fn split_excess(
    requests: &mut Vec<ToolRequest>,
    resources: &AgentResources,
) -> Vec<ToolRequest> {
    requests.split_off(requests.len().min(resources.options.tool_calls_max))
}

/// The result of a request beyond the number that one message may make.
pub(crate) fn excess_result(resources: &AgentResources) -> String {
    let calls_max = resources.options.tool_calls_max;
    format!("not executed: at most {calls_max} tools can be asked for at once.")
}

/// Declines the requests beyond the number that one message may make.
pub(crate) async fn decline_excess(
    context: &AgentContext<'_>,
    requests: Vec<ToolRequest>,
) -> EmitResult<ModelMessages> {
    let reason = excess_result(context.resources);
    let failure = ToolFailure::new(ToolErrorClass::NotExecuted, reason);
    let declined = requests
        .into_iter()
        .map(|request| (request, failure.clone()));
    decline_all(context, declined.collect()).await
}

/// Declines all of `requests`, each with its [`ToolFailure`].
pub(crate) async fn decline_all(
    context: &AgentContext<'_>,
    requests: Vec<DeclinedRequest>,
) -> EmitResult<ModelMessages> {
    let mut results = Vec::with_capacity(requests.len());
    for (request, failure) in requests {
        results.push(decline(context, &request, failure).await?);
    }
    Ok(results)
}

/// Gives a request that is not executed its result.
pub(crate) async fn decline(
    context: &AgentContext<'_>,
    request: &ToolRequest,
    failure: ToolFailure,
) -> EmitResult<Arc<ModelMessage>> {
    let result = tool_result(request.id, Err(failure.message.into()));
    let message = stored_message(context, &result);
    emit_declined(context, request, failure.class, message).await?;
    Ok(Arc::new(result))
}

/// Emits the end of a request that is not executed, with the `message` that has its result:
/// providers require a result for each tool use. There is no `tool.called`, because nothing is
/// executed.
pub(crate) async fn emit_declined(
    context: &AgentContext<'_>,
    request: &ToolRequest,
    error_class: ToolErrorClass,
    mut message: NewMessage,
) -> EmitResult {
    let resources = context.resources;
    let tool_name = resources.public_tool_name(&request.name).to_owned();
    let actor = Actor::tool(&tool_name);
    let failed = ToolFailed {
        upstream_id: None,
        tool_use_id: request.id,
        tool_name,
        tool_type: resources.tool_type(&request.name),
        error_class,
        called: false,
    };
    mark_not_executed(&mut message.metadata);
    let emission = Emission {
        message: Some(message),
        ..Emission::new(actor, Body::ToolFailed(failed))
    };
    context.deliver(emission).await.map(|_| ())
}
