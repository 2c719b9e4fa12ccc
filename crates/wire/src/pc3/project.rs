//! From an event to its frames, type by type (S1 5.5, C-10, D-22).

use serde::Serialize;
use turnwire_event::body::turn::{Completed, Started};
use turnwire_event::body::{component, mcp, status};
use turnwire_event::code::{ErrorCode, ToolType, TurnStatus};
use turnwire_event::{Body, Event, Render, RenderPolicy, ToolUseId, Usage};

use super::block::Blocks;
use super::cursor::Cursor;
use super::failure::{cancelled, failed, reported};
use super::mark::{Mark, Marks};
use super::version::Version;

/// Appends the event's blocks and tells which frames they are; no frame for what is not of a turn,
/// is suppressed, or has no place on this wire. A terminal's last block is the sentinel.
pub fn project(event: &Event, version: Version, out: &mut Vec<u8>) -> Marks {
    blocks(event, version, 0, out)
}

/// As `project`, without the frames that the cursor covers. Ids stay as they are.
pub fn project_after(event: &Event, version: Version, cursor: &Cursor, out: &mut Vec<u8>) -> Marks {
    let skip = if cursor.position < event.id {
        0
    } else if cursor.position > event.id {
        return Marks::NONE;
    } else {
        match cursor.frame {
            None => return Marks::NONE,
            Some(frame) => frame.saturating_add(1),
        }
    };
    blocks(event, version, skip, out)
}

fn blocks(event: &Event, version: Version, skip: u8, out: &mut Vec<u8>) -> Marks {
    let (Some(turn), false) = (event.turn_id, is_hidden(event)) else {
        return Marks::NONE;
    };
    let mut blocks = Blocks {
        event,
        turn,
        version,
        skip,
        next: 0,
        marks: Marks::NONE,
        out,
    };
    write(&mut blocks, &event.body);
    blocks.marks
}

/// Whether the rendering policy hides an event. The end of a turn cannot be hidden: a stream that
/// does not say that it is over looks like a broken line (S1-103).
fn is_hidden(event: &Event) -> bool {
    let suppressed = |render: &Render| match render.policy {
        RenderPolicy::Suppress => true,
        RenderPolicy::Forward | RenderPolicy::Transform | RenderPolicy::Batch => false,
    };
    event.render.as_ref().is_some_and(suppressed) && !event.body.kind().is_terminal()
}

fn write(to: &mut Blocks<'_>, body: &Body) {
    match body {
        Body::TurnStarted(started) => opening(to, started),
        Body::LlmCallStarted(call) if call.first => {
            to.frame(Mark::Thinking, |payload| payload.field("role", "reasoning"));
        }
        Body::ThinkingDelta(delta) if delta.text.is_empty() => {}
        Body::ThinkingDelta(delta) if delta.after_text => chunk(to, Mark::Reasoning, &delta.text),
        Body::ThinkingDelta(delta) => to.frame(Mark::Thinking, |payload| {
            payload.field("content", &delta.text);
            payload.field("role", "reasoning");
        }),
        Body::TextDelta(delta) if delta.text.is_empty() => {}
        Body::TextDelta(delta) => chunk(to, Mark::Text, &delta.text),
        Body::ToolCalled(it) => {
            tool_frame(
                to,
                Mark::ToolCall,
                it.tool_use_id,
                &it.tool_name,
                it.tool_type,
            );
        }
        Body::ToolCompleted(it) => {
            tool_frame(
                to,
                Mark::ToolCompleted,
                it.tool_use_id,
                &it.tool_name,
                it.tool_type,
            );
        }
        Body::ToolFailed(it) if it.called => {
            tool_frame(
                to,
                Mark::ToolCompleted,
                it.tool_use_id,
                &it.tool_name,
                it.tool_type,
            );
        }
        Body::StatusEmitted(emitted) => doing(to, emitted),
        Body::DataLoading(loading) => {
            to.frame(Mark::DataLoading, |payload| payload.field("data", loading));
        }
        Body::DataLoaded(loaded) => {
            to.frame(Mark::DataLoaded, |payload| payload.field("data", loaded));
        }
        Body::ComponentRendered(rendered) => component(to, rendered),
        Body::ErrorReported(error) => reported(to, error),
        Body::McpListToolsStarted(at) => server(to, Mark::McpListToolsStart, at),
        Body::McpListToolsCompleted(listed) => tools(to, listed),
        Body::McpSessionStarted(at) => server(to, Mark::McpSessionStart, at),
        Body::McpSessionProgressed(progressed) => progress(to, progressed),
        Body::TurnCompleted(completed) => ending(to, completed),
        Body::TurnCancelled(end) => cancelled(to, end),
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

fn opening(to: &mut Blocks<'_>, started: &Started) {
    to.bare(Mark::ResponseId);
    to.frame(Mark::Episode, |payload| {
        payload.field("episode_id", &started.episode_id);
    });
}

/// Words or reasoning; the discriminator is kept from 0.4 (D-07).
fn chunk(to: &mut Blocks<'_>, mark: Mark, text: &str) {
    to.frame(mark, |payload| {
        payload.field("type", "chunk");
        payload.field("chunk", text);
    });
}

fn tool_frame(to: &mut Blocks<'_>, mark: Mark, id: ToolUseId, name: &str, kind: ToolType) {
    #[derive(Serialize)]
    struct ToolCall<'a> {
        id: ToolUseId,
        name: &'a str,
        #[serde(rename = "type")]
        kind: ToolType,
    }
    to.frame(mark, |payload| {
        payload.field("tool_call", &ToolCall { id, name, kind });
    });
}

/// Progress: by itself, or for the whole group it is the last of (D-06, D-12). Version 0.4 has no
/// such frame (D-22).
fn doing(to: &mut Blocks<'_>, emitted: &status::Emitted) {
    #[derive(Serialize)]
    struct Data<'a> {
        event_id: &'a str,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        event_ids: &'a [String],
        message: &'a str,
    }
    let group = to.event.render.as_ref().filter(|r| r.group.is_some());
    let data = match (to.version, group.map(|r| (&r.message, &r.event_ids[..]))) {
        (Version::V04, _) => return,
        // The last of its group speaks for all of them.
        (Version::V05, Some((None, []))) => return,
        (Version::V05, Some((message, event_ids @ [first, _, ..]))) => Data {
            event_id: first,
            event_ids,
            message: message.as_deref().unwrap_or(&emitted.message),
        },
        (Version::V05, None | Some(_)) => Data {
            event_id: &emitted.event_id,
            event_ids: &[],
            message: &emitted.message,
        },
    };
    to.frame(Mark::Status, |payload| payload.field("data", &data));
}

fn component(to: &mut Blocks<'_>, rendered: &component::Rendered) {
    to.frame(Mark::Component, |payload| {
        payload.field("chunk", &rendered.component);
        payload.field("tool_call", &rendered.tool_call);
    });
}

fn server(to: &mut Blocks<'_>, mark: Mark, at: &mcp::Server) {
    to.frame(mark, |payload| payload.field("server", &at.server));
}

fn tools(to: &mut Blocks<'_>, listed: &mcp::Listed) {
    to.frame(Mark::McpListToolsCompleted, |payload| {
        payload.field("server", &listed.server);
        payload.field("tool_count", &listed.tool_count);
    });
}

fn progress(to: &mut Blocks<'_>, progressed: &mcp::Progressed) {
    to.frame(Mark::McpSessionProgress, |payload| {
        payload.field("server", &progressed.server);
        payload.field("progress", &progressed.progress);
        if let Some(total) = &progressed.total {
            payload.field("total", total);
        }
    });
}

/// What the turn cost, then its terminal.
fn ending(to: &mut Blocks<'_>, completed: &Completed) {
    usage(to, completed.usage);
    match completed.status {
        TurnStatus::Ok | TurnStatus::Degraded | TurnStatus::Paused => to.bare(Mark::Completed),
        TurnStatus::Failed => match &completed.error {
            None => failed(to, &ErrorCode::InternalError.into()),
            Some(error) => failed(to, error),
        },
    }
}

fn usage(to: &mut Blocks<'_>, usage: Usage) {
    to.frame(Mark::Usage, |payload| {
        payload.field("input_tokens", &usage.input_tokens);
        payload.field("output_tokens", &usage.output_tokens);
        payload.field("total_tokens", &usage.total_tokens);
        payload.field("reasoning_tokens", &usage.reasoning_tokens);
        payload.field("cached_tokens", &usage.cached_tokens);
    });
}

#[cfg(test)]
mod tests;
