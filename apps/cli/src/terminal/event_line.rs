//! An event as one line for a person: when, where, what, who, and the gist of its payload.
//!
//! Words the model writes are not lines: they flow as they come, cleaned, and the next line waits
//! for them to end.

use turnwire_event::body::dispatch::DispatchTraced;
use turnwire_event::body::turn::TurnError;
use turnwire_event::{Body, ContentBlock, Event, Message, MessageId};

use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::component_line;
use crate::terminal::sanitize::{TextSanitizer, line};

const GIST_CHARS_MAX: usize = 160;

/// Prints events in order.
#[derive(Debug)]
pub(crate) struct EventLinePrinter {
    paint: ColorMode,
    /// The message whose words are on the current line.
    flowing: Option<(MessageId, TextSanitizer)>,
    /// The message whose words were shown as they came.
    shown: Option<MessageId>,
}

impl EventLinePrinter {
    /// A printer with or without colour.
    pub(crate) fn new(paint: ColorMode) -> Self {
        Self {
            paint,
            flowing: None,
            shown: None,
        }
    }

    /// What to write for an event.
    pub(crate) fn event(&mut self, event: &Event) -> String {
        if let Body::TextDelta(delta) = &event.body {
            return self.flow(delta.message_id, &delta.text);
        }
        let head = format!(
            "{} {} {}",
            self.paint.tint(TextTone::Quiet, &event.id.to_string()),
            self.paint
                .tint(TextTone::Quiet, &event.timestamp.to_string()[11..23]),
            self.paint.tint(tone(&event.body), event.body.kind().name()),
        );
        let gist = line(&gist(&event.body), GIST_CHARS_MAX);
        let mut out = format!("{}{head} {} {gist}", self.pause(), event.actor);
        out.truncate(out.trim_end().len());
        out.push('\n');
        // A message that was finished before we came has no deltas: its words come with its end.
        if let Body::MessageComplete(end) = &event.body
            && self.shown.take() != Some(end.message_id)
        {
            out.push_str(&words(&end.final_content));
        }
        out
    }

    /// What to write for a message that was there before we came.
    pub(crate) fn message(&mut self, message: &Message) -> String {
        let role = format!("{:?}", message.role).to_lowercase();
        let role = self.paint.tint(TextTone::Strong, &role);
        let components = component_line::shown(&message.content);
        let lines = components.iter().map(|card| line(card, GIST_CHARS_MAX));
        let component_text: String = lines.map(|card| format!("  {card}\n")).collect();
        let text = words(&message.content);
        format!("{}{role}\n{text}{component_text}", self.pause())
    }

    /// What to write to end words that are on the current line.
    pub(crate) fn pause(&mut self) -> &'static str {
        match self.flowing.take() {
            None => "",
            Some(_) => "\n",
        }
    }

    fn flow(&mut self, id: MessageId, text: &str) -> String {
        self.shown = Some(id);
        let begins = self
            .flowing
            .as_ref()
            .is_none_or(|(flowing, _)| *flowing != id);
        let before = if begins { self.pause() } else { "" };
        let (_, cleaner) = self
            .flowing
            .get_or_insert_with(|| (id, TextSanitizer::default()));
        let clean = cleaner.clean(text).replace('\n', "\n  ");
        format!("{before}{}{clean}", if begins { "  " } else { "" })
    }
}

/// The words of a message, indented.
fn words(content: &[ContentBlock]) -> String {
    let text: Vec<_> = content.iter().filter_map(ContentBlock::as_text).collect();
    if text.is_empty() {
        return String::new();
    }
    let clean = TextSanitizer::default().clean(&text.join("\n"));
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

/// The payload in a few words.
fn gist(body: &Body) -> String {
    match body {
        Body::SessionCreated(b) => b.workspace_path.clone().unwrap_or_default(),
        Body::SessionClosed(b) => b.reason.clone(),
        Body::TurnStarted(b) => {
            let text: Vec<_> = b.input.iter().filter_map(ContentBlock::as_text).collect();
            text.join(" ")
        }
        Body::TurnCompleted(b) => {
            let failure = b.error.as_ref().map(failure).unwrap_or_default();
            let reason = b.reason.as_deref().unwrap_or_default();
            format!(
                "{} {failure} {reason} {} tokens",
                word(&b.status),
                b.usage.total_tokens
            )
        }
        Body::TurnCancelRequested(b) => format!("by {}: {}", b.by, b.reason),
        Body::TurnCancelled(b) => {
            let lines = b.receipt.iter();
            let receipt: Vec<_> = lines
                .map(|l| format!("{} {} in {} ms", word(&l.kind), word(&l.outcome), l.ms))
                .collect();
            format!("{} in {}; {}", b.reason, word(&b.phase), receipt.join(", "))
        }
        Body::RoutingPolicyReloaded(b) => match &b.previous_version {
            Some(previous) => format!("{} instead of {previous}", b.routing_policy_version),
            None => b.routing_policy_version.clone(),
        },
        Body::RouteDecided(b) => format!("{} ({})", b.model, b.reason),
        Body::LlmCallStarted(b) => format!("{} attempt {}", b.model, b.attempt),
        Body::LlmCallCompleted(b) => {
            format!("{} {} tokens", word(&b.stop_reason), b.usage.total_tokens)
        }
        Body::LlmCallFailed(b) => word(&b.error_class),
        Body::ToolCalled(b) => format!("{} {}", b.tool_name, b.input_summary),
        Body::ToolCompleted(b) => {
            format!("{} {} ms {}", b.tool_name, b.duration_ms, b.result_summary)
        }
        Body::ToolFailed(b) => format!("{} {}", b.tool_name, word(&b.error_class)),
        Body::ApprovalRequested(b) => {
            format!("{} {} {}", b.approval_id, b.tool_name, b.input_summary)
        }
        Body::ApprovalResolved(b) => format!("{} {} by {}", b.approval_id, word(&b.decision), b.by),
        Body::DelegateStarted(b) => format!("{} {}", b.worker_session_id, b.task_summary),
        Body::DelegateCompleted(b) => {
            let result = if b.success { "ok" } else { "not done" };
            format!("{} {result}: {}", b.worker_session_id, b.summary)
        }
        Body::DelegateFailed(b) => format!("{} {}", b.worker_session_id, word(&b.failure_mode)),
        Body::FeedbackRecorded(b) => {
            format!("{} {}", b.rating, b.comment.as_deref().unwrap_or_default())
        }
        Body::BusSubscriberRegistered(b) => format!("{}", b.count),
        Body::BusSubscriberUnregistered(b) => format!("{}", b.count),
        Body::BusHandlerWarning(b) => {
            format!("{} {} {}", b.subscription_name, b.reason, b.count)
        }
        Body::DispatchTraced(b) => dispatch(b),
        Body::SubagentStarted(b) => b.sub_agent_id.clone(),
        Body::SubagentCompleted(b) => {
            format!(
                "{} {} {} ms",
                b.sub_agent_id,
                word(&b.outcome),
                b.latency_ms
            )
        }
        Body::SubagentFailed(b) => {
            let class = word(&b.error_class);
            format!("{} {class} {} ms", b.sub_agent_id, b.latency_ms)
        }
        Body::PlanStepStarted(b) => {
            let sub_agents = b.expected_subagents.join(", ");
            format!("{sub_agents} (cap {}){}", b.cap, left_out(&b.dropped))
        }
        Body::PlanStepCompleted(b) => {
            let slots = b.slots.iter();
            let slots: Vec<_> = slots
                .map(|slot| format!("{} {}", slot.subagent, word(&slot.status)))
                .collect();
            format!("{}: {}", word(&b.status), slots.join(", "))
        }
        Body::StatusEmitted(b) => format!("{} {}", b.event_id, b.message),
        Body::DataLoading(b) => format!("{} {} {} items", b.id, b.data_type, b.key.ids.len()),
        Body::DataLoaded(b) => format!(
            "{} {}",
            b.id,
            component_line::collection(&b.data_type, &b.items)
        ),
        Body::ComponentRendered(b) => component_line::component(&b.component, &b.tool_call.name),
        Body::ErrorReported(b) => failure(b),
        Body::AgentErrorEmit(b) => {
            let sub_agent = b.sub_agent_id.as_deref().unwrap_or_default();
            let ends = if b.is_final { "final" } else { "not final" };
            format!("axis {} {sub_agent} {ends}", b.axis)
        }
        Body::McpListToolsStarted(b) => b.server.clone(),
        Body::McpListToolsCompleted(b) => format!("{} {} tools", b.server, b.tool_count),
        Body::McpSessionStarted(b) => b.server.clone(),
        Body::McpSessionProgressed(b) => match b.total {
            None => format!("{} {}", b.server, b.progress),
            Some(total) => format!("{} {} of {total}", b.server, b.progress),
        },
        Body::SupportNoted(b) => b.sub_agent_id.clone(),
        Body::MessageStart(b) => b.model.clone(),
        Body::TextDelta(b) => b.text.clone(),
        Body::ThinkingDelta(b) => b.text.clone(),
        Body::ToolUseStart(b) => b.tool_name.clone(),
        Body::ToolUseInputDelta(b) => b.partial_json.clone(),
        Body::ToolUseEnd(b) => b.final_input.to_string(),
        Body::MessageComplete(b) => word(&b.stop_reason),
    }
}

/// Which sub-agents ran and how they did.
fn dispatch(traced: &DispatchTraced) -> String {
    if traced.intent_count == 0 {
        return "no sub-agents".to_owned();
    }
    let outcomes = traced.outcomes.iter();
    let outcomes: Vec<_> = outcomes
        .map(|o| {
            format!(
                "{} {} {} ms",
                o.sub_agent_id,
                word(&o.outcome),
                o.latency_ms
            )
        })
        .collect();
    format!("{}{}", outcomes.join(", "), left_out(&traced.dropped))
}

fn left_out(dropped: &[String]) -> String {
    match dropped {
        [] => String::new(),
        dropped => format!("; left out: {}", dropped.join(", ")),
    }
}

/// A failure by its code and what the code is about.
fn failure(error: &TurnError) -> String {
    let about = error.sub_agent_id.iter().chain(&error.enricher_id).cloned();
    let reason = error.reason.iter().map(word);
    let inside = error.failed.iter().map(failure);
    let inside: Vec<String> = inside.collect();
    let inside = (!inside.is_empty()).then(|| format!("({})", inside.join(", ")));
    let words = std::iter::once(word(&error.code))
        .chain(about)
        .chain(reason);
    words.chain(inside).collect::<Vec<_>>().join(" ")
}

/// A code as it is on the wire.
pub(crate) fn word(code: &impl serde::Serialize) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
