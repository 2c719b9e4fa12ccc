//! An event as one line for a person: when, where, what, who, and the gist of its payload.
//!
//! Words the model writes are not lines: they flow as they come, cleaned, and the next line waits
//! for them to end.

use turnwire_event::{Body, ContentBlock, Event, Message, MessageId};

use crate::clean::{Cleaner, line};
use crate::paint::{Paint, Tone};

/// The longest gist.
const GIST_CHARS_MAX: usize = 160;

/// Prints events in order.
#[derive(Debug)]
pub(crate) struct Printer {
    paint: Paint,
    /// The message whose words are on the current line.
    flowing: Option<(MessageId, Cleaner)>,
    /// The message whose words were shown as they came.
    shown: Option<MessageId>,
}

impl Printer {
    /// A printer with or without colour.
    pub(crate) fn new(paint: Paint) -> Self {
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
            self.paint.tint(Tone::Quiet, &event.id.to_string()),
            self.paint
                .tint(Tone::Quiet, &event.timestamp.to_string()[11..23]),
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
        let role = self.paint.tint(Tone::Strong, &role);
        format!("{}{role}\n{}", self.pause(), words(&message.content))
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
        let (_, cleaner) = self.flowing.get_or_insert_with(|| (id, Cleaner::default()));
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
    let clean = Cleaner::default().clean(&text.join("\n"));
    format!("  {}\n", clean.replace('\n', "\n  "))
}

fn tone(body: &Body) -> Tone {
    match body {
        Body::ToolFailed(_) | Body::LlmCallFailed(_) | Body::BusHandlerWarning(_) => Tone::Bad,
        Body::TurnCompleted(end) if end.error.is_some() => Tone::Bad,
        Body::TurnCompleted(_) | Body::TurnCancelled(_) => Tone::Good,
        _ => Tone::Strong,
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
            let why = b.error.as_ref().map(|e| word(&e.code)).unwrap_or_default();
            let reason = b.reason.as_deref().unwrap_or_default();
            format!(
                "{} {why} {reason} {} tokens",
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
        Body::FeedbackRecorded(b) => {
            format!("{} {}", b.rating, b.comment.as_deref().unwrap_or_default())
        }
        Body::BusSubscriberRegistered(b) => format!("{}", b.count),
        Body::BusSubscriberUnregistered(b) => format!("{}", b.count),
        Body::BusHandlerWarning(b) => {
            format!("{} {} {}", b.subscription_name, b.reason, b.count)
        }
        Body::MessageStart(b) => b.model.clone(),
        Body::TextDelta(b) => b.text.clone(),
        Body::ThinkingDelta(b) => b.text.clone(),
        Body::ToolUseStart(b) => b.tool_name.clone(),
        Body::ToolUseInputDelta(b) => b.partial_json.clone(),
        Body::ToolUseEnd(b) => b.final_input.to_string(),
        Body::MessageComplete(b) => word(&b.stop_reason),
    }
}

/// A code as it is on the wire.
pub(crate) fn word(code: &impl serde::Serialize) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::body::{stream, turn};
    use turnwire_event::code::{ErrorCode, TurnStatus};
    use turnwire_event::{
        Actor, Epoch, Position, Role, Seq, SessionId, StopReason, Sub, Timestamp, TurnId, Ulid,
        Usage,
    };

    fn event(sub: u32, body: Body) -> Event {
        Event {
            id: Position {
                epoch: Epoch(1),
                seq: Seq(3),
                sub: Sub(sub),
            },
            session_id: SessionId(Ulid(1)),
            turn_id: Some(TurnId(Ulid(2))),
            actor: Actor::ORCHESTRATOR,
            timestamp: Timestamp::from_millis(5),
            trace: None,
            render: None,
            body,
        }
    }

    const ID: MessageId = MessageId(Ulid(4));

    fn start() -> Body {
        Body::MessageStart(stream::MessageStart {
            message_id: ID,
            role: Role::Assistant,
            model: "m".into(),
        })
    }

    fn delta(text: &str) -> Body {
        Body::TextDelta(stream::TextDelta {
            message_id: ID,
            content_block_index: 0,
            text: text.into(),
        })
    }

    fn complete() -> Body {
        Body::MessageComplete(stream::MessageComplete {
            message_id: ID,
            stop_reason: StopReason::EndTurn,
            final_content: vec![ContentBlock::text("a\u{1b}[2Jb\nc")],
            usage: Usage::default(),
        })
    }

    #[test]
    fn words_flow_and_the_next_line_waits_for_them() {
        let mut printer = Printer::new(Paint::Plain);
        let bodies = [start(), delta("a\u{1b}["), delta("2Jb\nc"), complete()];
        let out: String = bodies
            .into_iter()
            .zip(1..)
            .map(|(body, sub)| printer.event(&event(sub, body)))
            .collect();
        assert_eq!(
            out,
            "evt_00010000000003.000001 00:00:00.005 message.start orchestrator m\n  \
             ab\n  c\n\
             evt_00010000000003.000004 00:00:00.005 message.complete orchestrator end_turn\n"
        );
    }

    #[test]
    fn a_message_that_was_finished_before_is_shown_with_its_end() {
        let mut printer = Printer::new(Paint::Plain);
        printer.event(&event(1, start()));
        assert_eq!(
            printer.event(&event(9, complete())),
            "evt_00010000000003.000009 00:00:00.005 message.complete orchestrator end_turn\n  \
             ab\n  c\n"
        );
    }

    #[test]
    fn a_failed_turn_says_so_and_is_cleaned() {
        let mut printer = Printer::new(Paint::Plain);
        let body = Body::TurnCompleted(turn::Completed {
            status: TurnStatus::Failed,
            usage: Usage::default(),
            error: Some(ErrorCode::InternalError.into()),
            reason: Some("server\u{1b}]0;x\u{7}_restart".into()),
            partial: None,
        });
        assert_eq!(
            printer.event(&event(0, body)),
            "evt_00010000000003 00:00:00.005 turn.completed orchestrator \
             failed INTERNAL_ERROR server_restart 0 tokens\n"
        );
    }
}
