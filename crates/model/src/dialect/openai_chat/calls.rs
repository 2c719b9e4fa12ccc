//! The tool calls of one answer, told apart although servers name them carelessly.
//!
//! A fragment belongs to the call of its index, else of its id, else to the last one. An index that
//! comes again with another id and a name is another call; one that nobody has opened and that
//! names nothing belongs to the last. A call is told once its name is whole: when its first
//! argument comes, or something else does.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::fold::message::BLOCKS_MAX;

use super::chunk::{Call as Fragment, Function};
use crate::delta::{Delta, ModelError};
use crate::dialect::loose::Glance;

/// Bytes of names, ids and arguments that wait for a call's name, at most; vendors allow names of
/// 64, and arguments before the name are rare and short.
const HELD_BYTES_MAX: usize = 256 * 1024;

/// Bytes of fields of the servers' own on all calls, at most; seals have thousands. What is more is
/// not kept.
const EXTRA_BYTES_MAX: usize = 256 * 1024;

/// Fields of the server's own on one call, at most; those that are known have one.
const EXTRA_FIELDS_MAX: usize = 16;

/// Where such fields stand in what is kept of a call.
pub(super) const EXTRA: &str = "extra";

/// The calls, in the order they were opened.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// The one whose name may not be whole.
    waiting: Option<usize>,
    held_bytes: usize,
    extra_bytes: usize,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    /// Arguments that came before the name.
    early: String,
    /// Its block, once it is told.
    block: Option<u32>,
    /// Whether any argument has come.
    fed: bool,
    /// Fields that nobody reads here. The server that put them there wants them back.
    extra: Map<String, Value>,
    /// Whether its id and those fields are kept.
    kept: bool,
}

/// How an answer ended, as far as its tools are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The model was done.
    No,
    /// The model was stopped: the input of a call may be missing.
    Yes,
}

impl Calls {
    /// Whether the model has asked for a tool.
    pub(super) fn any(&self) -> bool {
        self.calls.iter().any(|call| call.block.is_some())
    }

    /// Takes a fragment of a call; `next` is the number of the next block.
    pub(super) fn take(
        &mut self,
        fragment: Fragment<'_>,
        next: &mut u32,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let Function { name, arguments } = fragment.function.unwrap_or_default();
        let name = name.as_ref().map_or("", |name| name.as_str());
        let id = fragment.id.as_ref().map_or("", |id| id.as_str());
        let index = fragment.index.map(|index| index.0);
        let at = match self.find(index, id, name) {
            Some(at) => at,
            None => self.open(index, next, out)?,
        };
        if self.waiting.is_some_and(|waiting| waiting != at) {
            self.settle(next, out);
        }
        self.name(at, id, name)?;
        self.note(at, &fragment.rest);
        self.keep(at, out);
        let arguments = arguments.unwrap_or_default().0;
        if arguments.is_empty() {
            return Ok(());
        }
        self.feed(at, arguments, next, out)
    }

    /// Which call a fragment belongs to; none if it opens one.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let other_id = |call: &Call| !id.is_empty() && !call.id.is_empty() && call.id != id;
        if index.is_some() {
            let at = self.calls.iter().rposition(|call| call.index == index);
            return match at {
                Some(at) if other_id(&self.calls[at]) && !name.is_empty() => None,
                Some(at) => Some(at),
                None if !id.is_empty() => self.of_id(id),
                None if name.is_empty() => self.last(),
                None => None,
            };
        }
        if !id.is_empty() {
            return self.of_id(id);
        }
        let last = self.last()?;
        // Whoever names a tool while the last one is being fed begins another.
        (name.is_empty() || !self.calls[last].fed).then_some(last)
    }

    fn of_id(&self, id: &str) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id == id)
    }

    fn last(&self) -> Option<usize> {
        self.calls.len().checked_sub(1)
    }

    fn open(
        &mut self,
        index: Option<u64>,
        next: &mut u32,
        out: &mut VecDeque<Delta>,
    ) -> Result<usize, ModelError> {
        self.settle(next, out);
        if self.calls.len() >= BLOCKS_MAX as usize {
            return Err(LlmErrorClass::Provider.into());
        }
        self.calls.push(Call {
            index,
            ..Call::default()
        });
        Ok(self.calls.len() - 1)
    }

    /// Takes what a fragment says of the call's id and name. Some servers repeat both.
    fn name(&mut self, at: usize, id: &str, name: &str) -> Result<(), ModelError> {
        let call = &mut self.calls[at];
        let mut held = 0;
        if call.id.is_empty() && !id.is_empty() {
            held += id.len();
            id.clone_into(&mut call.id);
            call.kept = false;
        }
        if call.block.is_none() && !name.is_empty() && call.name != name {
            held += name.len();
            call.name.push_str(name);
            self.waiting = Some(at);
        }
        self.hold(held)
    }

    /// Takes the fields of a fragment that nobody reads here. Some servers repeat them: the first
    /// one of a name counts.
    fn note(&mut self, at: usize, rest: &[(Glance<'_>, &RawValue)]) {
        let call = &mut self.calls[at];
        for (name, raw) in rest {
            let name = name.as_str();
            let bytes = self.extra_bytes + name.len() + raw.get().len();
            let is_full = call.extra.len() >= EXTRA_FIELDS_MAX || bytes > EXTRA_BYTES_MAX;
            if is_full || call.extra.contains_key(name) {
                continue;
            }
            if let Ok(value) = serde_json::from_str(raw.get()) {
                self.extra_bytes = bytes;
                call.extra.insert(name.to_owned(), value);
                call.kept = false;
            }
        }
    }

    /// What the provider wants back with a call that is told, if it is not kept yet.
    fn keep(&mut self, at: usize, out: &mut VecDeque<Delta>) {
        let call = &mut self.calls[at];
        let Some(block) = call.block.filter(|_| !call.kept) else {
            return;
        };
        let mut kept = Map::new();
        if !call.id.is_empty() {
            kept.insert("id".into(), call.id.clone().into());
        }
        if !call.extra.is_empty() {
            kept.insert(EXTRA.into(), Value::Object(call.extra.clone()));
        }
        call.kept = true;
        if !kept.is_empty() {
            let data = Value::Object(kept);
            out.push_back(Delta::Keep { block, data });
        }
    }

    fn feed(
        &mut self,
        at: usize,
        fragment: String,
        next: &mut u32,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        self.calls[at].fed = true;
        if self.waiting == Some(at) {
            self.settle(next, out);
        }
        let call = &mut self.calls[at];
        match call.block {
            Some(block) => out.push_back(Delta::ToolInput { block, fragment }),
            None => {
                call.early.push_str(&fragment);
                self.hold(fragment.len())?;
            }
        }
        Ok(())
    }

    fn hold(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.held_bytes += bytes;
        if self.held_bytes > HELD_BYTES_MAX {
            return Err(LlmErrorClass::Provider.into());
        }
        Ok(())
    }

    /// Tells the call whose name was waited for: something else comes now.
    pub(super) fn settle(&mut self, next: &mut u32, out: &mut VecDeque<Delta>) {
        let Some(at) = self.waiting.take() else {
            return;
        };
        let call = &mut self.calls[at];
        let block = *next;
        *next += 1;
        call.block = Some(block);
        out.push_back(Delta::ToolStart {
            block,
            name: std::mem::take(&mut call.name),
            provider_id: Some(call.id.clone()).filter(|id| !id.is_empty()),
        });
        let fragment = std::mem::take(&mut call.early);
        self.keep(at, out);
        if !fragment.is_empty() {
            out.push_back(Delta::ToolInput { block, fragment });
        }
    }

    /// The answer is over: the inputs are whole. A call that was cut off before its input began is
    /// left open, so that nobody takes it for one without input; one that was fed and never named
    /// cannot be told.
    pub(super) fn finish(
        &mut self,
        cut: Cut,
        next: &mut u32,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        self.settle(next, out);
        for call in &self.calls {
            match call.block {
                Some(block) if call.fed || cut == Cut::No => {
                    out.push_back(Delta::ToolEnd { block });
                }
                Some(_) => {}
                None if call.fed && cut == Cut::No => return Err(LlmErrorClass::Provider.into()),
                None => {}
            }
        }
        Ok(())
    }
}
