//! An event as one line for a person: id, time, type, actor, and a summary of its payload.
//!
//! Text deltas are not lines: [`EventLinePrinter`] writes them as they arrive, sanitized, and
//! begins a new line for the next event.

use turnwire_event::body::turn::TurnError;
use turnwire_event::{Body, ContentBlock, Event, Message, MessageId};

use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::component_line;
use crate::terminal::sanitize::{TextSanitizer, sanitized_line};
use crate::terminal::wording::{code_name, text_of};

const SUMMARY_CHARS_MAX: usize = 160;

/// Formats [`Event`]s in order.
#[derive(Debug)]
pub(crate) struct EventLinePrinter {
    color: ColorMode,
    /// The message whose text is on the current line.
    streaming: Option<(MessageId, TextSanitizer)>,
    /// The last message whose text was printed from deltas.
    printed: Option<MessageId>,
}

impl EventLinePrinter {
    pub(crate) fn new(color: ColorMode) -> Self {
        Self {
            color,
            streaming: None,
            printed: None,
        }
    }

    /// The output for an event.
    pub(crate) fn event(&mut self, event: &Event) -> String {
        if let Body::TextDelta(delta) = &event.body {
            return self.text(delta.message_id, &delta.text);
        }
        let quiet = |text: &str| self.color.tint(TextTone::Quiet, text);
        let kind = event.body.kind().name();
        let head = format!(
            "{} {} {}",
            quiet(&event.id.to_string()),
            quiet(&event.timestamp.to_string()[11..23]),
            self.color.tint(tone(&event.body), kind),
        );
        let summary = sanitized_line(&summary(&event.body), SUMMARY_CHARS_MAX);
        let mut out = format!("{}{head} {} {summary}", self.end_text(), event.actor);
        out.truncate(out.trim_end().len());
        out.push('\n');
        // A message that had finished before the connection has no deltas: its end has the text.
        if let Body::MessageComplete(end) = &event.body
            && self.printed.take() != Some(end.message_id)
        {
            out.push_str(&indented(&end.final_content));
        }
        out
    }

    /// The output for a [`Message`] of a snapshot.
    pub(crate) fn message(&mut self, message: &Message) -> String {
        let role = self.color.tint(TextTone::Strong, &code_name(message.role));
        let mut out = format!("{}{role}\n{}", self.end_text(), indented(&message.content));
        for component in component_line::lines(&message.content) {
            out += &format!("  {}\n", sanitized_line(&component, SUMMARY_CHARS_MAX));
        }
        out
    }

    /// The output that ends text on the current line.
    pub(crate) fn end_text(&mut self) -> &'static str {
        match self.streaming.take() {
            None => "",
            Some(_) => "\n",
        }
    }

    fn text(&mut self, id: MessageId, text: &str) -> String {
        self.printed = Some(id);
        let begin = match &self.streaming {
            Some((streaming, _)) if *streaming == id => String::new(),
            _ => format!("{}  ", self.end_text()),
        };
        let (_, sanitizer) = self
            .streaming
            .get_or_insert_with(|| (id, TextSanitizer::default()));
        begin + &sanitizer.clean(text).replace('\n', "\n  ")
    }
}

/// The text of a message, indented.
fn indented(content: &[ContentBlock]) -> String {
    if !content.iter().any(|block| block.as_text().is_some()) {
        return String::new();
    }
    let clean = TextSanitizer::default().clean(&text_of(content, "\n"));
    format!("  {}\n", clean.replace('\n', "\n  "))
}

fn tone(body: &Body) -> TextTone {
    match body {
        Body::ToolFailed(_)
        | Body::LlmCallFailed(_)
        | Body::SubagentFailed(_)
        | Body::DelegateFailed(_)
        | Body::ErrorReported(_)
        | Body::BusHandlerWarning(_) => TextTone::Bad,
        Body::TurnCompleted(end) if end.error.is_some() => TextTone::Bad,
        Body::TurnCompleted(_) | Body::TurnCancelled(_) => TextTone::Good,
        _ => TextTone::Strong,
    }
}

/// Joins values with spaces.
macro_rules! words {
    ($($value:expr),+ $(,)?) => { [$($value.to_string()),+].join(" ") };
}

/// The payload in a few words.
fn summary(body: &Body) -> String {
    match body {
        Body::SessionCreated(b) => b.workspace_path.clone().unwrap_or_default(),
        Body::SessionClosed(b) => b.reason.clone(),
        Body::TurnStarted(b) => text_of(&b.input, " "),
        Body::TurnCompleted(b) => {
            let failure = b.error.as_ref().map(failure).unwrap_or_default();
            let reason = b.reason.as_deref().unwrap_or_default();
            let tokens = b.usage.total_tokens;
            words!(code_name(b.status), failure, reason, tokens, "tokens")
        }
        Body::TurnCancelRequested(b) => format!("by {}: {}", b.by, b.reason),
        Body::TurnCancelled(b) => {
            let receipt = join(&b.receipt, |line| {
                words!(
                    code_name(line.kind),
                    code_name(line.outcome),
                    "in",
                    line.ms,
                    "ms"
                )
            });
            format!("{} in {}; {receipt}", b.reason, code_name(b.phase))
        }
        Body::RoutingPolicyReloaded(b) => match &b.previous_version {
            Some(previous) => format!("{} instead of {previous}", b.routing_policy_version),
            None => b.routing_policy_version.clone(),
        },
        Body::RouteDecided(b) => format!("{} ({})", b.model, b.reason),
        Body::LlmCallStarted(b) => words!(b.model, "attempt", b.attempt),
        Body::LlmCallCompleted(b) => {
            words!(code_name(b.stop_reason), b.usage.total_tokens, "tokens")
        }
        Body::LlmCallFailed(b) => code_name(b.error_class),
        Body::ToolCalled(b) => words!(b.tool_name, b.input_summary),
        Body::ToolCompleted(b) => words!(b.tool_name, b.duration_ms, "ms", b.result_summary),
        Body::ToolFailed(b) => words!(b.tool_name, code_name(b.error_class)),
        Body::ApprovalRequested(b) => words!(b.approval_id, b.tool_name, b.input_summary),
        Body::ApprovalResolved(b) => words!(b.approval_id, code_name(b.decision), "by", b.by),
        Body::DelegateStarted(b) => words!(b.worker_session_id, b.task_summary),
        Body::DelegateCompleted(b) => {
            let result = if b.success { "ok" } else { "not done" };
            format!("{} {result}: {}", b.worker_session_id, b.summary)
        }
        Body::DelegateFailed(b) => words!(b.worker_session_id, code_name(b.failure_mode)),
        Body::FeedbackRecorded(b) => words!(b.rating, b.comment.as_deref().unwrap_or_default()),
        Body::BusSubscriberRegistered(b) => b.count.to_string(),
        Body::BusSubscriberUnregistered(b) => b.count.to_string(),
        Body::BusHandlerWarning(b) => words!(b.subscription_name, b.reason, b.count),
        Body::DispatchTraced(b) if b.intent_count == 0 => "no sub-agents".to_owned(),
        Body::DispatchTraced(b) => {
            let outcomes = join(&b.outcomes, |invocation| {
                words!(
                    invocation.sub_agent_id,
                    code_name(invocation.outcome),
                    invocation.latency_ms,
                    "ms"
                )
            });
            outcomes + &left_out(&b.dropped)
        }
        Body::SubagentStarted(b) => b.sub_agent_id.clone(),
        Body::SubagentCompleted(b) => {
            words!(b.sub_agent_id, code_name(b.outcome), b.latency_ms, "ms")
        }
        Body::SubagentFailed(b) => {
            words!(b.sub_agent_id, code_name(b.error_class), b.latency_ms, "ms")
        }
        Body::PlanStepStarted(b) => {
            let sub_agents = b.expected_subagents.join(", ");
            format!("{sub_agents} (cap {}){}", b.cap, left_out(&b.dropped))
        }
        Body::PlanStepCompleted(b) => {
            let slots = join(&b.slots, |slot| {
                words!(slot.subagent, code_name(slot.status))
            });
            format!("{}: {slots}", code_name(b.status))
        }
        Body::StatusEmitted(b) => words!(b.event_id, b.message),
        Body::DataLoading(b) => words!(b.id, b.data_type, b.key.ids.len(), "items"),
        Body::DataLoaded(b) => words!(b.id, component_line::collection(&b.data_type, &b.items)),
        Body::ComponentRendered(b) => component_line::component(&b.component, &b.tool_call.name),
        Body::ErrorReported(b) => failure(b),
        Body::AgentErrorEmit(b) => {
            let sub_agent = b.sub_agent_id.as_deref().unwrap_or_default();
            let ends = if b.is_final { "final" } else { "not final" };
            words!("axis", b.axis, sub_agent, ends)
        }
        Body::McpListToolsStarted(b) => b.server.clone(),
        Body::McpListToolsCompleted(b) => words!(b.server, b.tool_count, "tools"),
        Body::McpSessionStarted(b) => b.server.clone(),
        Body::McpSessionProgressed(b) => match b.total {
            None => words!(b.server, b.progress),
            Some(total) => words!(b.server, b.progress, "of", total),
        },
        Body::SupportNoted(b) => b.sub_agent_id.clone(),
        Body::MessageStart(b) => b.model.clone(),
        Body::TextDelta(b) => b.text.clone(),
        Body::ThinkingDelta(b) => b.text.clone(),
        Body::ToolUseStart(b) => b.tool_name.clone(),
        Body::ToolUseInputDelta(b) => b.partial_json.clone(),
        Body::ToolUseEnd(b) => b.final_input.to_string(),
        Body::MessageComplete(b) => code_name(b.stop_reason),
    }
}

fn join<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn left_out(dropped: &[String]) -> String {
    match dropped {
        [] => String::new(),
        dropped => format!("; left out: {}", dropped.join(", ")),
    }
}

/// A [`TurnError`]: its code, then the sub-agent, service and reason it names.
fn failure(error: &TurnError) -> String {
    let subject = error.sub_agent_id.iter().chain(&error.enricher_id).cloned();
    let inner = match error.failed.as_slice() {
        [] => None,
        failed => Some(format!("({})", join(failed, failure))),
    };
    let words = std::iter::once(code_name(error.code))
        .chain(subject)
        .chain(error.reason.map(code_name))
        .chain(inner);
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
