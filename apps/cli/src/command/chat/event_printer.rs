//! Prints the events of a turn: the answer, folded reasoning, and one short line for everything
//! else.
//!
//! [`EventPrinter`] keeps what it has printed of each message, so that a message that arrives again
//! (in a snapshot, or complete at its end) continues where it stopped and no text is printed twice.
//! The complete message is authoritative (S3-067): what its deltas lacked is printed at its end.

mod aside;

pub(crate) use aside::STOPPING;

use std::collections::HashMap;
use std::io;

use serde_json::{Value, json};
use turnwire_event::body::turn::{TurnCancelled, TurnCompleted};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::{
    ApprovalId, Body, ContentBlock, Event, EventFilter, EventType, Message, MessageId,
    RenderDecision, TurnId,
};

use crate::terminal::color::TextTone;
use crate::terminal::component_line;
use crate::terminal::sanitize::TextSanitizer;
use crate::terminal::wording::{counted, text_of};

use super::participants::TurnParticipants;
use super::screen::ChatScreen;
use super::turn_ending::{self, TurnEnding};

/// Printed before a message whose deltas did not add up to it.
const INCOMPLETE: &str = "parts of the answer were lost on the way; here it is in full:";

/// The form of the output of [`EventPrinter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// The answer, and the number of words of reasoning.
    Folded,
    /// The answer and the reasoning.
    Thinking,
    /// The events as JSON.
    Json,
}

/// Prints events to a [`ChatScreen`].
pub(crate) struct EventPrinter {
    pub(crate) screen: ChatScreen,
    form: OutputForm,
    /// The running turn that is printed.
    pub(crate) turn: Option<TurnId>,
    printed: HashMap<MessageId, PrintedMessage>,
    thinking: Option<FoldedThinking>,
    participants: TurnParticipants,
    /// The last status of the turn, until the answer continues.
    status: Option<String>,
    /// True after a cancel request: the receipt reports everything that it stops.
    pub(crate) is_stopping: bool,
    /// The approval requests of the turn, each with the name and input of its tool.
    approvals: Vec<(ApprovalId, String)>,
    /// The approval request that was last answered in this chat.
    pub(crate) answered_here: Option<ApprovalId>,
    /// The codes of the last turn that failed or is degraded, for `/details`.
    pub(crate) codes: Option<String>,
    /// The flags with which a later command reaches the same server.
    pub(crate) flags: String,
}

/// The part of a message that was printed.
#[derive(Debug, Default)]
struct PrintedMessage {
    text: String,
    block: Option<u32>,
}

/// Reasoning that has not ended, folded with [`OutputForm::Folded`].
#[derive(Debug, Default)]
struct FoldedThinking {
    words: u64,
    in_word: bool,
    sanitizer: TextSanitizer,
}

impl EventPrinter {
    pub(crate) fn new(screen: ChatScreen, form: OutputForm, flags: String) -> Self {
        Self {
            screen,
            form,
            turn: None,
            printed: HashMap::new(),
            thinking: None,
            participants: TurnParticipants::default(),
            status: None,
            is_stopping: false,
            approvals: Vec::new(),
            answered_here: None,
            codes: None,
            flags,
        }
    }

    /// True if the output is for people, not for programs.
    pub(crate) fn is_for_people(&self) -> bool {
        self.form != OutputForm::Json
    }

    /// The filter of the events to print. For people: those of the chat preset, approvals and
    /// cancel requests.
    pub(crate) fn filter(&self) -> Value {
        if !self.is_for_people() {
            return json!("preset:full");
        }
        let mut spec = EventFilter::chat().spec();
        let operator_types = [
            EventType::ApprovalRequested,
            EventType::ApprovalResolved,
            EventType::TurnCancelRequested,
        ];
        let names = operator_types.map(|kind| kind.name().to_owned());
        spec.event_types.get_or_insert_default().extend(names);
        json!(spec)
    }

    /// True if `turn` is not the printed one: a turn that is withdrawn from the queue starts and
    /// ends while another runs.
    pub(crate) fn is_beside(&self, turn: Option<TurnId>) -> bool {
        self.turn.is_some() && self.turn != turn
    }

    /// Prints an event, whose bytes are `raw`; `parsed` is `None` if this program does not know its payload.
    pub(crate) fn received(&mut self, raw: &[u8], parsed: Option<&Event>) -> io::Result<()> {
        match parsed {
            _ if !self.is_for_people() => self.screen.raw(raw),
            Some(event) => self.event(event),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.body {
            Body::TurnStarted(_) if !self.is_beside(event.turn_id) => {
                self.turn = event.turn_id;
                self.printed.clear();
                self.participants = TurnParticipants::default();
                self.approvals.clear();
                (self.status, self.is_stopping) = (None, false);
                Ok(())
            }
            Body::TextDelta(d) => self.text(d.message_id, d.content_block_index, &d.text),
            Body::ThinkingDelta(d) => self.think(d.message_id, &d.text),
            Body::MessageComplete(end) => {
                self.complete(end.message_id, &end.final_content)?;
                self.end_thinking()?;
                self.screen.end_line()
            }
            Body::ToolCalled(tool) => {
                self.participants.tool_called(tool, event.timestamp);
                self.show_progress()
            }
            Body::ToolCompleted(tool) => {
                let _ = self
                    .participants
                    .tool_ended(tool.tool_use_id, event.timestamp);
                let text = format!("{} ok, {} ms", tool.tool_name, tool.duration_ms);
                let line = (!is_internal(tool.tool_type)).then_some(text);
                self.tool_end(TextTone::Quiet, line)
            }
            Body::ToolFailed(tool) => {
                let ms = self
                    .participants
                    .tool_ended(tool.tool_use_id, event.timestamp);
                let duration = ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
                let fault = tool_fault(tool.error_class);
                let text = format!("{} {fault}{duration}", tool.tool_name);
                let is_stopped = self.is_stopping && tool.error_class == ToolErrorClass::Cancelled;
                let line = (!is_stopped && !is_internal(tool.tool_type)).then_some(text);
                self.tool_end(TextTone::Bad, line)
            }
            Body::DelegateStarted(start) => self.worker_started(start),
            Body::DelegateCompleted(end) => self.worker_completed(end),
            Body::DelegateFailed(end) => self.worker_failed(end),
            Body::TurnCancelRequested(_) if !self.is_beside(event.turn_id) => self.show_stopping(),
            Body::ApprovalRequested(request) => {
                let mut description = format!("{} {}", request.tool_name, request.input_summary);
                if request.input_truncated {
                    let bytes = request.input_bytes.unwrap_or_default();
                    description += &format!(" (the start of {bytes} bytes)");
                }
                self.approvals.push((request.approval_id, description));
                Ok(())
            }
            Body::ApprovalResolved(resolved) => self.approval_resolved(resolved),
            Body::StatusEmitted(status) => self.status(&status.message, event.render.as_ref()),
            // Without items the event only removes a placeholder.
            Body::DataLoaded(data) if data.items.is_empty() => Ok(()),
            Body::DataLoaded(data) => {
                let line = component_line::collection(&data.data_type, &data.items);
                self.note(TextTone::Strong, &line)
            }
            Body::ComponentRendered(rendered) => {
                let line = component_line::component(&rendered.component, &rendered.tool_call.name);
                self.note(TextTone::Strong, &line)
            }
            // Failures that do not end the turn are for programs: the answer names what is missing.
            _ => Ok(()),
        }
    }

    fn tool_end(&mut self, tone: TextTone, line: Option<String>) -> io::Result<()> {
        if let Some(line) = line {
            self.screen.note(tone, &line)?;
        }
        self.show_progress()
    }

    /// Shows a status. The last status of a group has the text for all.
    fn status(&mut self, alone: &str, render: Option<&RenderDecision>) -> io::Result<()> {
        let group = render.filter(|render| render.group.is_some());
        let text = match group.map(|group| (group.message.as_deref(), group.event_ids.len())) {
            Some((None, 0)) => return Ok(()),
            Some((Some(all), 2..)) => all,
            Some(_) | None => alone,
        };
        self.status = Some(text.to_owned());
        self.screen.temporary_or_note(text)
    }

    /// Prints a line beside the answer.
    fn note(&mut self, tone: TextTone, text: &str) -> io::Result<()> {
        self.screen.note(tone, text)?;
        self.show_progress()
    }

    /// Shows the status, or the running tools, as a temporary line.
    fn show_progress(&mut self) -> io::Result<()> {
        let names = self.participants.running_tools();
        match &self.status {
            _ if self.is_stopping => self.screen.temporary(STOPPING),
            Some(status) => self.screen.temporary(status),
            None if names.is_empty() => Ok(()),
            None => self.screen.temporary(&format!("{}…", names.join(", "))),
        }
    }

    /// Prints text of a message.
    fn text(&mut self, id: MessageId, block: u32, text: &str) -> io::Result<()> {
        self.end_thinking()?;
        self.status = None;
        let printed = self.printed.entry(id).or_default();
        printed.text.push_str(text);
        let last = printed.block.replace(block);
        if last.is_some_and(|last| last != block) {
            self.screen.end_line()?;
        }
        self.screen.answer(text)
    }

    /// Prints or counts reasoning of a message.
    fn think(&mut self, id: MessageId, text: &str) -> io::Result<()> {
        self.printed.entry(id).or_default();
        let thinking = self.thinking.get_or_insert_default();
        for c in text.chars() {
            let in_word = !c.is_whitespace();
            thinking.words += u64::from(in_word && !thinking.in_word);
            thinking.in_word = in_word;
        }
        match self.form {
            OutputForm::Thinking => self.screen.thinking(&mut thinking.sanitizer, text),
            OutputForm::Folded => self.screen.temporary(&folded(thinking.words)),
            OutputForm::Json => Ok(()),
        }
    }

    fn end_thinking(&mut self) -> io::Result<()> {
        let Some(mut thinking) = self.thinking.take() else {
            return Ok(());
        };
        match self.form {
            OutputForm::Thinking => self.screen.thinking(&mut thinking.sanitizer, "\n"),
            OutputForm::Folded if thinking.words > 0 => {
                self.screen.note(TextTone::Quiet, &folded(thinking.words))
            }
            OutputForm::Folded | OutputForm::Json => Ok(()),
        }
    }

    fn whole(&mut self, id: MessageId, content: &[ContentBlock]) -> io::Result<()> {
        for (block, index) in content.iter().zip(0..) {
            match block {
                ContentBlock::Text { text } => self.text(id, index, text)?,
                ContentBlock::Thinking { text, .. } => self.think(id, text)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Prints the rest of a message that arrives in a snapshot or a list, not as deltas.
    pub(crate) fn catch_up(&mut self, message: &Message) -> io::Result<()> {
        self.complete(message.id, &message.content)
    }

    /// Prints what `content` has beyond the printed deltas. If a delta is missing in the middle, the
    /// text is printed again as a whole.
    fn complete(&mut self, id: MessageId, content: &[ContentBlock]) -> io::Result<()> {
        let Some(printed) = self.printed.get_mut(&id) else {
            return self.whole(id, content);
        };
        let text = text_of(content, "");
        if printed.text.starts_with(&text) {
            return Ok(());
        }
        let mut skip = printed.text.len();
        if !text.starts_with(&printed.text) {
            *printed = PrintedMessage::default();
            skip = 0;
            self.end_thinking()?;
            self.screen.end_line()?;
            self.note(TextTone::Quiet, INCOMPLETE)?;
        }
        for (block, index) in content.iter().zip(0..) {
            let ContentBlock::Text { text } = block else {
                continue;
            };
            let missing = &text[skip.min(text.len())..];
            skip = skip.saturating_sub(text.len());
            if !missing.is_empty() {
                self.text(id, index, missing)?;
            }
        }
        Ok(())
    }

    /// Notes that a turn has ended: the next event is not part of it.
    pub(crate) fn turn_ended(&mut self, turn: TurnId) {
        self.turn = self.turn.filter(|printed| *printed != turn);
        // With JSON output no turn is printed, and a turn in the queue is not either.
        self.is_stopping &= self.turn.is_some();
    }

    /// Prints that a queued turn ended while another runs.
    pub(crate) fn ended_beside(&mut self, ending: TurnEnding) -> io::Result<()> {
        let text = match ending {
            TurnEnding::Cancelled => "a turn that waited was withdrawn",
            _ => "a turn that waited ended",
        };
        match self.is_for_people() {
            true => self.screen.note(TextTone::Quiet, text),
            false => Ok(()),
        }
    }

    /// Prints the ending of a turn that was not cancelled.
    pub(crate) fn completed(&mut self, end: &TurnCompleted) -> io::Result<TurnEnding> {
        let (ending, text) = turn_ending::completed_ending(end);
        let codes = turn_ending::ending_codes(end);
        self.codes = Some(codes).filter(|codes| !codes.is_empty());
        let tone = match ending {
            TurnEnding::Answered | TurnEnding::Paused => TextTone::Quiet,
            TurnEnding::Failed | TurnEnding::Cancelled | TurnEnding::Rejected => TextTone::Bad,
        };
        self.ending(tone, text)?;
        Ok(ending)
    }

    /// Prints the receipt of a cancelled turn.
    pub(crate) fn cancelled(&mut self, end: &TurnCancelled) -> io::Result<TurnEnding> {
        let text = turn_ending::receipt_text(end, &self.participants);
        self.ending(TextTone::Strong, Some(text))?;
        Ok(TurnEnding::Cancelled)
    }

    fn ending(&mut self, tone: TextTone, text: Option<String>) -> io::Result<()> {
        if !self.is_for_people() {
            return Ok(());
        }
        self.end_thinking()?;
        self.screen.end_line()?;
        (self.status, self.is_stopping) = (None, false);
        self.screen.clear_temporary()?;
        text.map_or(Ok(()), |text| self.screen.note(tone, &text))
    }
}

/// True for tools inside an answer: people see their statuses and components, and the answer.
fn is_internal(tool: ToolType) -> bool {
    matches!(tool, ToolType::SubAgent | ToolType::Ccs | ToolType::Render)
}

/// How a tool failed, after its name.
fn tool_fault(class: ToolErrorClass) -> &'static str {
    match class {
        ToolErrorClass::Cancelled => "was stopped",
        ToolErrorClass::Timeout => "took too long",
        ToolErrorClass::EnvelopeError => "failed: its data service answered with an error",
        ToolErrorClass::PrincipalMismatch => "was refused: the answer was for somebody else",
        ToolErrorClass::InvalidInput => "was called with an input that it does not accept",
        ToolErrorClass::NotExecuted => "was not called: too many at once",
        ToolErrorClass::Internal => "failed",
    }
}

fn folded(words: u64) -> String {
    format!("thinking… ({})", counted(words, "word"))
}

#[cfg(test)]
mod tests;
