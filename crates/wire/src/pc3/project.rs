//! From an event to its frames, type by type (S1 5.5, C-10, D-22).

use serde::Serialize;
use turnwire_event::body::tool;
use turnwire_event::body::turn::{Cancelled, Completed, Started, TurnError};
use turnwire_event::code::{CancelCode, ErrorCode, Reason, ToolType, TurnStatus};
use turnwire_event::{Body, Event, RenderPolicy, ToolUseId, Usage};

use super::block::Blocks;
use super::cursor::Cursor;
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
    let suppressed = |policy| match policy {
        RenderPolicy::Suppress => true,
        RenderPolicy::Forward | RenderPolicy::Transform | RenderPolicy::Batch => false,
    };
    let hidden = event.render.as_ref().is_some_and(|r| suppressed(r.policy));
    let (Some(turn), false) = (event.turn_id, hidden) else {
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
        Body::ToolCalled(called) => {
            let tool::Called {
                tool_use_id,
                tool_name,
                tool_type,
                ..
            } = called;
            tool_frame(to, Mark::ToolCall, *tool_use_id, tool_name, *tool_type);
        }
        Body::ToolCompleted(done) => {
            let tool::Completed {
                tool_use_id,
                tool_name,
                tool_type,
                ..
            } = done;
            tool_frame(to, Mark::ToolCompleted, *tool_use_id, tool_name, *tool_type);
        }
        Body::ToolFailed(failed) if failed.called => {
            let tool::Failed {
                tool_use_id,
                tool_name,
                tool_type,
                ..
            } = failed;
            tool_frame(to, Mark::ToolCompleted, *tool_use_id, tool_name, *tool_type);
        }
        Body::TurnCompleted(completed) => ending(to, completed),
        Body::TurnCancelled(cancelled) => cancel(to, cancelled),
        Body::LlmCallStarted(_)
        | Body::ToolFailed(_)
        | Body::SessionCreated(_)
        | Body::SessionClosed(_)
        | Body::TurnCancelRequested(_)
        | Body::RouteDecided(_)
        | Body::LlmCallCompleted(_)
        | Body::LlmCallFailed(_)
        | Body::FeedbackRecorded(_)
        | Body::BusSubscriberRegistered(_)
        | Body::BusSubscriberUnregistered(_)
        | Body::DispatchTraced(_)
        | Body::SubagentStarted(_)
        | Body::SubagentCompleted(_)
        | Body::SubagentFailed(_)
        | Body::StatusEmitted(_)
        | Body::DataLoading(_)
        | Body::DataLoaded(_)
        | Body::ComponentRendered(_)
        | Body::ErrorReported(_)
        | Body::PlanStepStarted(_)
        | Body::PlanStepCompleted(_)
        | Body::AgentErrorEmit(_)
        | Body::McpListToolsStarted(_)
        | Body::McpListToolsCompleted(_)
        | Body::McpSessionStarted(_)
        | Body::McpSessionProgressed(_)
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

/// The `error` object: the code, and of the rest only what the code is for (S1-089, S1-093).
#[derive(Serialize)]
struct Detail<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enricher_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
}

impl<'a> Detail<'a> {
    fn of(mark: Mark, error: &'a TurnError) -> Self {
        let mut detail = Self::from(mark);
        if mark == Mark::ErrorSubAgent {
            detail.sub_agent_id = error.sub_agent_id.as_deref();
        }
        if mark == Mark::ErrorEnvelope {
            detail.enricher_id = error.enricher_id.as_deref();
            detail.reason = error.reason;
        }
        detail
    }
}

impl From<Mark> for Detail<'_> {
    fn from(mark: Mark) -> Self {
        Self {
            code: mark.error_code().or(mark.cancel_code()).unwrap_or_default(),
            sub_agent_id: None,
            enricher_id: None,
            reason: None,
        }
    }
}

/// The terminal of a turn that failed. Version 0.4 has no codes for the axes (D-22).
fn failed(to: &mut Blocks<'_>, error: &TurnError) {
    let mark = match (to.version, error.code) {
        (Version::V04 | Version::V05, ErrorCode::InternalError) => Mark::ErrorInternal,
        (Version::V04 | Version::V05, ErrorCode::RateLimitError) => Mark::ErrorRateLimit,
        (Version::V05, ErrorCode::SubAgentFailed) => Mark::ErrorSubAgent,
        (Version::V05, ErrorCode::CcsEnvelopeError) => Mark::ErrorEnvelope,
        (Version::V05, ErrorCode::PartialFanOut) => Mark::ErrorFanOut,
        (
            Version::V04,
            ErrorCode::SubAgentFailed | ErrorCode::CcsEnvelopeError | ErrorCode::PartialFanOut,
        ) => Mark::ErrorInternal,
    };
    final_error(to, mark, &Detail::of(mark, error));
}

/// The terminal of a turn that was cancelled: in 0.4 an error like any other.
fn cancel(to: &mut Blocks<'_>, cancelled: &Cancelled) {
    let mark = match (to.version, cancelled.code) {
        (Version::V05, CancelCode::RequestCancelled) => Mark::CancelledRequest,
        (Version::V05, CancelCode::IdleTimeout) => Mark::CancelledIdle,
        (Version::V04, CancelCode::RequestCancelled) => Mark::ErrorRequestCancelled,
        (Version::V04, CancelCode::IdleTimeout) => Mark::ErrorIdleTimeout,
    };
    let detail = Detail::from(mark);
    match to.version {
        Version::V04 => final_error(to, mark, &detail),
        Version::V05 => to.frame(mark, |payload| payload.field("error", &detail)),
    }
}

/// An error that ends the turn. `is_final` is on every error of either version (S1-026).
fn final_error(to: &mut Blocks<'_>, mark: Mark, detail: &Detail<'_>) {
    to.frame(mark, |payload| {
        payload.field("error", detail);
        payload.field("is_final", &true);
    });
}

#[cfg(test)]
mod tests;
