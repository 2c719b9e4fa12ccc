//! The events of a Responses stream as deltas.
//!
//! An item is a block, except a message, whose parts are blocks. Words come as pieces or, from
//! servers that do not stream them, whole at the end of a part or item; never twice.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, Usage};

use super::chunk::{self, Event, Response};
use super::failure;
use super::order::{Call, Kind, Order, Piece, Section, TooMuch, Voice};
use super::sealed;
use crate::delta::{Delta, ModelError};
use crate::dialect::lent::Words;
use crate::dialect::loose::Count;
use crate::dialect::{Decoder, Frame};

/// Bytes of the answer's id. Vendors' own are below 100.
const RESPONSE_ID_BYTES_MAX: usize = 512;

/// The part of an item that has only one.
const ONLY: u32 = 0;

/// The block behind all parts of an item, for what is nothing but kept.
const BEHIND: u32 = u32::MAX;

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    order: Order,
    has_begun: bool,
    has_stopped: bool,
    has_calls: bool,
    cache_written: u64,
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

    fn begin(&mut self, id: Words<'_>, out: &mut VecDeque<Delta>) {
        if std::mem::replace(&mut self.has_begun, true) {
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
        let is_of = [kind, Kind::Other].contains(&self.order.item(at).kind);
        is_of.then_some(at).ok_or_else(malformed)
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
    fn say_once(
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

    fn say(
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
        // A call whose name has not come yet gets its arguments whole, at its end.
        let Some(call) = self.order.item(at).call.as_mut() else {
            return Ok(());
        };
        if fragment.is_empty() {
            return Ok(());
        }
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
    fn input_once(
        &mut self,
        at: usize,
        arguments: Words<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let Some(call) = self.order.item(at).call.as_mut() else {
            return Ok(());
        };
        if call.has_input {
            return Ok(());
        }
        let Some(whole) = arguments.said() else {
            return Ok(());
        };
        call.has_input = true;
        Ok(self.order.say(at, ONLY, Piece::ToolInput(whole), out)?)
    }

    fn added(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let Some(raw) = event.item else {
            return Ok(());
        };
        let item = read_item(raw)?;
        let at = self.found(index(event.output_index), &item, out)?;
        self.start(at, item.name, item.call_id, out)
    }

    /// The item itself, wherever it is told: at its begin, at its end, or only in the answer.
    fn found(
        &mut self,
        place: Option<u32>,
        item: &chunk::Item<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<usize, ModelError> {
        let kind = match item.kind.as_str() {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => Kind::Call,
            _ => Kind::Other,
        };
        let id = item.id.as_str();
        // Without a place and an id there is nothing to find it by, so it is a new one.
        let known = (place.is_some() || !id.is_empty())
            .then(|| self.order.find(place, id))
            .flatten();
        let Some(at) = known else {
            return Ok(self.order.add(kind, place, id, out)?);
        };
        let own = &mut self.order.item(at).kind;
        if *own == Kind::Other {
            *own = kind;
        }
        let is_same = kind == Kind::Other || *own == kind;
        is_same.then_some(at).ok_or_else(malformed)
    }

    /// Begins a call, once its name is known.
    fn start(
        &mut self,
        at: usize,
        name: Words<'_>,
        call_id: Words<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let item = self.order.item(at);
        if item.kind != Kind::Call || item.call.is_some() {
            return Ok(());
        }
        let Some(name) = name.said() else {
            return Ok(());
        };
        let call_id = call_id.said();
        item.call = Some(Call {
            call_id: call_id.clone(),
            has_input: false,
        });
        self.has_calls = true;
        let start = Piece::ToolStart(name, call_id);
        Ok(self.order.say(at, ONLY, start, out)?)
    }

    fn done(
        &mut self,
        place: Option<u32>,
        raw: &RawValue,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let item = read_item(raw)?;
        let at = self.found(place, &item, out)?;
        if self.order.item(at).is_done {
            return Ok(());
        }
        match self.order.item(at).kind {
            Kind::Message => self.message_done(at, &item, raw, out)?,
            Kind::Reasoning => self.reasoning_done(at, &item, raw, out)?,
            Kind::Call => self.call_done(at, item, raw, out)?,
            Kind::Other => {
                if let Some(kept) = sealed::item(raw) {
                    self.order.say(at, BEHIND, Piece::Keep(kept), out)?;
                }
            }
        }
        Ok(self.order.finish(at, out)?)
    }

    fn message_done(
        &mut self,
        at: usize,
        item: &chunk::Item<'_>,
        raw: &RawValue,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        for (part, words) in (0..).zip(item.content()) {
            let section = |voice| Section { voice, part };
            self.say_once(at, section(Voice::Answer), words.text.as_str(), out)?;
            self.say_once(at, section(Voice::Refusal), words.refusal.as_str(), out)?;
        }
        let Some(kept) = sealed::message(raw) else {
            return Ok(());
        };
        for section in self.order.item(at).said.clone() {
            let kept = match section.voice {
                Voice::Refusal => sealed::refusing(kept.clone()),
                Voice::Answer | Voice::Summary | Voice::Reasoning => kept.clone(),
            };
            self.order.say(at, section.part, Piece::Keep(kept), out)?;
        }
        Ok(())
    }

    fn reasoning_done(
        &mut self,
        at: usize,
        item: &chunk::Item<'_>,
        raw: &RawValue,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        for (part, words) in (0..).zip(item.summary()) {
            let voice = Voice::Summary;
            self.say_once(at, Section { voice, part }, words.text.as_str(), out)?;
        }
        for (part, words) in (0..).zip(item.content()) {
            let voice = Voice::Reasoning;
            self.say_once(at, Section { voice, part }, words.text.as_str(), out)?;
        }
        match sealed::reasoning(raw) {
            Some(kept) => Ok(self.order.say(at, ONLY, Piece::Keep(kept), out)?),
            None => Ok(()),
        }
    }

    fn call_done(
        &mut self,
        at: usize,
        item: chunk::Item<'_>,
        raw: &RawValue,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        self.start(at, item.name, item.call_id, out)?;
        if self.order.item(at).call.is_none() {
            return Err(malformed());
        }
        self.input_once(at, item.arguments, out)?;
        if let Some(kept) = sealed::call(raw) {
            self.order.say(at, ONLY, Piece::Keep(kept), out)?;
        }
        Ok(self.order.say(at, ONLY, Piece::ToolEnd, out)?)
    }

    fn finish(
        &mut self,
        kind: &str,
        response: Response<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let status = response.status.as_str();
        if kind == "response.failed" || ["failed", "cancelled"].contains(&status) {
            return Err(failure::of(response.error));
        }
        let is_cut = kind == "response.incomplete" || status == "incomplete";
        let reason = response.incomplete_details.as_ref();
        let reason = reason.map_or("", |details| details.reason.as_str());
        let is_withheld = is_cut && reason == "content_filter";
        if is_withheld && self.order.is_empty() {
            // Nothing was said, and an empty answer would hide why.
            return Err(malformed());
        }
        if self.order.is_empty() {
            let items = response.items();
            self.begin(response.id, out);
            for (place, raw) in (0..).zip(items) {
                self.done(Some(place), raw, out)?;
            }
        }
        self.order.let_all_out(out)?;
        self.close(out)?;
        let usage = response.usage.unwrap_or_default();
        let details = usage.input_tokens_details.unwrap_or_default();
        self.cache_written = count(details.cache_write_tokens);
        self.has_stopped = true;
        out.push_back(Delta::Stop {
            reason: match (is_cut, reason) {
                // The vendor's filter, or another request, let no more through.
                (true, "content_filter" | "steered") => StopReason::EndTurn,
                (true, _) => StopReason::MaxTokens,
                (false, _) if self.has_calls => StopReason::ToolUse,
                (false, _) => StopReason::EndTurn,
            },
            usage: counted(usage),
        });
        Ok(())
    }

    /// Ends the calls that nobody ended.
    fn close(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        for at in 0..self.order.len() {
            let item = self.order.item(at);
            if item.kind != Kind::Call || item.is_done {
                continue;
            }
            let call = item.call.as_ref().ok_or_else(malformed)?;
            let kept = call.call_id.as_deref().map(sealed::call_by_id);
            if let Some(kept) = kept {
                self.order.say(at, ONLY, Piece::Keep(kept), out)?;
            }
            self.order.say(at, ONLY, Piece::ToolEnd, out)?;
            self.order.finish(at, out)?;
        }
        Ok(())
    }
}

fn read_item(raw: &RawValue) -> Result<chunk::Item<'_>, ModelError> {
    serde_json::from_str(raw.get()).map_err(|_| malformed())
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

fn index(count: Option<Count>) -> Option<u32> {
    count.and_then(|count| u32::try_from(count.0).ok())
}

fn count(count: Option<Count>) -> u64 {
    count.unwrap_or_default().0
}

fn malformed() -> ModelError {
    LlmErrorClass::Provider.into()
}

fn counted(usage: chunk::Usage) -> Usage {
    let input = count(usage.input_tokens);
    let output = count(usage.output_tokens);
    let read = usage.input_tokens_details.unwrap_or_default();
    let written = usage.output_tokens_details.unwrap_or_default();
    Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: usage
            .total_tokens
            .map_or(input.saturating_add(output), |total| total.0),
        reasoning_tokens: count(written.reasoning_tokens),
        cached_tokens: count(read.cached_tokens),
        cost_usd: 0.0,
    }
}
