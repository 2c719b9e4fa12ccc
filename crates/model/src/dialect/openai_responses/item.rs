//! Items that are added and done: calls get their name, text that was not streamed is emitted in
//! full, and provider data is emitted.

use serde_json::value::RawValue;

use super::chunk::{ResponsesEvent, ResponsesItem, ResponsesPart, list};
use super::decode::{ONLY, ResponsesDecoder, UNNUMBERED, to_index};
use super::item_state::{ItemKind, ItemSection, SectionKind, StartedCall};
use super::provider_data;
use crate::delta::{Delta, ModelError};
use crate::dialect::lenient::OptionalStr;
use crate::dialect::{DecodeResult, read_json};

/// Part number after all parts of an item, for a block with provider data only.
const AFTER_PARTS: u32 = u32::MAX;

impl ResponsesDecoder {
    pub(super) fn item_added(&mut self, event: &ResponsesEvent<'_>) -> DecodeResult {
        let Some(raw) = event.item else {
            return Ok(());
        };
        let item: ResponsesItem<'_> = read_json(raw.get())?;
        let position = self.find_or_add(to_index(event.output_index), &item)?;
        self.start_call(position, item.name, item.call_id)
    }

    /// Position of the item, by index or id; adds the item if it is new.
    fn find_or_add(&mut self, index: Option<u32>, item: &ResponsesItem<'_>) -> DecodeResult<usize> {
        let kind = match item.kind.as_str() {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call,
            _ => ItemKind::Other,
        };
        let id = item.id.as_str();
        // Without index and id the item cannot be identified, so it is a new one.
        let existing = (index.is_some() || !id.is_empty())
            .then(|| self.find_item(index, id))
            .flatten();
        let Some(position) = existing else {
            return self.add_item(kind, index, id);
        };
        self.check_kind(position, kind)
    }

    /// Starts a call once its name is known.
    fn start_call(
        &mut self,
        position: usize,
        name: OptionalStr<'_>,
        call_id: OptionalStr<'_>,
    ) -> DecodeResult {
        let item = self.order.state(position);
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
        let start = Delta::ToolStart {
            block: UNNUMBERED,
            name,
            provider_id: call_id,
        };
        self.order.push(position, ONLY, start)
    }

    pub(super) fn item_done(&mut self, index: Option<u32>, raw: &RawValue) -> DecodeResult {
        let item: ResponsesItem<'_> = read_json(raw.get())?;
        let position = self.find_or_add(index, &item)?;
        if self.order.state(position).is_done {
            return Ok(());
        }
        match self.order.state(position).kind {
            ItemKind::Message => self.message_done(position, &item, raw)?,
            ItemKind::Reasoning => self.reasoning_done(position, &item, raw)?,
            ItemKind::Call => return self.call_done(position, item, raw),
            ItemKind::Other => {
                self.push_provider_data(position, AFTER_PARTS, provider_data::item(raw))?;
            }
        }
        self.finish_item(position)
    }

    fn message_done(
        &mut self,
        position: usize,
        item: &ResponsesItem<'_>,
        raw: &RawValue,
    ) -> DecodeResult {
        for (part, content) in (0..).zip(list::<ResponsesPart<'_>>(item.content)) {
            let section = |kind| ItemSection { kind, part };
            let (text, refusal) = (content.text.as_str(), content.refusal.as_str());
            self.push_text_once(position, section(SectionKind::Answer), text)?;
            self.push_text_once(position, section(SectionKind::Refusal), refusal)?;
        }
        let Some(data) = provider_data::message(raw) else {
            return Ok(());
        };
        for section in self.order.state(position).sections.clone() {
            let data = match section.kind {
                SectionKind::Refusal => provider_data::with_refusal(data.clone()),
                _ => data.clone(),
            };
            self.push_provider_data(position, section.part, Some(data))?;
        }
        Ok(())
    }

    fn reasoning_done(
        &mut self,
        position: usize,
        item: &ResponsesItem<'_>,
        raw: &RawValue,
    ) -> DecodeResult {
        let sections = [
            (SectionKind::Summary, item.summary),
            (SectionKind::Reasoning, item.content),
        ];
        for (kind, parts) in sections {
            for (part, content) in (0..).zip(list::<ResponsesPart<'_>>(parts)) {
                let section = ItemSection { kind, part };
                self.push_text_once(position, section, content.text.as_str())?;
            }
        }
        self.push_provider_data(position, ONLY, provider_data::reasoning(raw))
    }

    fn call_done(
        &mut self,
        position: usize,
        item: ResponsesItem<'_>,
        raw: &RawValue,
    ) -> DecodeResult {
        self.start_call(position, item.name, item.call_id)?;
        self.push_input_once(position, item.arguments)?;
        let call = self.order.state(position).call.as_mut();
        let call = call.ok_or_else(ModelError::malformed)?;
        let has_input = call.has_input;
        let data = provider_data::call(raw).filter(|_| !call.has_provider_data);
        call.has_provider_data |= data.is_some();
        self.push_provider_data(position, ONLY, data)?;
        // A call of an incomplete answer without arguments stays open.
        if item.status.as_str() == "incomplete" && !has_input {
            return Ok(());
        }
        self.end_call(position)
    }
}
