//! The items that data services returned to one agent, by data type and id, so that the model can
//! show an item by its id instead of copying it. Count and bytes are bounded; the oldest items are
//! dropped first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

/// More than a sub-agent can gather with its calls.
const ITEMS_MAX: usize = 2_000;
/// Eight responses of the largest size.
const BYTES_MAX: usize = 8 * 1_048_576;

/// The data type and the id of an item.
type ItemKey = (Arc<str>, Arc<str>);

#[derive(Debug)]
struct StoredItem {
    item: Arc<Value>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct StoredItems {
    by_key: HashMap<ItemKey, StoredItem>,
    /// The keys of `by_key`, the oldest first.
    order: VecDeque<ItemKey>,
    bytes: usize,
}

/// The items of one agent. Its methods hold a short lock and never wait.
#[derive(Debug, Default)]
pub struct ItemStore {
    items: Mutex<StoredItems>,
    /// The ids of placeholders whose data is being loaded, by data type; `None` for one that is not
    /// announced yet.
    loading: Mutex<HashMap<String, Option<String>>>,
}

/// A placeholder that is being announced. Unless it is [announced](Self::announced), it is given up
/// when this is dropped.
pub(crate) struct NewPlaceholder<'a> {
    store: &'a ItemStore,
    data_type: &'a str,
}

impl NewPlaceholder<'_> {
    /// Makes the placeholder known under the id that clients have seen.
    pub(crate) fn announced(self, id: String) {
        let mut loading = self.store.loading.lock();
        if let Some(placeholder) = loading.get_mut(self.data_type) {
            *placeholder = Some(id);
        }
    }
}

impl Drop for NewPlaceholder<'_> {
    fn drop(&mut self) {
        let mut loading = self.store.loading.lock();
        if loading.get(self.data_type) == Some(&None) {
            loading.remove(self.data_type);
        }
    }
}

impl ItemStore {
    /// A store without items.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to load data of `data_type`. `None` if a placeholder of the type is still open.
    pub(crate) fn begin_loading<'a>(&'a self, data_type: &'a str) -> Option<NewPlaceholder<'a>> {
        let mut loading = self.loading.lock();
        if loading.contains_key(data_type) {
            return None;
        }
        loading.insert(data_type.to_owned(), None);
        drop(loading);
        Some(NewPlaceholder {
            store: self,
            data_type,
        })
    }

    /// Takes the placeholder of `data_type` that clients see, if there is one: its data is there.
    pub(crate) fn end_loading(&self, data_type: &str) -> Option<String> {
        let mut loading = self.loading.lock();
        let id = loading.get_mut(data_type)?.take()?;
        loading.remove(data_type);
        Some(id)
    }

    /// Stores an item; it replaces an older one with the same key. An item larger than the whole
    /// store is not stored.
    pub fn put(&self, data_type: &str, id: &str, item: Value) {
        let bytes = json_bytes(&item);
        if bytes > BYTES_MAX {
            return;
        }
        let key: ItemKey = (data_type.into(), id.into());
        let mut items = self.items.lock();
        let stored = StoredItem {
            item: Arc::new(item),
            bytes,
        };
        items.bytes += bytes;
        match items.by_key.insert(key.clone(), stored) {
            Some(replaced) => items.bytes -= replaced.bytes,
            None => items.order.push_back(key),
        }
        while items.by_key.len() > ITEMS_MAX || items.bytes > BYTES_MAX {
            let Some(oldest) = items.order.pop_front() else {
                break;
            };
            if let Some(dropped) = items.by_key.remove(&oldest) {
                items.bytes -= dropped.bytes;
            }
        }
    }

    /// The items with these ids, in their order; otherwise the missing ids.
    pub fn get(&self, data_type: &str, ids: &[&str]) -> Result<Vec<Arc<Value>>, Vec<String>> {
        let items = self.items.lock();
        let data_type: Arc<str> = data_type.into();
        let mut selected = Vec::with_capacity(ids.len());
        let mut missing = Vec::new();
        for id in ids {
            match items.by_key.get(&(Arc::clone(&data_type), Arc::from(*id))) {
                Some(stored) => selected.push(Arc::clone(&stored.item)),
                None => missing.push((*id).to_owned()),
            }
        }
        if missing.is_empty() {
            Ok(selected)
        } else {
            Err(missing)
        }
    }
}

/// The length of the JSON of `value`, counted without a buffer.
pub(crate) fn json_bytes(value: &Value) -> usize {
    struct ByteCount(usize);
    impl std::io::Write for ByteCount {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCount(0);
    serde_json::to_writer(&mut count, value)
        .expect("a value is plain data, and counting never fails");
    count.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    impl ItemStore {
        pub(crate) fn len(&self) -> usize {
            self.items.lock().by_key.len()
        }
    }

    #[test]
    fn items_are_returned_in_the_order_of_the_ids() {
        let store = ItemStore::new();
        store.put("offer_list", "a", json!(1));
        store.put("offer_list", "b", json!(2));
        store.put("receipt_list", "c", json!(3));
        store.put("offer_list", "a", json!(4));
        let items = store.get("offer_list", &["b", "a"]).expect("both");
        assert_eq!(items, [Arc::new(json!(2)), Arc::new(json!(4))]);
        assert_eq!(
            store.get("offer_list", &["a", "c", "x"]),
            Err(vec!["c".to_owned(), "x".to_owned()])
        );
        assert_eq!(store.len(), 3);
    }

    #[test]
    fn full_store_drops_its_oldest_items() {
        let store = ItemStore::new();
        for n in 0..ITEMS_MAX + 2 {
            store.put("t", &n.to_string(), json!(n));
        }
        assert_eq!(store.len(), ITEMS_MAX);
        assert!(store.get("t", &["1"]).is_err());
        assert!(store.get("t", &["2"]).is_ok());

        let store = ItemStore::new();
        let big = json!("x".repeat(BYTES_MAX / 2));
        store.put("t", "a", big.clone());
        store.put("t", "b", big.clone());
        store.put("t", "c", json!("x".repeat(BYTES_MAX)));
        assert_eq!(store.len(), 1, "a is dropped, c is not stored");
        store.put("t", "b", json!(1));
        store.put("t", "d", big);
        assert!(store.get("t", &["b", "d"]).is_ok());
    }
}
