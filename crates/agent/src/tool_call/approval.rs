//! Tools that need the approval of a person. A call whose input does not match the schema is
//! declined at once; for the others the person is asked, and the turn ends with them open.
//!
//! ```text
//! the other tools run │ approval.requested* │ the turn ends as paused, no tool was called
//! ```

use turnwire_event::body::approval::ApprovalRequested;
use turnwire_event::code::TurnKind;
use turnwire_event::content::sha256_hex;
use turnwire_event::{ApprovalId, Body};
use turnwire_tool::check_input;

use super::summary::summary;
use super::tool_request::{DeclinedRequest, ToolRequest};
use crate::resources::agent_context::{AgentContext, EmitResult};
use crate::resources::agent_resources::AgentResources;

/// The [`ToolRequest`]s of one message, split by whether they need approval.
#[derive(Default)]
pub(crate) struct ApprovalSplit {
    /// Requests that run at once.
    pub(crate) run_now: Vec<ToolRequest>,
    /// Requests that a person is asked about.
    pub(crate) need_approval: Vec<ToolRequest>,
    /// Requests that would need approval and whose input does not match the schema.
    pub(crate) invalid: Vec<DeclinedRequest>,
}

/// Splits `requests` by whether their tools need approval.
pub(crate) fn split_by_approval(
    resources: &AgentResources,
    kind: TurnKind,
    requests: Vec<ToolRequest>,
) -> ApprovalSplit {
    let mut split = ApprovalSplit::default();
    // The turn that a worker works for cannot wait for a person: tools that need approval are declined
    // when they run, as they are for sub-agents.
    if kind == TurnKind::Worker {
        split.run_now = requests;
        return split;
    }
    for request in requests {
        match resources.toolbox.get(&request.name) {
            // A broken input is declined when the tool runs.
            Some(tool) if tool.approval() && !request.is_broken => {
                match check_input(&**tool, &request.input) {
                    Ok(()) => split.need_approval.push(request),
                    Err(failure) => split.invalid.push((request, failure)),
                }
            }
            Some(_) | None => split.run_now.push(request),
        }
    }
    split
}

/// Emits an `approval.requested` for each of `requests`.
pub(crate) async fn request_approvals(
    context: &AgentContext<'_>,
    requests: &[ToolRequest],
) -> EmitResult {
    let resources = context.resources;
    for request in requests {
        let json = request.input.to_string();
        let input_summary = summary(&request.input, resources.options.summary_chars_max);
        let requested = ApprovalRequested {
            approval_id: ApprovalId(resources.id_generator.ulid()),
            tool_use_id: request.id,
            tool_name: request.name.clone(),
            input_truncated: input_summary != json,
            input_bytes: Some(json.len() as u64),
            input_sha256: Some(sha256_hex(json.as_bytes())),
            input_summary,
        };
        let requested = Body::ApprovalRequested(requested);
        context.emit_as_agent(requested).await?;
    }
    Ok(())
}
