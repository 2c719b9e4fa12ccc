//! From events to the screen: which words are the answer, what is folded, what is one short line.
//!
//! A message is remembered by how much of it was told, so that one that comes again (in a
//! snapshot, or whole after its end) goes on where it was left and nothing is told twice.

mod aside;

use std::collections::HashMap;
use std::io;

use serde_json::{Value, json};
use turnwire_client::ReceivedEvent;
use turnwire_event::body::turn::{TurnCancelled, TurnCompleted};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::{
    ApprovalId, Body, ContentBlock, Event, EventFilter, EventType, Message, MessageId,
    RenderDecision, TurnId,
};

use crate::terminal::color::TextTone;
use crate::terminal::component_line;
use crate::terminal::event_line::word;
use crate::terminal::sanitize::TextSanitizer;

use super::participants::TurnParticipants;
use super::screen::ChatScreen;
use super::turn_ending::{self, TurnEnding};

/// What is made of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// The answer, with reasoning folded into how much there is.
    Folded,
    /// The answer, with the reasoning.
    Thinking,
    /// The events as they are.
    Json,
}

pub(crate) struct EventPrinter {
    /// Where it is told.
    pub(crate) screen: ChatScreen,
    form: OutputForm,
    /// The turn that is told: it has begun and not ended.
    turn: Option<TurnId>,
    said: HashMap<MessageId, PrintedMessage>,
    thought: Option<FoldedThinking>,
    cast: TurnParticipants,
    /// What is being done, in the server's words, until the answer comes.
    doing: Option<String>,
    /// Whether the turn was asked to stop: what it stops is told by the receipt.
    stopping: bool,
    /// What the turn has asked a person, in words.
    asked: Vec<(ApprovalId, String)>,
    /// The question that was answered here.
    answered: Option<ApprovalId>,
    /// What a later command must be told to speak with the same server.
    flags: String,
}

/// How much of a message was told.
#[derive(Debug, Default)]
struct PrintedMessage {
    text_bytes: usize,
    block: Option<u32>,
}

/// Reasoning that has not ended.
#[derive(Debug, Default)]
struct FoldedThinking {
    words: u64,
    inside: bool,
    cleaner: TextSanitizer,
}

impl EventPrinter {
    /// Tells onto a screen; `flags` are those of this command that another one must be given.
    pub(crate) fn new(screen: ChatScreen, form: OutputForm, flags: String) -> Self {
        Self {
            screen,
            form,
            turn: None,
            said: HashMap::new(),
            thought: None,
            cast: TurnParticipants::default(),
            doing: None,
            stopping: false,
            asked: Vec::new(),
            answered: None,
            flags,
        }
    }

    /// Whether people are told, and not programs.
    pub(crate) fn is_for_people(&self) -> bool {
        self.form != OutputForm::Json
    }

    /// The events it is for. People get an end-user's view, and beside it what is asked of them
    /// and that a turn will stop.
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

    /// From here on a turn is told that began before, or none.
    pub(crate) fn goes_on_with(&mut self, turn: Option<TurnId>) {
        self.turn = turn;
    }

    /// Whether a turn is another than the one that is told: one that waits in line begins and
    /// ends in the midst of it when it is withdrawn.
    pub(crate) fn is_beside(&self, turn: Option<TurnId>) -> bool {
        self.turn.is_some() && self.turn != turn
    }

    /// Tells an event as it came, `parsed` if it can be read.
    pub(crate) fn received(
        &mut self,
        received: &ReceivedEvent,
        parsed: Option<&Event>,
    ) -> io::Result<()> {
        match (self.form, parsed) {
            (OutputForm::Json, _) => self.screen.raw(&received.raw),
            (OutputForm::Folded | OutputForm::Thinking, Some(event)) => self.event(event),
            // A payload that has grown beyond this program has nothing for its reader.
            (OutputForm::Folded | OutputForm::Thinking, None) => Ok(()),
        }
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.body {
            Body::TurnStarted(_) => {
                if !self.is_beside(event.turn_id) {
                    self.turn = event.turn_id;
                    self.said.clear();
                    self.cast = TurnParticipants::default();
                    self.asked.clear();
                    (self.doing, self.stopping) = (None, false);
                }
                Ok(())
            }
            Body::TextDelta(d) => self.text(d.message_id, d.content_block_index, &d.text),
            Body::ThinkingDelta(d) => self.think(d.message_id, &d.text),
            Body::MessageComplete(end) => {
                if !self.said.contains_key(&end.message_id) {
                    self.whole(end.message_id, &end.final_content)?;
                }
                self.thought_end()?;
                self.screen.line_end()
            }
            Body::ToolCalled(tool) => {
                self.cast.called(tool, event.timestamp);
                self.still_running()
            }
            Body::ToolCompleted(tool) => {
                self.cast.over(tool.tool_use_id, event.timestamp);
                let text = format!("{} ok, {} ms", tool.tool_name, tool.duration_ms);
                let line = (!is_inner(tool.tool_type)).then_some(text);
                self.tool_end(TextTone::Quiet, line)
            }
            Body::ToolFailed(tool) => {
                let ms = self.cast.over(tool.tool_use_id, event.timestamp);
                let since = ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
                let error_class = word(&tool.error_class);
                let text = format!("{} failed ({error_class}){since}", tool.tool_name);
                let stopped = self.stopping && tool.error_class == ToolErrorClass::Cancelled;
                let line = (!stopped && !is_inner(tool.tool_type)).then_some(text);
                self.tool_end(TextTone::Bad, line)
            }
            Body::DelegateStarted(work) => self.worker_begins(work),
            Body::DelegateCompleted(end) => self.worker_done(end),
            Body::DelegateFailed(end) => self.worker_failed(end),
            Body::TurnCancelRequested(_) if !self.is_beside(event.turn_id) => self.stops(),
            Body::ApprovalRequested(question) => {
                self.asks(question);
                Ok(())
            }
            Body::ApprovalResolved(answer) => self.resolved(answer),
            Body::StatusEmitted(status) => self.doing(&status.message, event.render.as_ref()),
            Body::DataLoaded(data) => {
                self.shown(&component_line::collection(&data.data_type, &data.items))
            }
            Body::ComponentRendered(it) => self.shown(&component_line::component(
                &it.component,
                &it.tool_call.name,
            )),
            // Failures that the turn outlives are for programs: the answer says what it lacks.
            _ => Ok(()),
        }
    }

    fn tool_end(&mut self, tone: TextTone, told: Option<String>) -> io::Result<()> {
        if let Some(line) = told {
            self.screen.note(tone, &line)?;
        }
        self.still_running()
    }

    /// What is being done. Of several that are told at once the last has the sentence for all.
    fn doing(&mut self, alone: &str, render: Option<&RenderDecision>) -> io::Result<()> {
        let group = render.filter(|render| render.group.is_some());
        let text = match group.map(|group| (group.message.as_deref(), group.event_ids.len())) {
            Some((None, 0)) => return Ok(()),
            Some((Some(all), 2..)) => all,
            Some(_) | None => alone,
        };
        self.doing = Some(text.to_owned());
        self.screen.passing_or_note(text)
    }

    /// Something that is shown beside the answer.
    fn shown(&mut self, card: &str) -> io::Result<()> {
        self.shown_as(TextTone::Strong, card)
    }

    fn shown_as(&mut self, tone: TextTone, told: &str) -> io::Result<()> {
        self.screen.note(tone, told)?;
        self.still_running()
    }

    /// Says what is being done, or names the tools at work, until the next line.
    fn still_running(&mut self) -> io::Result<()> {
        if self.stopping {
            return self.screen.passing(aside::STOPPING);
        }
        if let Some(doing) = &self.doing {
            return self.screen.passing(doing);
        }
        let names = self.cast.at_work();
        match names.is_empty() {
            true => Ok(()),
            false => self.screen.passing(&format!("{}…", names.join(", "))),
        }
    }

    /// Words of a message.
    fn text(&mut self, id: MessageId, block: u32, text: &str) -> io::Result<()> {
        self.thought_end()?;
        self.doing = None;
        let printed = self.said.entry(id).or_default();
        printed.text_bytes += text.len();
        if printed
            .block
            .replace(block)
            .is_some_and(|last| last != block)
        {
            self.screen.line_end()?;
        }
        self.screen.answer(text)
    }

    /// Reasoning of a message.
    fn think(&mut self, id: MessageId, text: &str) -> io::Result<()> {
        self.said.entry(id).or_default();
        let thought = self.thought.get_or_insert_default();
        for c in text.chars() {
            let inside = !c.is_whitespace();
            thought.words += u64::from(inside && !thought.inside);
            thought.inside = inside;
        }
        match self.form {
            OutputForm::Thinking => self.screen.aside(&mut thought.cleaner, text),
            OutputForm::Folded => self.screen.passing(&folded(thought.words)),
            OutputForm::Json => Ok(()),
        }
    }

    fn thought_end(&mut self) -> io::Result<()> {
        let Some(mut thought) = self.thought.take() else {
            return Ok(());
        };
        match self.form {
            OutputForm::Thinking => self.screen.aside(&mut thought.cleaner, "\n"),
            OutputForm::Folded if thought.words > 0 => {
                self.screen.note(TextTone::Quiet, &folded(thought.words))
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

    /// Tells what has not been told of a message that comes as it stands, not as it grew.
    pub(crate) fn catch_up(&mut self, message: &Message) -> io::Result<()> {
        let Some(printed) = self.said.get_mut(&message.id) else {
            return self.whole(message.id, &message.content);
        };
        let text = message.text();
        let Some(unprinted) = text
            .get(printed.text_bytes..)
            .filter(|rest| !rest.is_empty())
        else {
            return Ok(());
        };
        printed.text_bytes = text.len();
        self.thought_end()?;
        self.screen.answer(unprinted)
    }

    /// A turn has ended: what comes next is not of it.
    pub(crate) fn ended(&mut self, turn: TurnId) {
        if self.turn == Some(turn) {
            self.turn = None;
        }
        // For programs no turn is told, and one that waits in line is not either.
        self.stopping &= self.turn.is_some();
    }

    /// Tells that a turn in line ended, in the midst of the one that is told.
    pub(crate) fn ended_beside(&mut self, outcome: TurnEnding) -> io::Result<()> {
        let text = match outcome {
            TurnEnding::Cancelled => "a turn that waited was withdrawn",
            TurnEnding::Answered
            | TurnEnding::Paused
            | TurnEnding::Failed
            | TurnEnding::Refused => "a turn that waited ended",
        };
        match self.is_for_people() {
            true => self.screen.note(TextTone::Quiet, text),
            false => Ok(()),
        }
    }

    /// Tells how a turn ended that was not cancelled.
    pub(crate) fn completed(&mut self, end: &TurnCompleted) -> io::Result<TurnEnding> {
        let (outcome, told) = turn_ending::completed(end);
        let tone = match outcome {
            TurnEnding::Answered | TurnEnding::Paused => TextTone::Quiet,
            TurnEnding::Failed | TurnEnding::Cancelled | TurnEnding::Refused => TextTone::Bad,
        };
        self.ending(tone, told)?;
        Ok(outcome)
    }

    /// Tells how a cancel went.
    pub(crate) fn cancelled(&mut self, end: &TurnCancelled) -> io::Result<TurnEnding> {
        let text = turn_ending::receipt(end, &self.cast);
        self.ending(TextTone::Strong, Some(text))?;
        Ok(TurnEnding::Cancelled)
    }

    fn ending(&mut self, tone: TextTone, told: Option<String>) -> io::Result<()> {
        if !self.is_for_people() {
            return Ok(());
        }
        self.thought_end()?;
        self.screen.line_end()?;
        (self.doing, self.stopping) = (None, false);
        self.screen.passed()?;
        told.map_or(Ok(()), |told| self.screen.note(tone, &told))
    }
}

/// Whether a tool is the inside of an answer: what people should know of it comes as a status, as
/// something shown, or in the answer's words.
fn is_inner(tool: ToolType) -> bool {
    matches!(tool, ToolType::SubAgent | ToolType::Ccs | ToolType::Render)
}

fn folded(words: u64) -> String {
    let s = if words == 1 { "" } else { "s" };
    format!("thinking… ({words} word{s})")
}

#[cfg(test)]
mod tests;
