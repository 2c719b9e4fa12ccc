//! One budget of bytes over the [`HistoryCache`](super::cache::HistoryCache)s of all sessions, with a
//! share for each owner. A cache that does not fit is cleared: its next turn reads the store.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use turnwire_event::{ContentBlock, Message, Owner};

/// An owner may use one part in four of the budget, so that the caches of one owner cannot make the
/// turns of all others read the store.
const OWNER_PARTS: usize = 4;

/// The bytes that the history caches of a server may hold together.
pub(crate) struct HistoryCacheBudget {
    max: usize,
    used: Mutex<UsedBytes>,
}

#[derive(Default)]
struct UsedBytes {
    total: usize,
    by_owner: HashMap<Owner, usize>,
}

impl HistoryCacheBudget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let used = Mutex::default();
        Arc::new(Self { max, used })
    }

    /// The reservation of a cache of `owner`, which is empty.
    pub(crate) fn reservation(self: &Arc<Self>, owner: Owner) -> CacheReservation {
        CacheReservation {
            budget: self.clone(),
            owner,
            bytes: 0,
        }
    }

    /// Changes a reservation of `owner` from `old` to `new` bytes. False, without effect, if it grows
    /// and there is no room.
    fn resize(&self, owner: &Owner, old: usize, new: usize) -> bool {
        let mut used = self.used.lock();
        let total = used.total - old + new;
        let of_owner = used.by_owner.get(owner).copied().unwrap_or_default() - old + new;
        if new > old && (total > self.max || of_owner > self.max / OWNER_PARTS) {
            return false;
        }
        used.total = total;
        match of_owner {
            0 => drop(used.by_owner.remove(owner)),
            _ => drop(used.by_owner.insert(owner.clone(), of_owner)),
        }
        true
    }
}

/// The bytes of one cache in the [`HistoryCacheBudget`]; given back when it is dropped.
pub(crate) struct CacheReservation {
    budget: Arc<HistoryCacheBudget>,
    owner: Owner,
    bytes: usize,
}

impl CacheReservation {
    /// Reserves `bytes` instead of what was reserved before; false, without effect, if there is no
    /// room.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        let fits = bytes == self.bytes || self.budget.resize(&self.owner, self.bytes, bytes);
        if fits {
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for CacheReservation {
    fn drop(&mut self) {
        self.resize(0);
    }
}

/// What a key of a [`Map`] takes beside its text and its value: the entry and its index.
const MAP_ENTRY_BYTES: usize = 64;

/// The memory of a message. Values of JSON take many times the bytes of their text.
pub(crate) fn memory_bytes(message: &Message) -> usize {
    let content = message.content.iter().map(block_bytes).sum::<usize>();
    let state = &message.provider_state.blocks;
    let state = state
        .values()
        .map(|value| MAP_ENTRY_BYTES + value_bytes(value));
    size_of::<Message>() + content + message.metadata.as_json().len() + state.sum::<usize>()
}

fn block_bytes(block: &ContentBlock) -> usize {
    let parts = match block {
        // A text that was streamed may have room for more.
        ContentBlock::Text { text } => text.capacity(),
        ContentBlock::Thinking { text, signature } => {
            text.capacity() + signature.as_ref().map_or(0, String::capacity)
        }
        ContentBlock::ToolUse { name, input, .. } => name.len() + value_bytes(input),
        ContentBlock::ToolResult { content, .. } => value_bytes(content),
        ContentBlock::Component { component, .. } => value_bytes(component),
        ContentBlock::Data {
            data_id,
            data_type,
            key,
            items,
        } => data_id.len() + data_type.len() + value_bytes(key) + value_bytes(items),
    };
    size_of::<ContentBlock>() + parts
}

fn value_bytes(value: &Value) -> usize {
    let parts = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_bytes).sum(),
        Value::Object(map) => map_bytes(map),
    };
    size_of::<Value>() + parts
}

fn map_bytes(map: &Map<String, Value>) -> usize {
    let entries = map.iter();
    entries
        .map(|(key, value)| MAP_ENTRY_BYTES + key.len() + value_bytes(value))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::TenantId;

    fn owner(name: &str) -> Owner {
        Owner {
            tenant: TenantId(0),
            principal: name.parse().expect("a principal"),
        }
    }

    #[test]
    fn owner_gets_a_quarter_of_the_budget() {
        let budget = HistoryCacheBudget::new(400);
        let (mut one, mut two) = (
            budget.reservation(owner("ann")),
            budget.reservation(owner("ann")),
        );
        assert!(one.resize(60));
        assert!(!two.resize(41), "the share of the owner");
        assert!(two.resize(40));
        let mut others: Vec<_> = ["bob", "cat", "dan"]
            .map(owner)
            .map(|of| budget.reservation(of))
            .into();
        assert!(others.iter_mut().all(|other| other.resize(100)));
        assert!(!budget.reservation(owner("eve")).resize(1), "all is used");
        assert!(one.resize(10), "a smaller one always fits");
        drop((one, two, others));
        let used = budget.used.lock();
        assert_eq!((used.total, used.by_owner.len()), (0, 0));
    }
}
