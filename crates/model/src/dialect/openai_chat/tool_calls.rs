//! Assembles the tool calls of one answer from fragments, although servers identify them
//! carelessly.
//!
//! A fragment belongs to the call of its index, else of its id, else to the last call. An index
//! that comes again with another id and a name is another call; an unknown index without a name
//! belongs to the last call. A call is emitted once its name is complete: when its first arguments
//! arrive, or something else does.
//!
//! Calls are emitted in the order of their indices (S3-065): a call waits while a lower index has not
//! been seen. A server that counts from 1 delays its first call until the second. A call ends when its
//! arguments are a complete object and something else of the answer arrives, else with the answer.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::fold::message::BLOCKS_MAX;

use super::chunk::{CallFragment, FunctionFragment};
use super::object_scan::ObjectScan;
use crate::delta::{Delta, ModelError};
use crate::dialect::answer_ending::AnswerEnding;
use crate::dialect::lenient::LenientStr;
use crate::dialect::{BlockWriter, DecodeResult};

/// Upper limit of buffered names, ids and arguments in bytes. Vendors allow names of 64 characters,
/// and arguments before the name are rare and short.
const BUFFERED_BYTES_MAX: usize = 256 * 1024;

/// Upper limit of server-specific fields on all calls in bytes; signatures have thousands. Larger
/// fields are dropped.
const EXTRA_BYTES_MAX: usize = 256 * 1024;

/// Upper limit of server-specific fields on one call; known servers send one.
const EXTRA_FIELDS_MAX: usize = 16;

/// Key of these fields in the provider data of a call ([`Delta::ProviderData`]).
pub(super) const EXTRA: &str = "extra";

/// The calls of an answer, in the order in which they were opened.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: Vec<PendingCall>,
    /// Position of the call whose name may be incomplete.
    awaiting_name: Option<usize>,
    /// The lowest index without a call. Calls with a higher one wait.
    next_index: u64,
    buffered_bytes: usize,
    extra_bytes: usize,
}

#[derive(Debug, Default)]
struct PendingCall {
    index: Option<u64>,
    id: String,
    name: String,
    /// Arguments that arrived before the name.
    early_arguments: String,
    /// Block number, once the call is emitted.
    block: Option<u32>,
    /// True once arguments have arrived.
    has_arguments: bool,
    arguments: ObjectScan,
    /// True once the name is complete.
    is_named: bool,
    /// True once [`Delta::ToolEnd`] is emitted.
    is_ended: bool,
    /// Fields that are not decoded. The server that sent them expects them back.
    extra: Map<String, Value>,
    /// True if the id and `extra` are emitted as provider data.
    has_emitted_data: bool,
}

impl ToolCalls {
    /// True if a tool call was emitted.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.iter().any(|call| call.block.is_some())
    }

    /// Adds a [`CallFragment`]; its blocks are opened in `blocks`.
    pub(super) fn push(
        &mut self,
        fragment: CallFragment<'_>,
        blocks: &mut BlockWriter,
    ) -> DecodeResult {
        let FunctionFragment { name, arguments } = fragment.function.unwrap_or_default();
        let (id, name) = (fragment.id.as_str(), name.as_str());
        let index = fragment.index.map(|index| index.0);
        let position = match self.find(index, id, name) {
            Some(position) => position,
            None => self.open_call(index, blocks)?,
        };
        if self.awaiting_name.is_some_and(|other| other != position) {
            self.emit_awaiting_name(blocks);
        }
        self.end_complete_calls(Some(position), blocks);
        self.push_name(position, id, name)?;
        self.add_extra(position, &fragment.other_fields);
        self.emit_provider_data(position, blocks);
        let arguments = arguments.unwrap_or_default().0;
        if arguments.is_empty() {
            return Ok(());
        }
        self.push_arguments(position, arguments, blocks)
    }

    /// Index of the call that a fragment belongs to; `None` if it opens a call.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let other_id = |call: &PendingCall| !id.is_empty() && !call.id.is_empty() && call.id != id;
        if index.is_some() {
            let position = self.calls.iter().rposition(|call| call.index == index);
            return match position {
                Some(position) if other_id(&self.calls[position]) && !name.is_empty() => None,
                Some(position) => Some(position),
                None if !id.is_empty() => self.find_by_id(id),
                None if name.is_empty() => self.last_index(),
                None => None,
            };
        }
        if !id.is_empty() {
            return self.find_by_id(id);
        }
        let last = self.last_index()?;
        // A name while the last call receives arguments opens another call.
        (name.is_empty() || !self.calls[last].has_arguments).then_some(last)
    }

    fn find_by_id(&self, id: &str) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id == id)
    }

    fn last_index(&self) -> Option<usize> {
        self.calls.len().checked_sub(1)
    }

    fn open_call(&mut self, index: Option<u64>, blocks: &mut BlockWriter) -> DecodeResult<usize> {
        self.emit_awaiting_name(blocks);
        if self.calls.len() >= BLOCKS_MAX as usize {
            return Err(LlmErrorClass::Provider.into());
        }
        self.calls.push(PendingCall {
            index,
            ..PendingCall::default()
        });
        if let Some(index) = index {
            self.skip_missing(index);
            while self.has_index(self.next_index) {
                self.next_index += 1;
            }
            self.emit_ready(blocks);
        }
        Ok(self.calls.len() - 1)
    }

    fn has_index(&self, index: u64) -> bool {
        index < u64::MAX && self.calls.iter().any(|call| call.index == Some(index))
    }

    /// If the call before `index` waits and has arguments, the indices before the waiting ones do not
    /// come: the server does not count from 0.
    fn skip_missing(&mut self, index: u64) {
        let next = self.next_index;
        let Some(previous) = index.checked_sub(1).filter(|previous| *previous > next) else {
            return;
        };
        let waiting = self.calls.iter().filter(|call| call.index > Some(next));
        let has_arguments =
            |call: &&PendingCall| call.index == Some(previous) && call.has_arguments;
        let first = waiting.clone().filter_map(|call| call.index).min();
        let Some(first) = first.filter(|_| waiting.clone().any(|call| has_arguments(&call))) else {
            return;
        };
        if (first..=previous).all(|index| self.has_index(index)) {
            self.next_index = first;
        }
    }

    /// Ends the calls, except that at `active`, whose arguments are complete: something else arrives.
    pub(super) fn end_complete_calls(&mut self, active: Option<usize>, blocks: &mut BlockWriter) {
        for (position, call) in self.calls.iter_mut().enumerate() {
            if let Some(block) = call.block
                && active != Some(position)
                && !call.is_ended
                && call.arguments.is_complete()
            {
                call.is_ended = true;
                blocks.out.push_back(Delta::ToolEnd { block });
            }
        }
    }

    /// Adds the id and name of a fragment. Some servers repeat both.
    fn push_name(&mut self, position: usize, id: &str, name: &str) -> DecodeResult {
        let call = &mut self.calls[position];
        let mut bytes = 0;
        if call.id.is_empty() && !id.is_empty() {
            bytes += id.len();
            id.clone_into(&mut call.id);
            call.has_emitted_data = false;
        }
        if !call.is_named && !name.is_empty() && call.name != name {
            bytes += name.len();
            call.name.push_str(name);
            self.awaiting_name = Some(position);
        }
        self.count_buffered(bytes)
    }

    /// Adds the fields of a fragment that are not decoded. Some servers repeat them: the first of a
    /// name counts.
    fn add_extra(&mut self, position: usize, other_fields: &[(LenientStr<'_>, &RawValue)]) {
        let call = &mut self.calls[position];
        for (name, raw) in other_fields {
            let name = name.as_str();
            let bytes = self.extra_bytes + name.len() + raw.get().len();
            let is_full = call.extra.len() >= EXTRA_FIELDS_MAX || bytes > EXTRA_BYTES_MAX;
            if is_full || call.extra.contains_key(name) {
                continue;
            }
            if let Ok(value) = serde_json::from_str(raw.get()) {
                self.extra_bytes = bytes;
                call.extra.insert(name.to_owned(), value);
                call.has_emitted_data = false;
            }
        }
    }

    /// Emits the provider data of an emitted call, unless that is done.
    fn emit_provider_data(&mut self, position: usize, blocks: &mut BlockWriter) {
        let call = &mut self.calls[position];
        let Some(block) = call.block.filter(|_| !call.has_emitted_data) else {
            return;
        };
        let mut data = Map::new();
        if !call.id.is_empty() {
            data.insert("id".into(), call.id.clone().into());
        }
        if !call.extra.is_empty() {
            data.insert(EXTRA.into(), Value::Object(call.extra.clone()));
        }
        call.has_emitted_data = true;
        if !data.is_empty() {
            let data = Value::Object(data);
            blocks.out.push_back(Delta::ProviderData { block, data });
        }
    }

    fn push_arguments(
        &mut self,
        position: usize,
        fragment: String,
        blocks: &mut BlockWriter,
    ) -> DecodeResult {
        let call = &mut self.calls[position];
        if call.is_ended {
            // White space after an object changes nothing; anything else has no place any more.
            let is_blank = fragment.bytes().all(|byte| byte.is_ascii_whitespace());
            return is_blank.then_some(()).ok_or_else(ModelError::malformed);
        }
        call.has_arguments = true;
        call.arguments.push(&fragment);
        if self.awaiting_name == Some(position) {
            self.emit_awaiting_name(blocks);
        }
        let call = &mut self.calls[position];
        match call.block {
            Some(block) => blocks.out.push_back(Delta::ToolInput { block, fragment }),
            None => {
                call.early_arguments.push_str(&fragment);
                if call.is_named && self.buffered_bytes + fragment.len() > BUFFERED_BYTES_MAX {
                    // A lower index is not waited for any longer.
                    self.next_index = u64::MAX;
                    self.emit_ready(blocks);
                } else {
                    self.count_buffered(fragment.len())?;
                }
            }
        }
        Ok(())
    }

    fn count_buffered(&mut self, bytes: usize) -> DecodeResult {
        self.buffered_bytes += bytes;
        if self.buffered_bytes > BUFFERED_BYTES_MAX {
            return Err(LlmErrorClass::Provider.into());
        }
        Ok(())
    }

    /// Completes the name of the call that waits for it, since something else follows now, and emits
    /// the call unless it waits for a lower index.
    pub(super) fn emit_awaiting_name(&mut self, blocks: &mut BlockWriter) {
        if let Some(position) = self.awaiting_name.take() {
            self.calls[position].is_named = true;
            self.emit_ready(blocks);
        }
    }

    /// Emits the calls that wait for nothing, in the order of their indices. A call without an index
    /// waits for its name alone.
    fn emit_ready(&mut self, blocks: &mut BlockWriter) {
        let calls = self.calls.iter().enumerate();
        let mut waiting: Vec<usize> = calls
            .filter(|(_, call)| call.block.is_none())
            .map(|(position, _)| position)
            .collect();
        waiting.sort_by_key(|position| self.calls[*position].index);
        for position in waiting {
            let call = &self.calls[position];
            match (call.index, call.is_named) {
                (None, false) => {}
                (Some(index), true) if index > self.next_index => return,
                (Some(_), false) => return,
                (None | Some(_), true) => self.emit_call(position, blocks),
            }
        }
    }

    fn emit_call(&mut self, position: usize, blocks: &mut BlockWriter) {
        let call = &mut self.calls[position];
        let block = blocks.open();
        call.block = Some(block);
        blocks.out.push_back(Delta::ToolStart {
            block,
            name: std::mem::take(&mut call.name),
            provider_id: Some(call.id.clone()).filter(|id| !id.is_empty()),
        });
        let fragment = std::mem::take(&mut call.early_arguments);
        self.emit_provider_data(position, blocks);
        if !fragment.is_empty() {
            blocks.out.push_back(Delta::ToolInput { block, fragment });
        }
    }

    /// Ends the calls. A call that was cut off before its input is left open, so that it is not
    /// taken for a call without input; a call with arguments and no name is an error.
    pub(super) fn finish(
        &mut self,
        ending: AnswerEnding,
        blocks: &mut BlockWriter,
    ) -> DecodeResult {
        self.emit_awaiting_name(blocks);
        let is_unnamed = |call: &PendingCall| call.has_arguments && !call.is_named;
        if self.calls.iter().any(is_unnamed) && !ending.is_cut_short() {
            return Err(LlmErrorClass::Provider.into());
        }
        self.calls.retain(|call| call.is_named);
        self.next_index = u64::MAX;
        self.emit_ready(blocks);
        self.calls.sort_by_key(|call| call.block);
        for call in self.calls.iter_mut().filter(|call| !call.is_ended) {
            match call.block {
                Some(block) if call.has_arguments || !ending.is_cut_short() => {
                    call.is_ended = true;
                    blocks.out.push_back(Delta::ToolEnd { block });
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}
