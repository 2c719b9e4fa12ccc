//! The events of a Responses stream as deltas.
//!
//! An item is a block, except a message, whose parts are blocks. Words come as pieces or, from
//! servers that do not stream them, whole at the end of a part or item; never twice.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use turnwire_event::Usage;
use turnwire_event::code::LlmErrorClass;

use super::chunk::{Event, Response};
use super::failure;
use super::order::{Kind, Order, Piece, Section, TooMuch, Voice};
use crate::delta::{Delta, ModelError};
use crate::dialect::lent::Words;
use crate::dialect::loose::Count;
use crate::dialect::{Decoder, Frame};

/// Bytes of the answer's id. Vendors' own are below 100.
const RESPONSE_ID_BYTES_MAX: usize = 512;

/// The part of an item that has only one.
pub(super) const ONLY: u32 = 0;

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) order: Order,
    pub(super) has_begun: bool,
    pub(super) has_stopped: bool,
    pub(super) has_calls: bool,
    pub(super) cache_written: u64,
    /// What the vendor said of an answer that failed.
    pub(super) spent: Usage,
}

impl Decoder for Reader {
    fn step(&mut self, frame: Frame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = frame.data.trim();
        // Chat Completions end with the word; some servers put it behind Responses too.
        if self.has_stopped || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let event: Event = serde_json::from_str(data).map_err(|_| malformed())?;
        self.take(event, frame.event, out)
    }

    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if self.has_stopped {
            return Ok(());
        }
        let class = LlmErrorClass::Transport;
        Err(match self.order.is_empty() {
            true => ModelError::passing(class),
            false => class.into(),
        })
    }

    fn usage_so_far(&self) -> Usage {
        self.spent
    }

    fn cache_written_tokens(&self) -> u64 {
        self.cache_written
    }
}

impl From<TooMuch> for ModelError {
    fn from(_: TooMuch) -> Self {
        malformed()
    }
}

impl Reader {
    fn take(
        &mut self,
        event: Event<'_>,
        name: Option<&str>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let kind = event.kind.0.as_deref().or(name).unwrap_or_default();
        match kind {
            "response.output_text.delta" => self.words(Voice::Answer, &event, out),
            "response.refusal.delta" => self.words(Voice::Refusal, &event, out),
            "response.function_call_arguments.delta" => self.arguments(event, out),
            "response.reasoning_summary_text.delta" => self.words(Voice::Summary, &event, out),
            "response.reasoning_text.delta" => self.words(Voice::Reasoning, &event, out),
            "response.output_text.done" => self.all_words(Voice::Answer, &event, out),
            "response.refusal.done" => self.all_words(Voice::Refusal, &event, out),
            "response.reasoning_summary_text.done" => self.all_words(Voice::Summary, &event, out),
            "response.reasoning_text.done" => self.all_words(Voice::Reasoning, &event, out),
            "response.function_call_arguments.done" => self.all_arguments(event, out),
            "response.created" | "response.in_progress" | "response.queued" => {
                let response = read_response(event.response)?;
                self.begin(response.id, out);
                Ok(())
            }
            "response.output_item.added" => self.added(&event, out),
            "response.output_item.done" => match event.item {
                Some(raw) => self.done(index(event.output_index), raw, out),
                None => Ok(()),
            },
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.finish(kind, read_response(event.response)?, out)
            }
            "error" => Err(failure::of(event.error.or(event.code))),
            // Parts, hosted tools, annotations, audio, and what is to come. A server that has no
            // event for an error puts it into one without a type.
            _ => match event.error {
                Some(error) if event.kind.0.is_none() => Err(failure::of(Some(error))),
                _ => Ok(()),
            },
        }
    }

    pub(super) fn begin(&mut self, id: Words<'_>, out: &mut VecDeque<Delta>) {
        // What comes behind an item is no begin any more.
        if std::mem::replace(&mut self.has_begun, true) || !self.order.is_empty() {
            return;
        }
        let id = id.said().filter(|id| id.len() <= RESPONSE_ID_BYTES_MAX);
        out.extend(id.map(|response_id| Delta::Begun { response_id }));
    }

    /// The item an event is about; a new one if it was never announced.
    fn item(
        &mut self,
        kind: Kind,
        event: &Event<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<usize, ModelError> {
        let (place, id) = (index(event.output_index), event.item_id.as_str());
        let Some(at) = self.order.find(place, id) else {
            return Ok(self.order.add(kind, place, id, out)?);
        };
        self.settle(at, kind)
    }

    /// An item that was of no known kind is of the kind it shows; one that was of another is odd.
    pub(super) fn settle(&mut self, at: usize, kind: Kind) -> Result<usize, ModelError> {
        let own = &mut self.order.item(at).kind;
        if *own == Kind::Other {
            *own = kind;
        }
        let is_same = kind == Kind::Other || *own == kind;
        is_same.then_some(at).ok_or_else(malformed)
    }

    fn words(
        &mut self,
        voice: Voice,
        event: &Event<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let words = event.delta.0.as_deref().ok_or_else(malformed)?;
        if words.is_empty() {
            return Ok(());
        }
        let section = section_of(voice, event);
        let at = self.item(voice.kind(), event, out)?;
        self.say(at, section, words, out)
    }

    fn all_words(
        &mut self,
        voice: Voice,
        event: &Event<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let section = section_of(voice, event);
        let words = match voice {
            Voice::Refusal => event.refusal.as_str(),
            Voice::Answer | Voice::Summary | Voice::Reasoning => event.text.as_str(),
        };
        let at = self.item(voice.kind(), event, out)?;
        self.say_once(at, section, words, out)
    }

    /// Says all words of a section, if none of them have been said.
    pub(super) fn say_once(
        &mut self,
        at: usize,
        section: Section,
        words: &str,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        if words.is_empty() || self.order.item(at).has_said(section) {
            return Ok(());
        }
        self.say(at, section, words, out)
    }

    pub(super) fn say(
        &mut self,
        at: usize,
        section: Section,
        words: &str,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let item = self.order.item(at);
        let is_first = item.said.is_empty();
        let is_new = item.begin(section)?;
        let (part, piece) = match section.voice {
            Voice::Answer | Voice::Refusal => (section.part, Piece::Text(words.to_owned())),
            // Sections of one reasoning are paragraphs of one block.
            Voice::Summary | Voice::Reasoning if is_new && !is_first => {
                (ONLY, Piece::Thinking(format!("\n\n{words}")))
            }
            Voice::Summary | Voice::Reasoning => (ONLY, Piece::Thinking(words.to_owned())),
        };
        Ok(self.order.say(at, part, piece, out)?)
    }

    fn arguments(&mut self, event: Event<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let at = self.item(Kind::Call, &event, out)?;
        let fragment = event.delta.0.ok_or_else(malformed)?;
        let item = self.order.item(at);
        if fragment.is_empty() || item.is_done {
            return Ok(());
        }
        // A call whose name has not come yet gets its arguments whole, at its end.
        let Some(call) = item.call.as_mut() else {
            return Ok(());
        };
        call.has_input = true;
        let piece = Piece::ToolInput(fragment.into_owned());
        Ok(self.order.say(at, ONLY, piece, out)?)
    }

    fn all_arguments(
        &mut self,
        event: Event<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let at = self.item(Kind::Call, &event, out)?;
        self.input_once(at, event.arguments, out)
    }

    /// All input of a call that has begun and had none (S3-064).
    pub(super) fn input_once(
        &mut self,
        at: usize,
        arguments: Words<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let item = self.order.item(at);
        let call = item.call.as_mut().filter(|call| !call.has_input);
        let Some(call) = call.filter(|_| !item.is_done) else {
            return Ok(());
        };
        let Some(whole) = arguments.said() else {
            return Ok(());
        };
        call.has_input = true;
        Ok(self.order.say(at, ONLY, Piece::ToolInput(whole), out)?)
    }
}

fn read_response(raw: Option<&RawValue>) -> Result<Response<'_>, ModelError> {
    raw.map_or(Ok(Response::default()), |raw| {
        serde_json::from_str(raw.get()).map_err(|_| malformed())
    })
}

fn section_of(voice: Voice, event: &Event<'_>) -> Section {
    let part = match voice {
        Voice::Summary => event.summary_index,
        Voice::Answer | Voice::Refusal | Voice::Reasoning => event.content_index,
    };
    let part = index(part).unwrap_or(ONLY);
    Section { voice, part }
}

pub(super) fn index(count: Option<Count>) -> Option<u32> {
    count.and_then(|count| u32::try_from(count.0).ok())
}

pub(super) fn malformed() -> ModelError {
    ModelError::from(LlmErrorClass::Provider).at("malformed")
}
