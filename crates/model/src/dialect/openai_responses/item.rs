//! Items that are added and done: calls get their name, text that was not streamed is emitted in
//! full, and provider data is emitted.

use std::collections::VecDeque;

use serde_json::value::RawValue;

use super::chunk::{self, ResponsesEvent};
use super::decode::{ONLY, ResponsesDecoder, malformed, to_index};
use super::item_order::{ItemKind, ItemPiece, ItemSection, SectionKind, StartedCall};
use super::provider_data;
use crate::delta::{Delta, ModelError};
use crate::dialect::optional_str::OptionalStr;

/// Part number after all parts of an item, for a block with provider data only.
const AFTER_PARTS: u32 = u32::MAX;

impl ResponsesDecoder {
    pub(super) fn item_added(
        &mut self,
        event: &ResponsesEvent<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let Some(raw) = event.item else {
            return Ok(());
        };
        let item = read_item(raw)?;
        let position = self.find_or_add(to_index(event.output_index), &item, out)?;
        self.start_call(position, item.name, item.call_id, out)
    }

    /// Position of the item, by index or id; adds the item if it is new.
    fn find_or_add(
        &mut self,
        index: Option<u32>,
        item: &chunk::ResponsesItem<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<usize, ModelError> {
        let kind = match item.kind.as_str() {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call,
            _ => ItemKind::Other,
        };
        let id = item.id.as_str();
        // Without index and id the item cannot be identified, so it is a new one.
        let existing = (index.is_some() || !id.is_empty())
            .then(|| self.order.find(index, id))
            .flatten();
        let Some(position) = existing else {
            return Ok(self.order.add(kind, index, id, out)?);
        };
        self.check_kind(position, kind)
    }

    /// Starts a call once its name is known.
    fn start_call(
        &mut self,
        position: usize,
        name: OptionalStr<'_>,
        call_id: OptionalStr<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let item = self.order.item(position);
        if item.kind != ItemKind::Call || item.call.is_some() || item.is_done {
            return Ok(());
        }
        let Some(name) = name.into_non_empty() else {
            return Ok(());
        };
        let call_id = call_id.into_non_empty();
        item.call = Some(StartedCall {
            call_id: call_id.clone(),
            has_input: false,
            has_provider_data: false,
        });
        self.has_calls = true;
        let start = ItemPiece::ToolStart(name, call_id);
        Ok(self.order.push(position, ONLY, start, out)?)
    }

    pub(super) fn item_done(
        &mut self,
        index: Option<u32>,
        raw: &RawValue,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let item = read_item(raw)?;
        let position = self.find_or_add(index, &item, out)?;
        if self.order.item(position).is_done {
            return Ok(());
        }
        match self.order.item(position).kind {
            ItemKind::Message => self.message_done(position, &item, raw, out)?,
            ItemKind::Reasoning => self.reasoning_done(position, &item, raw, out)?,
            ItemKind::Call => return self.call_done(position, item, raw, out),
            ItemKind::Other => {
                if let Some(data) = provider_data::item(raw) {
                    self.order
                        .push(position, AFTER_PARTS, ItemPiece::Keep(data), out)?;
                }
            }
        }
        Ok(self.order.finish(position, out)?)
    }

    fn message_done(
        &mut self,
        position: usize,
        item: &chunk::ResponsesItem<'_>,
        raw: &RawValue,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        for (part, part_content) in (0..).zip(item.content()) {
            let section = |kind| ItemSection { kind, part };
            self.push_text_once(
                position,
                section(SectionKind::Answer),
                part_content.text.as_str(),
                out,
            )?;
            self.push_text_once(
                position,
                section(SectionKind::Refusal),
                part_content.refusal.as_str(),
                out,
            )?;
        }
        let Some(data) = provider_data::message(raw) else {
            return Ok(());
        };
        for section in self.order.item(position).sections.clone() {
            let data = match section.kind {
                SectionKind::Refusal => provider_data::with_refusal(data.clone()),
                SectionKind::Answer | SectionKind::Summary | SectionKind::Reasoning => data.clone(),
            };
            self.order
                .push(position, section.part, ItemPiece::Keep(data), out)?;
        }
        Ok(())
    }

    fn reasoning_done(
        &mut self,
        position: usize,
        item: &chunk::ResponsesItem<'_>,
        raw: &RawValue,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        for (part, part_content) in (0..).zip(item.summary()) {
            let kind = SectionKind::Summary;
            self.push_text_once(
                position,
                ItemSection { kind, part },
                part_content.text.as_str(),
                out,
            )?;
        }
        for (part, part_content) in (0..).zip(item.content()) {
            let kind = SectionKind::Reasoning;
            self.push_text_once(
                position,
                ItemSection { kind, part },
                part_content.text.as_str(),
                out,
            )?;
        }
        match provider_data::reasoning(raw) {
            Some(data) => Ok(self
                .order
                .push(position, ONLY, ItemPiece::Keep(data), out)?),
            None => Ok(()),
        }
    }

    fn call_done(
        &mut self,
        position: usize,
        item: chunk::ResponsesItem<'_>,
        raw: &RawValue,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        self.start_call(position, item.name, item.call_id, out)?;
        self.push_input_once(position, item.arguments, out)?;
        let call = self
            .order
            .item(position)
            .call
            .as_mut()
            .ok_or_else(malformed)?;
        let has_input = call.has_input;
        let data = provider_data::call(raw).filter(|_| !call.has_provider_data);
        call.has_provider_data |= data.is_some();
        if let Some(data) = data {
            self.order
                .push(position, ONLY, ItemPiece::Keep(data), out)?;
        }
        // A call of an incomplete answer without arguments stays open.
        if item.status.as_str() == "incomplete" && !has_input {
            return Ok(());
        }
        self.order.push(position, ONLY, ItemPiece::ToolEnd, out)?;
        Ok(self.order.finish(position, out)?)
    }
}

fn read_item(raw: &RawValue) -> Result<chunk::ResponsesItem<'_>, ModelError> {
    serde_json::from_str(raw.get()).map_err(|_| malformed())
}
