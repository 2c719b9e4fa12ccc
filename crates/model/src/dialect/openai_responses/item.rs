//! Items that begin and that are done: calls get their name, words that were not streamed are said
//! whole, and what the vendor wants back is kept.

use std::collections::VecDeque;

use serde_json::value::RawValue;

use super::chunk::{self, Event};
use super::normalize::{ONLY, Reader, index, malformed};
use super::order::{Call, Kind, Piece, Section, Voice};
use super::sealed;
use crate::delta::{Delta, ModelError};
use crate::dialect::lent::Words;

/// The block behind all parts of an item, for what is nothing but kept.
const BEHIND: u32 = u32::MAX;

impl Reader {
    pub(super) fn added(
        &mut self,
        event: &Event<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
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
        self.settle(at, kind)
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
        if item.kind != Kind::Call || item.call.is_some() || item.is_done {
            return Ok(());
        }
        let Some(name) = name.said() else {
            return Ok(());
        };
        let call_id = call_id.said();
        item.call = Some(Call {
            call_id: call_id.clone(),
            has_input: false,
            is_kept: false,
        });
        self.has_calls = true;
        let start = Piece::ToolStart(name, call_id);
        Ok(self.order.say(at, ONLY, start, out)?)
    }

    pub(super) fn done(
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
            Kind::Call => return self.call_done(at, item, raw, out),
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
        self.input_once(at, item.arguments, out)?;
        let call = self.order.item(at).call.as_mut().ok_or_else(malformed)?;
        let has_input = call.has_input;
        let kept = sealed::call(raw).filter(|_| !call.is_kept);
        call.is_kept |= kept.is_some();
        if let Some(kept) = kept {
            self.order.say(at, ONLY, Piece::Keep(kept), out)?;
        }
        // One that was cut before its arguments came is not whole, if the answer is not.
        if item.status.as_str() == "incomplete" && !has_input {
            return Ok(());
        }
        self.order.say(at, ONLY, Piece::ToolEnd, out)?;
        Ok(self.order.finish(at, out)?)
    }
}

fn read_item(raw: &RawValue) -> Result<chunk::Item<'_>, ModelError> {
    serde_json::from_str(raw.get()).map_err(|_| malformed())
}
