//! Projects an event to its frames, by event type (S1 5.5, C-10, D-22).

use serde::Serialize;
use turnwire_event::body::approval::ApprovalRequested;
use turnwire_event::body::route::RouteDecided;
use turnwire_event::body::turn::{PauseDetail, TurnCompleted};
use turnwire_event::body::{component, mcp, status};
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::{
    Body, EpisodeId, Event, RenderDecision, RenderPolicy, ResponseId, TokenUsage,
};

use super::block::BlockWriter;
use super::cursor::FrameCursor;
use super::failure::{write_cancelled, write_failed, write_reported};
use super::frame_kind::{FrameKind, FrameKinds};
use super::tool_call::{ToolCallFields, ToolCallId};
use super::version::WireVersion;

/// Appends the blocks of the event and returns the kinds of its frames. An event without a turn, a
/// suppressed event and an event without a representation on this wire have no frame. The last
/// block of a terminal event is the sentinel.
pub fn project(event: &Event, version: WireVersion, out: &mut Vec<u8>) -> FrameKinds {
    project_skipping(event, version, 0, out)
}

/// Like [`project`], without the frames that `cursor` covers. The other frames keep their ids.
pub fn project_after(
    event: &Event,
    version: WireVersion,
    cursor: &FrameCursor,
    out: &mut Vec<u8>,
) -> FrameKinds {
    let skip = if cursor.position < event.id {
        0
    } else if cursor.position > event.id {
        return FrameKinds::NONE;
    } else {
        match cursor.frame {
            None => return FrameKinds::NONE,
            Some(frame) => frame.saturating_add(1),
        }
    };
    project_skipping(event, version, skip, out)
}

fn project_skipping(
    event: &Event,
    version: WireVersion,
    skip: u8,
    out: &mut Vec<u8>,
) -> FrameKinds {
    let (Some(turn), false) = (event.turn_id, is_suppressed_frame(event)) else {
        return FrameKinds::NONE;
    };
    let mut writer = BlockWriter {
        event,
        turn,
        version,
        skip,
        next: 0,
        kinds: FrameKinds::NONE,
        out,
    };
    write_body(&mut writer, &event.body);
    writer.kinds
}

/// True if the rendering policy suppresses the event. The end of a turn cannot be suppressed: a
/// stream without a terminal frame looks like a broken connection (S1-103).
fn is_suppressed_frame(event: &Event) -> bool {
    let is_suppressed = |render: &RenderDecision| match render.policy {
        RenderPolicy::Suppress => true,
        RenderPolicy::Forward | RenderPolicy::Transform | RenderPolicy::Batch => false,
    };
    event.render.as_ref().is_some_and(is_suppressed) && !event.body.kind().is_terminal()
}

fn write_body(writer: &mut BlockWriter<'_>, body: &Body) {
    match body {
        // The response of a relayed turn has its id with its route.
        Body::TurnStarted(started) if started.relayed_to.is_some() => {}
        Body::TurnStarted(started) => write_turn_start(writer, started.episode_id),
        Body::RouteDecided(RouteDecided {
            relayed: Some(response),
            ..
        }) => {
            write_turn_start(writer, response.episode_id);
            if !response.unanswered {
                write_thinking_start(writer);
            }
        }
        Body::LlmCallStarted(call) if call.first => write_thinking_start(writer),
        Body::ThinkingDelta(delta) if delta.text.is_empty() => {}
        Body::ThinkingDelta(delta) if delta.after_text => {
            write_chunk(writer, FrameKind::Reasoning, &delta.text)
        }
        Body::ThinkingDelta(delta) => writer.frame(FrameKind::Thinking, |payload| {
            payload.field("content", &delta.text);
            payload.field("role", "reasoning");
        }),
        Body::TextDelta(delta) if delta.text.is_empty() => {}
        Body::TextDelta(delta) => write_chunk(writer, FrameKind::Text, &delta.text),
        Body::ToolCalled(body) => {
            let id = ToolCallId::of(body.tool_use_id, &body.upstream_id);
            let tool = ToolCallFields::new(id, &body.tool_name, body.tool_type);
            write_tool(writer, FrameKind::ToolCall, tool);
        }
        Body::ToolCompleted(body) => {
            let id = ToolCallId::of(body.tool_use_id, &body.upstream_id);
            let tool = ToolCallFields::new(id, &body.tool_name, body.tool_type);
            write_tool(writer, FrameKind::ToolCompleted, tool);
        }
        Body::ToolFailed(body) if body.called => {
            let id = ToolCallId::of(body.tool_use_id, &body.upstream_id);
            let tool = ToolCallFields::new(id, &body.tool_name, body.tool_type);
            write_tool(writer, FrameKind::ToolCompleted, tool);
        }
        Body::StatusEmitted(emitted) => write_status(writer, emitted),
        Body::DataLoading(loading) => {
            writer.frame(FrameKind::DataLoading, |payload| {
                payload.field("data", loading)
            });
        }
        Body::DataLoaded(loaded) => {
            writer.frame(FrameKind::DataLoaded, |payload| {
                payload.field("data", loaded)
            });
        }
        Body::ComponentRendered(rendered) => write_component(writer, rendered),
        Body::ErrorReported(error) => write_reported(writer, error),
        Body::McpListToolsStarted(server) => {
            write_mcp_server(writer, FrameKind::McpListToolsStart, server)
        }
        Body::McpListToolsCompleted(listed) => write_mcp_tools(writer, listed),
        Body::McpSessionStarted(server) => {
            write_mcp_server(writer, FrameKind::McpSessionStart, server)
        }
        Body::McpSessionProgressed(progressed) => write_mcp_progress(writer, progressed),
        Body::TurnCompleted(completed) => write_turn_end(writer, completed),
        Body::TurnCancelled(end) => write_cancelled(writer, end),
        Body::LlmCallStarted(_)
        | Body::ToolFailed(_)
        | Body::SessionCreated(_)
        | Body::SessionClosed(_)
        | Body::TurnCancelRequested(_)
        | Body::RouteDecided(_)
        | Body::RoutingPolicyReloaded(_)
        | Body::LlmCallCompleted(_)
        | Body::LlmCallFailed(_)
        | Body::FeedbackRecorded(_)
        | Body::ApprovalRequested(_)
        | Body::ApprovalResolved(_)
        | Body::DelegateStarted(_)
        | Body::DelegateCompleted(_)
        | Body::DelegateFailed(_)
        | Body::BusSubscriberRegistered(_)
        | Body::BusSubscriberUnregistered(_)
        | Body::DispatchTraced(_)
        | Body::SubagentStarted(_)
        | Body::SubagentCompleted(_)
        | Body::SubagentFailed(_)
        | Body::PlanStepStarted(_)
        | Body::PlanStepCompleted(_)
        | Body::AgentErrorEmit(_)
        | Body::SupportNoted(_)
        | Body::BusHandlerWarning(_)
        | Body::MessageStart(_)
        | Body::ToolUseStart(_)
        | Body::ToolUseInputDelta(_)
        | Body::ToolUseEnd(_)
        | Body::MessageComplete(_) => {}
    }
}

fn write_turn_start(writer: &mut BlockWriter<'_>, episode_id: EpisodeId) {
    writer.empty_frame(FrameKind::ResponseId);
    writer.frame(FrameKind::Episode, |payload| {
        payload.field("episode_id", &episode_id);
    });
}

/// The agent has begun: the frame of its reasoning, without content.
fn write_thinking_start(writer: &mut BlockWriter<'_>) {
    writer.frame(FrameKind::Thinking, |payload| {
        payload.field("role", "reasoning");
    });
}

/// A part of the text or of the reasoning; the field `type` is kept from 0.4 (D-07).
fn write_chunk(writer: &mut BlockWriter<'_>, kind: FrameKind, text: &str) {
    writer.frame(kind, |payload| {
        payload.field("type", "chunk");
        payload.field("chunk", text);
    });
}

fn write_tool(writer: &mut BlockWriter<'_>, kind: FrameKind, tool: ToolCallFields<'_>) {
    writer.frame(kind, |payload| payload.field("tool_call", &tool));
}

/// A status by itself, or the combined status of the group that it is the last of (D-06, D-12).
/// Version 0.4 has no such frame (D-22).
fn write_status(writer: &mut BlockWriter<'_>, emitted: &status::StatusEmitted) {
    #[derive(Serialize)]
    struct StatusData<'a> {
        event_id: &'a str,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        event_ids: &'a [String],
        message: &'a str,
    }
    let group = writer.event.render.as_ref().filter(|r| r.group.is_some());
    let data = match (
        writer.version,
        group.map(|r| (&r.message, &r.event_ids[..])),
    ) {
        (WireVersion::V04, _) => return,
        // Only the last status of a group has a frame.
        (WireVersion::V05, Some((None, []))) => return,
        (WireVersion::V05, Some((message, event_ids @ [first, _, ..]))) => StatusData {
            event_id: first,
            event_ids,
            message: message.as_deref().unwrap_or(&emitted.message),
        },
        (WireVersion::V05, None | Some(_)) => StatusData {
            event_id: &emitted.event_id,
            event_ids: &[],
            message: &emitted.message,
        },
    };
    writer.frame(FrameKind::Status, |payload| payload.field("data", &data));
}

fn write_component(writer: &mut BlockWriter<'_>, rendered: &component::ComponentRendered) {
    let tool = &rendered.tool_call;
    let id = ToolCallId::of(tool.id, &tool.upstream_id);
    writer.frame(FrameKind::Component, |payload| {
        payload.field("chunk", &rendered.component);
        payload.field(
            "tool_call",
            &ToolCallFields::new(id, &tool.name, tool.tool_type),
        );
    });
}

fn write_mcp_server(writer: &mut BlockWriter<'_>, kind: FrameKind, server: &mcp::McpServerRef) {
    writer.frame(kind, |payload| payload.field("server", &server.server));
}

fn write_mcp_tools(writer: &mut BlockWriter<'_>, listed: &mcp::McpToolsListed) {
    writer.frame(FrameKind::McpListToolsCompleted, |payload| {
        payload.field("server", &listed.server);
        payload.field("tool_count", &listed.tool_count);
    });
}

fn write_mcp_progress(writer: &mut BlockWriter<'_>, progressed: &mcp::McpCallProgressed) {
    writer.frame(FrameKind::McpSessionProgress, |payload| {
        payload.field("server", &progressed.server);
        payload.field("progress", &progressed.progress);
        if let Some(total) = &progressed.total {
            payload.field("total", total);
        }
    });
}

/// The tokens of the turn, then its terminal frame.
fn write_turn_end(writer: &mut BlockWriter<'_>, completed: &TurnCompleted) {
    write_usage(writer, completed.usage);
    match completed.status {
        TurnStatus::Ok | TurnStatus::Degraded | TurnStatus::Paused => {
            let paused = completed.paused.as_ref();
            let paused = paused.filter(|_| writer.version == WireVersion::V05);
            writer.frame(FrameKind::Completed, |payload| {
                if let Some(paused) = paused {
                    payload.field("paused", &PausedFields::from(paused));
                }
            });
        }
        TurnStatus::Failed => {
            let general = || ErrorCode::InternalError.into();
            let error = completed.error.clone().unwrap_or_else(general);
            write_failed(writer, &error, completed.partial.as_ref());
        }
    }
}

/// What a paused turn waits for, on its `completed` frame.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct PausedFields<'a> {
    /// The questions for a person, as in `approval.requested`.
    approvals: &'a [ApprovalRequested],
    /// The turn that will continue this one, once every approval has a decision.
    next_response_id: ResponseId,
}

impl<'a> From<&'a PauseDetail> for PausedFields<'a> {
    fn from(paused: &'a PauseDetail) -> Self {
        Self {
            approvals: &paused.approvals,
            next_response_id: paused.next_turn_id.into(),
        }
    }
}

fn write_usage(writer: &mut BlockWriter<'_>, usage: TokenUsage) {
    writer.frame(FrameKind::Usage, |payload| {
        payload.field("input_tokens", &usage.input_tokens);
        payload.field("output_tokens", &usage.output_tokens);
        payload.field("total_tokens", &usage.total_tokens);
        payload.field("reasoning_tokens", &usage.reasoning_tokens);
        payload.field("cached_tokens", &usage.cached_tokens);
    });
}

#[cfg(test)]
mod tests;
