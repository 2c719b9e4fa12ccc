//! What the demo knows of a person: points, receipts and what is bought often. Points follow
//! from the principal alone, so that everyone has a balance of their own and always the same.

use serde_json::{Value, json};

use super::offers::title;
use super::tongue::Tongue;
use super::words::Query;

/// Points that a step to the next reward takes.
const REWARD_STEP: u64 = 1_000;
/// Receipts in one answer.
const RECEIPTS_MAX: usize = 3;

/// The balance, as a list of one.
pub(super) fn points(principal: &str, tongue: Tongue) -> Vec<Value> {
    let number = number_of(principal);
    let points = 500 + number % 9_000;
    let tier = match points {
        0..2_500 => tongue.pick("Bronze", "Bronze", "Bronce"),
        2_500..6_000 => tongue.pick("Silver", "Silber", "Plata"),
        _ => tongue.pick("Gold", "Gold", "Oro"),
    };
    let missing = REWARD_STEP - points % REWARD_STEP;
    let shown = tongue.number(points);
    let label = tongue.pick(
        format!("{shown} points"),
        format!("{shown} Punkte"),
        format!("{shown} puntos"),
    );
    vec![json!({
        "id": "balance",
        "points": points,
        "tier": tier,
        "missing": missing,
        "label": label,
    })]
}

struct Receipt {
    id: &'static str,
    store: &'static str,
    /// Days before today.
    ago: u32,
    cents: u32,
    /// What was bought, by offer.
    goods: &'static [&'static str],
    names: &'static [&'static str],
}

/// Newest first.
#[rustfmt::skip]
const RECEIPTS: &[Receipt] = &[
    Receipt { id: "REC_5", store: "Fresh Corner", ago: 2, cents: 1_284, goods: &["OFF_01", "OFF_06", "OFF_14"], names: &["fresh", "corner", "oat", "milk", "hafer", "milch", "avena", "leche", "bread", "brot", "pan", "tomat"] },
    Receipt { id: "REC_4", store: "Bean House", ago: 6, cents: 1_199, goods: &["OFF_07"], names: &["bean", "house", "coffee", "kaffee", "cafe"] },
    Receipt { id: "REC_3", store: "Daily Market", ago: 9, cents: 2_347, goods: &["OFF_10", "OFF_12", "OFF_18"], names: &["daily", "cheese", "kase", "queso", "pasta", "nudel", "spaghetti", "water", "wasser", "agua"] },
    Receipt { id: "REC_2", store: "Green Basket", ago: 15, cents: 1_760, goods: &["OFF_03", "OFF_11"], names: &["green", "basket", "granola", "musli", "egg", "eier", "huevo"] },
    Receipt { id: "REC_1", store: "Nest & Home", ago: 23, cents: 2_098, goods: &["OFF_19", "OFF_21"], names: &["nest", "home", "laundry", "wasch", "detergent", "dog", "hund", "perro"] },
];

/// The receipts a question names, or the newest.
pub(super) fn receipts(query: &Query, tongue: Tongue) -> Vec<Value> {
    let named = RECEIPTS
        .iter()
        .filter(|receipt| query.score(receipt.names) > 0);
    let mut found: Vec<&Receipt> = named.collect();
    if found.is_empty() {
        found = RECEIPTS.iter().collect();
    }
    let shown = found.into_iter().take(RECEIPTS_MAX);
    shown.map(|receipt| receipt_item(receipt, tongue)).collect()
}

fn receipt_item(receipt: &Receipt, tongue: Tongue) -> Value {
    let (store, bought, total) = (
        receipt.store,
        tongue.ago(receipt.ago),
        tongue.money(receipt.cents),
    );
    let goods: Vec<&str> = receipt.goods.iter().map(|id| title(id, tongue)).collect();
    let label = format!("{store} ({bought}, {total})");
    json!({
        "id": receipt.id,
        "store": store,
        "bought": bought,
        "total": total,
        "goods": goods,
        "label": label,
    })
}

/// What is bought often: the offer and how many times.
const PURCHASES: &[(&str, u32)] = &[("OFF_01", 9), ("OFF_02", 6), ("OFF_06", 5), ("OFF_10", 3)];

/// What is bought often, most often first.
pub(super) fn purchases(tongue: Tongue) -> Vec<Value> {
    let items = PURCHASES.iter().map(|(id, times)| {
        let title = title(id, tongue);
        json!({"id": id, "title": title, "times": times, "label": format!("{title} ({times}×)")})
    });
    items.collect()
}

/// A number that belongs to a principal (FNV-1a).
pub(super) fn number_of(principal: &str) -> u64 {
    principal.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balance_is_stable_per_person() {
        let of = |name: &str| points(name, Tongue::En)[0]["points"].as_u64();
        assert_eq!(of("user-42"), of("user-42"));
        assert_ne!(of("user-42"), of("user-43"));
    }

    #[test]
    fn receipts_match_store_and_goods_else_newest() {
        let ids = |text: &str| -> Vec<Value> {
            let items = receipts(&Query::new(text.chars()), Tongue::En);
            items.iter().map(|item| item["id"].clone()).collect()
        };
        assert_eq!(ids("my receipt from Bean House"), ["REC_4"]);
        assert_eq!(ids("Kassenbon mit Käse"), ["REC_3"]);
        assert_eq!(ids("my receipts"), ["REC_5", "REC_4", "REC_3"]);
    }

    #[test]
    fn mentioned_goods_are_sold_goods() {
        let goods = RECEIPTS.iter().flat_map(|receipt| receipt.goods);
        for id in goods.chain(PURCHASES.iter().map(|(id, _)| id)) {
            assert_ne!(title(id, Tongue::De), "", "{id}");
        }
    }
}
