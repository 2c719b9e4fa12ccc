//! Decodes a Responses stream into [`Delta`]s.
//!
//! An item is a block, except for a message, whose parts are blocks. Text arrives in pieces or,
//! from servers that do not stream it, in full at the end of a part or item; it is never emitted
//! twice.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use turnwire_event::TokenUsage;
use turnwire_event::code::LlmErrorClass;

use super::chunk::{ResponseObject, ResponsesEvent};
use super::error;
use super::item_order::{AnswerTooLarge, ItemKind, ItemOrder, ItemPiece, ItemSection, SectionKind};
use crate::delta::{Delta, ModelError};
use crate::dialect::lenient::LenientCount;
use crate::dialect::optional_str::OptionalStr;
use crate::dialect::{SseFrame, StreamDecoder};

/// Largest accepted response id in bytes. Vendors' ids are below 100.
const RESPONSE_ID_BYTES_MAX: usize = 512;

/// Part number of an item with only one part.
pub(super) const ONLY: u32 = 0;

/// [`StreamDecoder`] of one Responses answer.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    pub(super) order: ItemOrder,
    pub(super) has_started: bool,
    pub(super) has_stopped: bool,
    pub(super) has_calls: bool,
    pub(super) cache_written: u64,
    /// [`Usage`] of a failed answer.
    pub(super) failed_usage: TokenUsage,
}

impl StreamDecoder for ResponsesDecoder {
    fn step(&mut self, frame: SseFrame<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = frame.data.trim();
        // Chat Completions streams end with `[DONE]`; some servers append it to Responses streams
        // too.
        if self.has_stopped || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let event: ResponsesEvent = serde_json::from_str(data).map_err(|_| malformed())?;
        self.apply_event(event, frame.event, out)
    }

    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if self.has_stopped {
            return Ok(());
        }
        let class = LlmErrorClass::Transport;
        Err(match self.order.is_empty() {
            true => ModelError::transient(class),
            false => class.into(),
        })
    }

    fn usage_so_far(&self) -> TokenUsage {
        self.failed_usage
    }

    fn cache_written_tokens(&self) -> u64 {
        self.cache_written
    }
}

impl From<AnswerTooLarge> for ModelError {
    fn from(_: AnswerTooLarge) -> Self {
        malformed()
    }
}

impl ResponsesDecoder {
    fn apply_event(
        &mut self,
        event: ResponsesEvent<'_>,
        name: Option<&str>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let kind = event.kind.0.as_deref().or(name).unwrap_or_default();
        match kind {
            "response.output_text.delta" => self.push_delta(SectionKind::Answer, &event, out),
            "response.refusal.delta" => self.push_delta(SectionKind::Refusal, &event, out),
            "response.function_call_arguments.delta" => self.push_arguments(event, out),
            "response.reasoning_summary_text.delta" => {
                self.push_delta(SectionKind::Summary, &event, out)
            }
            "response.reasoning_text.delta" => self.push_delta(SectionKind::Reasoning, &event, out),
            "response.output_text.done" => self.full_text(SectionKind::Answer, &event, out),
            "response.refusal.done" => self.full_text(SectionKind::Refusal, &event, out),
            "response.reasoning_summary_text.done" => {
                self.full_text(SectionKind::Summary, &event, out)
            }
            "response.reasoning_text.done" => self.full_text(SectionKind::Reasoning, &event, out),
            "response.function_call_arguments.done" => self.full_arguments(event, out),
            "response.created" | "response.in_progress" | "response.queued" => {
                let response = read_response(event.response)?;
                self.start(response.id, out);
                Ok(())
            }
            "response.output_item.added" => self.item_added(&event, out),
            "response.output_item.done" => match event.item {
                Some(raw) => self.item_done(to_index(event.output_index), raw, out),
                None => Ok(()),
            },
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.finish(kind, read_response(event.response)?, out)
            }
            "error" => Err(error::classify(event.error.or(event.code))),
            // Part events, hosted tools, annotations, audio and unknown events. A server without an
            // error event sends the error in an event without a type.
            _ => match event.error {
                Some(error) if event.kind.0.is_none() => Err(error::classify(Some(error))),
                _ => Ok(()),
            },
        }
    }

    pub(super) fn start(&mut self, id: OptionalStr<'_>, out: &mut VecDeque<Delta>) {
        // An event after an item is not the start of the answer.
        if std::mem::replace(&mut self.has_started, true) || !self.order.is_empty() {
            return;
        }
        let id = id
            .into_non_empty()
            .filter(|id| id.len() <= RESPONSE_ID_BYTES_MAX);
        out.extend(id.map(|response_id| Delta::Started { response_id }));
    }

    /// Position of the item that an event belongs to; adds the item if it was not announced.
    fn item_position(
        &mut self,
        kind: ItemKind,
        event: &ResponsesEvent<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<usize, ModelError> {
        let (index, id) = (to_index(event.output_index), event.item_id.as_str());
        let Some(position) = self.order.find(index, id) else {
            return Ok(self.order.add(kind, index, id, out)?);
        };
        self.check_kind(position, kind)
    }

    /// Sets the kind of an item that had an unknown kind; an item of another known kind is an
    /// error.
    pub(super) fn check_kind(
        &mut self,
        position: usize,
        kind: ItemKind,
    ) -> Result<usize, ModelError> {
        let item_kind = &mut self.order.item(position).kind;
        if *item_kind == ItemKind::Other {
            *item_kind = kind;
        }
        let is_compatible = kind == ItemKind::Other || *item_kind == kind;
        is_compatible.then_some(position).ok_or_else(malformed)
    }

    fn push_delta(
        &mut self,
        kind: SectionKind,
        event: &ResponsesEvent<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let text = event.delta.0.as_deref().ok_or_else(malformed)?;
        if text.is_empty() {
            return Ok(());
        }
        let section = section_of(kind, event);
        let position = self.item_position(kind.item_kind(), event, out)?;
        self.push_text(position, section, text, out)
    }

    fn full_text(
        &mut self,
        kind: SectionKind,
        event: &ResponsesEvent<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let section = section_of(kind, event);
        let text = match kind {
            SectionKind::Refusal => event.refusal.as_str(),
            SectionKind::Answer | SectionKind::Summary | SectionKind::Reasoning => {
                event.text.as_str()
            }
        };
        let position = self.item_position(kind.item_kind(), event, out)?;
        self.push_text_once(position, section, text, out)
    }

    /// Emits the full text of a section, unless some of it was emitted.
    pub(super) fn push_text_once(
        &mut self,
        position: usize,
        section: ItemSection,
        text: &str,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        if text.is_empty() || self.order.item(position).has_emitted(section) {
            return Ok(());
        }
        self.push_text(position, section, text, out)
    }

    pub(super) fn push_text(
        &mut self,
        position: usize,
        section: ItemSection,
        text: &str,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let item = self.order.item(position);
        let is_first = item.sections.is_empty();
        let is_new = item.start_section(section)?;
        let (part, piece) = match section.kind {
            SectionKind::Answer | SectionKind::Refusal => {
                (section.part, ItemPiece::Text(text.to_owned()))
            }
            // Sections of one reasoning item are paragraphs of one block.
            SectionKind::Summary | SectionKind::Reasoning if is_new && !is_first => {
                (ONLY, ItemPiece::Thinking(format!("\n\n{text}")))
            }
            SectionKind::Summary | SectionKind::Reasoning => {
                (ONLY, ItemPiece::Thinking(text.to_owned()))
            }
        };
        Ok(self.order.push(position, part, piece, out)?)
    }

    fn push_arguments(
        &mut self,
        event: ResponsesEvent<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let position = self.item_position(ItemKind::Call, &event, out)?;
        let fragment = event.delta.0.ok_or_else(malformed)?;
        let item = self.order.item(position);
        if fragment.is_empty() || item.is_done {
            return Ok(());
        }
        // A call without a name yet gets its full arguments at its end.
        let Some(call) = item.call.as_mut() else {
            return Ok(());
        };
        call.has_input = true;
        let piece = ItemPiece::ToolInput(fragment.into_owned());
        Ok(self.order.push(position, ONLY, piece, out)?)
    }

    fn full_arguments(
        &mut self,
        event: ResponsesEvent<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let position = self.item_position(ItemKind::Call, &event, out)?;
        self.push_input_once(position, event.arguments, out)
    }

    /// Emits the full input of a started call that had none (S3-064).
    pub(super) fn push_input_once(
        &mut self,
        position: usize,
        arguments: OptionalStr<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let item = self.order.item(position);
        let call = item.call.as_mut().filter(|call| !call.has_input);
        let Some(call) = call.filter(|_| !item.is_done) else {
            return Ok(());
        };
        let Some(input) = arguments.into_non_empty() else {
            return Ok(());
        };
        call.has_input = true;
        Ok(self
            .order
            .push(position, ONLY, ItemPiece::ToolInput(input), out)?)
    }
}

fn read_response(raw: Option<&RawValue>) -> Result<ResponseObject<'_>, ModelError> {
    raw.map_or(Ok(ResponseObject::default()), |raw| {
        serde_json::from_str(raw.get()).map_err(|_| malformed())
    })
}

fn section_of(kind: SectionKind, event: &ResponsesEvent<'_>) -> ItemSection {
    let part = match kind {
        SectionKind::Summary => event.summary_index,
        SectionKind::Answer | SectionKind::Refusal | SectionKind::Reasoning => event.content_index,
    };
    let part = to_index(part).unwrap_or(ONLY);
    ItemSection { kind, part }
}

pub(super) fn to_index(count: Option<LenientCount>) -> Option<u32> {
    count.and_then(|count| u32::try_from(count.0).ok())
}

pub(super) fn malformed() -> ModelError {
    ModelError::from(LlmErrorClass::Provider).with_location("malformed")
}
