//! Decodes a Responses stream into [`Delta`]s.
//!
//! An item is a block, except for a message, whose parts are blocks. Text arrives in pieces or,
//! from servers that do not stream it, in full at the end of a part or item; it is never emitted
//! twice.

use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::TokenUsage;

use super::chunk::{ResponseObject, ResponsesEvent};
use super::error;
use super::item_state::{ITEMS_MAX, ItemKind, ItemSection, ItemState, SectionKind};
use crate::delta::{Delta, ModelError};
use crate::dialect::block_order::BlockOrder;
use crate::dialect::lenient::{LenientCount, OptionalStr};
use crate::dialect::{DecodeResult, DeltaQueue, SseEvent, StreamDecoder, read_json, started};

/// Upper limit of buffered deltas. Servers that mix up the order do so by a handful; beyond this
/// the server does not count from 0.
const BUFFERED_DELTAS_MAX: usize = 256;

/// Upper limit of the memory of buffered deltas in bytes, for the same reason.
const BUFFERED_BYTES_MAX: usize = (256 << 10) + BUFFERED_DELTAS_MAX * size_of::<Delta>();

/// Largest item id in bytes. Vendors' ids are below 100.
const ID_BYTES_MAX: usize = 512;

/// The items of an answer. The index after a call becomes current at once, because a call is one
/// block and calls may arrive in parallel (S3-066).
pub(super) type ItemOrder = BlockOrder<ItemState, BUFFERED_BYTES_MAX, BUFFERED_DELTAS_MAX>;

/// Part number of an item with only one part.
pub(super) const ONLY: u32 = 0;

/// Block number of a delta until [`BlockOrder`] emits it.
pub(super) const UNNUMBERED: u32 = 0;

/// [`StreamDecoder`] of one Responses answer.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    pub(super) order: ItemOrder,
    /// Position of the last event's item: mostly that of the next event too.
    last: usize,
    pub(super) has_started: bool,
    pub(super) has_stopped: bool,
    pub(super) has_calls: bool,
    pub(super) cache_written: u64,
    /// Usage of a failed answer.
    pub(super) failed_usage: TokenUsage,
}

impl StreamDecoder for ResponsesDecoder {
    fn step(&mut self, frame: SseEvent<'_>, out: &mut DeltaQueue) -> DecodeResult {
        let data = frame.data.trim();
        // Chat Completions streams end with `[DONE]`; some servers append it to Responses streams
        // too.
        if self.has_stopped || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let event = read_json(data)?;
        std::mem::swap(&mut self.order.out, out);
        let applied = self.apply_event(event, frame.event);
        std::mem::swap(&mut self.order.out, out);
        applied
    }

    fn end(&mut self, _: &mut DeltaQueue) -> DecodeResult {
        match self.has_stopped {
            true => Ok(()),
            false => Err(ModelError::cut_off(!self.order.is_empty())),
        }
    }

    fn usage_so_far(&self) -> TokenUsage {
        self.failed_usage
    }

    fn cache_written_tokens(&self) -> u64 {
        self.cache_written
    }
}

impl ResponsesDecoder {
    fn apply_event(&mut self, event: ResponsesEvent<'_>, name: Option<&str>) -> DecodeResult {
        let kind = event.kind.0.as_deref().or(name).unwrap_or_default();
        match kind {
            "response.output_text.delta" => self.push_delta(SectionKind::Answer, &event),
            "response.refusal.delta" => self.push_delta(SectionKind::Refusal, &event),
            "response.function_call_arguments.delta" => self.push_arguments(event),
            "response.reasoning_summary_text.delta" => {
                self.push_delta(SectionKind::Summary, &event)
            }
            "response.reasoning_text.delta" => self.push_delta(SectionKind::Reasoning, &event),
            "response.output_text.done" => self.full_text(SectionKind::Answer, &event),
            "response.refusal.done" => self.full_text(SectionKind::Refusal, &event),
            "response.reasoning_summary_text.done" => self.full_text(SectionKind::Summary, &event),
            "response.reasoning_text.done" => self.full_text(SectionKind::Reasoning, &event),
            "response.function_call_arguments.done" => {
                let position = self.item_position(ItemKind::Call, &event)?;
                self.push_input_once(position, event.arguments)
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                let response = read_response(event.response)?;
                self.start(response.id);
                Ok(())
            }
            "response.output_item.added" => self.item_added(&event),
            "response.output_item.done" => match event.item {
                Some(raw) => self.item_done(to_index(event.output_index), raw),
                None => Ok(()),
            },
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.finish(kind, read_response(event.response)?)
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

    pub(super) fn start(&mut self, id: OptionalStr<'_>) {
        // An event after an item is not the start of the answer.
        if !std::mem::replace(&mut self.has_started, true) && self.order.is_empty() {
            self.order.out.extend(started(id));
        }
    }

    /// Position of the item that an event belongs to; adds the item if it was not announced.
    fn item_position(&mut self, kind: ItemKind, event: &ResponsesEvent<'_>) -> DecodeResult<usize> {
        let (index, id) = (to_index(event.output_index), event.item_id.as_str());
        let Some(position) = self.find_item(index, id) else {
            return self.add_item(kind, index, id);
        };
        self.check_kind(position, kind)
    }

    /// Finds an item by index, without an index by id, and without both the last one.
    pub(super) fn find_item(&mut self, index: Option<u32>, id: &str) -> Option<usize> {
        let is_match = |item_index: Option<u64>, item: &ItemState| match (index, item_index) {
            (Some(index), Some(item_index)) => u64::from(index) == item_index,
            _ => id.is_empty() || item.id == id,
        };
        self.last = self.order.find(self.last, is_match)?;
        Some(self.last)
    }

    /// Adds an item, which may release buffered deltas.
    pub(super) fn add_item(
        &mut self,
        kind: ItemKind,
        index: Option<u32>,
        id: &str,
    ) -> DecodeResult<usize> {
        let is_index_too_large = index.is_some_and(|index| index as usize >= ITEMS_MAX);
        if self.order.len() >= ITEMS_MAX || id.len() > ID_BYTES_MAX || is_index_too_large {
            return Err(ModelError::malformed());
        }
        let state = ItemState {
            kind,
            id: id.to_owned(),
            ..ItemState::default()
        };
        self.last = self.order.add(index.map(u64::from), state)?;
        if kind == ItemKind::Call {
            // The next item may follow as soon as this one has its first delta: its number.
            self.order.set_complete(self.last);
        }
        Ok(self.last)
    }

    /// Marks an item as done.
    pub(super) fn finish_item(&mut self, position: usize) -> DecodeResult {
        self.order.state(position).is_done = true;
        self.order.finish(position)
    }

    /// Sets the kind of an item that had an unknown kind; an item of another known kind is an
    /// error.
    pub(super) fn check_kind(&mut self, position: usize, kind: ItemKind) -> DecodeResult<usize> {
        let item_kind = &mut self.order.state(position).kind;
        if *item_kind == ItemKind::Other {
            *item_kind = kind;
        }
        let is_compatible = kind == ItemKind::Other || *item_kind == kind;
        if *item_kind == ItemKind::Call {
            self.order.set_complete(position);
        }
        is_compatible
            .then_some(position)
            .ok_or_else(ModelError::malformed)
    }

    fn push_delta(&mut self, kind: SectionKind, event: &ResponsesEvent<'_>) -> DecodeResult {
        let text = event.delta.0.as_deref().ok_or_else(ModelError::malformed)?;
        if text.is_empty() {
            return Ok(());
        }
        let section = section_of(kind, event);
        let position = self.item_position(kind.item_kind(), event)?;
        self.push_text(position, section, text)
    }

    fn full_text(&mut self, kind: SectionKind, event: &ResponsesEvent<'_>) -> DecodeResult {
        let section = section_of(kind, event);
        let text = match kind {
            SectionKind::Refusal => event.refusal.as_str(),
            _ => event.text.as_str(),
        };
        let position = self.item_position(kind.item_kind(), event)?;
        self.push_text_once(position, section, text)
    }

    /// Emits the full text of a section, unless some of it was emitted.
    pub(super) fn push_text_once(
        &mut self,
        position: usize,
        section: ItemSection,
        text: &str,
    ) -> DecodeResult {
        if text.is_empty() || self.order.state(position).has_emitted(section) {
            return Ok(());
        }
        self.push_text(position, section, text)
    }

    pub(super) fn push_text(
        &mut self,
        position: usize,
        section: ItemSection,
        text: &str,
    ) -> DecodeResult {
        let item = self.order.state(position);
        let is_first = item.sections.is_empty();
        let is_new = item.start_section(section)?;
        let block = UNNUMBERED;
        let (part, delta) = match section.kind {
            SectionKind::Answer | SectionKind::Refusal => {
                let text = text.to_owned();
                (section.part, Delta::Text { block, text })
            }
            SectionKind::Summary | SectionKind::Reasoning => {
                // Sections of one reasoning item are paragraphs of one block.
                let text = match is_new && !is_first {
                    true => format!("\n\n{text}"),
                    false => text.to_owned(),
                };
                let signature = None;
                (
                    ONLY,
                    Delta::Thinking {
                        block,
                        text,
                        signature,
                    },
                )
            }
        };
        self.order.push(position, part, delta)
    }

    fn push_arguments(&mut self, event: ResponsesEvent<'_>) -> DecodeResult {
        let position = self.item_position(ItemKind::Call, &event)?;
        let fragment = event.delta.0.ok_or_else(ModelError::malformed)?;
        let item = self.order.state(position);
        if fragment.is_empty() || item.is_done {
            return Ok(());
        }
        // A call without a name yet gets its full arguments at its end.
        let Some(call) = item.call.as_mut() else {
            return Ok(());
        };
        call.has_input = true;
        self.push_input(position, fragment.into_owned())
    }

    /// Emits the full input of a started call that had none (S3-064).
    pub(super) fn push_input_once(
        &mut self,
        position: usize,
        arguments: OptionalStr<'_>,
    ) -> DecodeResult {
        let item = self.order.state(position);
        let call = item.call.as_mut().filter(|call| !call.has_input);
        let Some(call) = call.filter(|_| !item.is_done) else {
            return Ok(());
        };
        let Some(input) = arguments.into_non_empty() else {
            return Ok(());
        };
        call.has_input = true;
        self.push_input(position, input)
    }

    fn push_input(&mut self, position: usize, fragment: String) -> DecodeResult {
        let block = UNNUMBERED;
        self.order
            .push(position, ONLY, Delta::ToolInput { block, fragment })
    }

    /// Ends a call: its input is complete.
    pub(super) fn end_call(&mut self, position: usize) -> DecodeResult {
        let block = UNNUMBERED;
        self.order.push(position, ONLY, Delta::ToolEnd { block })?;
        self.finish_item(position)
    }

    /// Emits provider data of an item's part, if there is any.
    pub(super) fn push_provider_data(
        &mut self,
        position: usize,
        part: u32,
        data: Option<Value>,
    ) -> DecodeResult {
        let Some(data) = data else { return Ok(()) };
        let block = UNNUMBERED;
        self.order
            .push(position, part, Delta::ProviderData { block, data })
    }
}

fn read_response(raw: Option<&RawValue>) -> DecodeResult<ResponseObject<'_>> {
    raw.map_or(Ok(ResponseObject::default()), |raw| read_json(raw.get()))
}

fn section_of(kind: SectionKind, event: &ResponsesEvent<'_>) -> ItemSection {
    let part = match kind {
        SectionKind::Summary => event.summary_index,
        _ => event.content_index,
    };
    let part = to_index(part).unwrap_or(ONLY);
    ItemSection { kind, part }
}

pub(super) fn to_index(count: Option<LenientCount>) -> Option<u32> {
    count.and_then(|count| u32::try_from(count.0).ok())
}
