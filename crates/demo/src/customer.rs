//! The data of one customer: points, receipts and frequent purchases. The balance is derived from the
//! principal, so every principal always has the same balance of its own.

use serde_json::{Value, json};

use crate::language::DemoLanguage;
use crate::offers::title;
use crate::query::SearchQuery;

/// Points between two rewards.
const REWARD_STEP: u64 = 1_000;
/// The most receipts in one answer.
const RECEIPTS_MAX: usize = 3;

/// The balance of `principal`, as a list of one item.
pub(crate) fn points(principal: &str, language: DemoLanguage) -> Vec<Value> {
    let points = 500 + hash_of(principal) % 9_000;
    let tier = match points {
        0..2_500 => ["Bronze", "Bronze", "Bronce"],
        2_500..6_000 => ["Silver", "Silber", "Plata"],
        _ => ["Gold", "Gold", "Oro"],
    };
    let unit = language.pick(["points", "Punkte", "puntos"]);
    vec![json!({
        "id": "balance",
        "points": points,
        "tier": language.pick(tier),
        "missing": REWARD_STEP - points % REWARD_STEP,
        "label": format!("{} {unit}", language.number(points)),
    })]
}

struct StoredReceipt {
    id: &'static str,
    store: &'static str,
    ago: u32,
    cents: u32,
    /// The ids of the offers that were bought.
    goods: &'static [&'static str],
    names: &'static [&'static str],
}

#[rustfmt::skip]
const RECEIPTS: &[StoredReceipt] = &[
    StoredReceipt { id: "REC_5", store: "Fresh Corner", ago: 2, cents: 1_284, goods: &["OFF_01", "OFF_06", "OFF_14"], names: &["fresh", "corner", "oat", "milk", "hafer", "milch", "avena", "leche", "bread", "brot", "pan", "tomat"] },
    StoredReceipt { id: "REC_4", store: "Bean House", ago: 6, cents: 1_199, goods: &["OFF_07"], names: &["bean", "house", "coffee", "kaffee", "cafe"] },
    StoredReceipt { id: "REC_3", store: "Daily Market", ago: 9, cents: 2_347, goods: &["OFF_10", "OFF_12", "OFF_18"], names: &["daily", "cheese", "kase", "queso", "pasta", "nudel", "spaghetti", "water", "wasser", "agua"] },
    StoredReceipt { id: "REC_2", store: "Green Basket", ago: 15, cents: 1_760, goods: &["OFF_03", "OFF_11"], names: &["green", "basket", "granola", "musli", "egg", "eier", "huevo"] },
    StoredReceipt { id: "REC_1", store: "Nest & Home", ago: 23, cents: 2_098, goods: &["OFF_19", "OFF_21"], names: &["nest", "home", "laundry", "wasch", "detergent", "dog", "hund", "perro"] },
];

/// The receipts that `query` names, or the newest.
pub(crate) fn receipts(query: &SearchQuery, language: DemoLanguage) -> Vec<Value> {
    let mut matching: Vec<&StoredReceipt> = RECEIPTS.iter().collect();
    if matching
        .iter()
        .any(|receipt| query.score(receipt.names) > 0)
    {
        matching.retain(|receipt| query.score(receipt.names) > 0);
    }
    let listed = matching.into_iter().take(RECEIPTS_MAX);
    listed.map(|one| receipt_item(one, language)).collect()
}

fn receipt_item(receipt: &StoredReceipt, language: DemoLanguage) -> Value {
    let store = receipt.store;
    let bought = language.ago(receipt.ago);
    let total = language.money(receipt.cents);
    let goods: Vec<&str> = receipt.goods.iter().map(|id| title(id, language)).collect();
    json!({
        "id": receipt.id,
        "store": store,
        "bought": bought,
        "total": total,
        "goods": goods,
        "label": format!("{store} ({bought}, {total})"),
    })
}

/// Frequent purchases: the offer and how many times it was bought.
const PURCHASES: &[(&str, u32)] = &[("OFF_01", 9), ("OFF_02", 6), ("OFF_06", 5), ("OFF_10", 3)];

/// Frequent purchases, most frequent first.
pub(crate) fn purchases(language: DemoLanguage) -> Vec<Value> {
    let items = PURCHASES.iter().map(|(id, times)| {
        let title = title(id, language);
        json!({"id": id, "title": title, "times": times, "label": format!("{title} ({times}×)")})
    });
    items.collect()
}

/// The FNV-1a hash of a principal.
pub(crate) fn hash_of(principal: &str) -> u64 {
    principal.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balance_is_stable_per_principal() {
        let of = |name: &str| points(name, DemoLanguage::En)[0]["points"].as_u64();
        assert_eq!(of("user-42"), of("user-42"));
        assert_ne!(of("user-42"), of("user-43"));
    }

    #[test]
    fn query_selects_receipts_else_the_newest() {
        let ids = |text: &str| -> Vec<Value> {
            let items = receipts(&SearchQuery::new(text.chars()), DemoLanguage::En);
            items.iter().map(|item| item["id"].clone()).collect()
        };
        assert_eq!(ids("my receipt from Bean House"), ["REC_4"]);
        assert_eq!(ids("Kassenbon mit Käse"), ["REC_3"]);
        assert_eq!(ids("my receipts"), ["REC_5", "REC_4", "REC_3"]);
    }

    #[test]
    fn receipts_and_purchases_name_existing_offers() {
        let goods = RECEIPTS.iter().flat_map(|receipt| receipt.goods);
        for id in goods.chain(PURCHASES.iter().map(|(id, _)| id)) {
            assert_ne!(title(id, DemoLanguage::De), "", "{id}");
        }
    }
}
