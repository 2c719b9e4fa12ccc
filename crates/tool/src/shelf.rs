//! What data services have given during one invocation: items by data type and id, so that a
//! model can name what it wants shown instead of copying it. Bounded in number and bytes; what
//! no longer fits pushes the oldest out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

/// As many as a sub-agent can gather with its calls and still look through.
const ITEMS_MAX: usize = 2_000;
/// Eight answers of the largest kind a service may give.
const BYTES_MAX: usize = 8 * 1_048_576;

type Key = (Arc<str>, Arc<str>);

#[derive(Debug)]
struct Slot {
    item: Arc<Value>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Stock {
    slots: HashMap<Key, Slot>,
    /// The keys of `slots`, the longest there first.
    order: VecDeque<Key>,
    bytes: usize,
}

/// Items of one invocation. Putting and finding hold a short lock and never wait for anything
/// else.
#[derive(Debug, Default)]
pub struct Shelf {
    stock: Mutex<Stock>,
}

impl Shelf {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an item there; a newer one of the same id takes the place of the older. One that
    /// alone is larger than the shelf stays away.
    pub fn put(&self, data_type: &str, id: &str, item: Value) {
        let bytes = size(&item);
        if bytes > BYTES_MAX {
            return;
        }
        let key: Key = (data_type.into(), id.into());
        let mut stock = self.stock.lock();
        let slot = Slot {
            item: Arc::new(item),
            bytes,
        };
        stock.bytes += bytes;
        match stock.slots.insert(key.clone(), slot) {
            Some(older) => stock.bytes -= older.bytes,
            None => stock.order.push_back(key),
        }
        while stock.slots.len() > ITEMS_MAX || stock.bytes > BYTES_MAX {
            let Some(oldest) = stock.order.pop_front() else {
                break;
            };
            if let Some(gone) = stock.slots.remove(&oldest) {
                stock.bytes -= gone.bytes;
            }
        }
    }

    /// The items of those ids, in that order; or the ids that are not there.
    pub fn find(&self, data_type: &str, ids: &[&str]) -> Result<Vec<Arc<Value>>, Vec<String>> {
        let stock = self.stock.lock();
        let data_type: Arc<str> = data_type.into();
        let mut found = Vec::with_capacity(ids.len());
        let mut missing = Vec::new();
        for id in ids {
            match stock.slots.get(&(Arc::clone(&data_type), Arc::from(*id))) {
                Some(slot) => found.push(Arc::clone(&slot.item)),
                None => missing.push((*id).to_owned()),
            }
        }
        if missing.is_empty() {
            Ok(found)
        } else {
            Err(missing)
        }
    }

    /// How many items are there.
    pub fn len(&self) -> usize {
        self.stock.lock().slots.len()
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The bytes of a value's JSON, counted without writing it anywhere.
pub(crate) fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("a value is plain data and counting takes all");
    count.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_found_by_type_and_id_in_the_order_asked_for() {
        let shelf = Shelf::new();
        shelf.put("offer_list", "a", json!(1));
        shelf.put("offer_list", "b", json!(2));
        shelf.put("receipt_list", "c", json!(3));
        shelf.put("offer_list", "a", json!(4));
        let found = shelf.find("offer_list", &["b", "a"]).expect("both");
        assert_eq!(found, [Arc::new(json!(2)), Arc::new(json!(4))]);
        assert_eq!(
            shelf.find("offer_list", &["a", "c", "x"]),
            Err(vec!["c".to_owned(), "x".to_owned()])
        );
        assert_eq!(shelf.len(), 3);
    }

    #[test]
    fn a_full_shelf_loses_its_oldest_items() {
        let shelf = Shelf::new();
        for n in 0..ITEMS_MAX + 2 {
            shelf.put("t", &n.to_string(), json!(n));
        }
        assert_eq!(shelf.len(), ITEMS_MAX);
        assert!(shelf.find("t", &["1"]).is_err());
        assert!(shelf.find("t", &["2"]).is_ok());

        let shelf = Shelf::new();
        let big = json!("x".repeat(BYTES_MAX / 2));
        shelf.put("t", "a", big.clone());
        shelf.put("t", "b", big.clone());
        shelf.put("t", "c", json!("x".repeat(BYTES_MAX)));
        assert_eq!(shelf.len(), 1, "a is pushed out, c never comes");
        shelf.put("t", "b", json!(1));
        shelf.put("t", "d", big);
        assert!(shelf.find("t", &["b", "d"]).is_ok());
    }
}
