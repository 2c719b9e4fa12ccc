//! The catalogue of offers, and the search by keywords.

use serde_json::{Value, json};

use crate::language::DemoLanguage;
use crate::query::SearchQuery;

/// The most offers in one answer: as many as fit on a small screen.
const ANSWER_MAX: usize = 4;

/// The fewest offers in an answer, where more than one matches.
const MATCHES_MIN: usize = 2;

struct CatalogOffer {
    id: &'static str,
    /// In English, German and Spanish.
    title: [&'static str; 3],
    store: &'static str,
    cents: u32,
    points: u32,
    /// Keywords, lower case, without accents.
    names: &'static [&'static str],
}

const FRESH: &str = "Fresh Corner";
const GREEN: &str = "Green Basket";
const DAILY: &str = "Daily Market";
const BEAN: &str = "Bean House";
const HOME: &str = "Nest & Home";

/// The catalogue; its first offers answer a query without keywords.
#[rustfmt::skip]
const OFFERS: &[CatalogOffer] = &[
    CatalogOffer { id: "OFF_01", title: ["Oat milk 1 L", "Hafermilch 1 l", "Leche de avena 1 l"], store: FRESH, cents: 149, points: 200, names: &["oat", "milk", "hafer", "milch", "avena", "leche", "vegan", "drink", "breakfast", "fruhstuck", "desayuno"] },
    CatalogOffer { id: "OFF_02", title: ["Ground coffee 500 g", "Kaffee gemahlen 500 g", "Café molido 500 g"], store: BEAN, cents: 599, points: 350, names: &["coffee", "kaffee", "cafe", "espresso", "breakfast", "fruhstuck", "desayuno"] },
    CatalogOffer { id: "OFF_03", title: ["Oat granola with nuts", "Hafermüsli mit Nüssen", "Granola de avena con nueces"], store: GREEN, cents: 329, points: 180, names: &["granola", "musli", "muesli", "oat", "hafer", "avena", "nut", "nuss", "nueces", "cereal", "breakfast", "fruhstuck", "desayuno", "snack"] },
    CatalogOffer { id: "OFF_04", title: ["Apples 1.5 kg", "Äpfel 1,5 kg", "Manzanas 1,5 kg"], store: DAILY, cents: 249, points: 120, names: &["apple", "apfel", "manzana", "fruit", "obst", "fruta"] },
    CatalogOffer { id: "OFF_05", title: ["Whole milk 1 L", "Vollmilch 1 l", "Leche entera 1 l"], store: DAILY, cents: 109, points: 60, names: &["milk", "milch", "leche", "dairy", "breakfast"] },
    CatalogOffer { id: "OFF_06", title: ["Rye bread 750 g", "Roggenbrot 750 g", "Pan de centeno 750 g"], store: FRESH, cents: 279, points: 140, names: &["bread", "brot", "pan", "rye", "roggen", "centeno", "bakery", "breakfast", "fruhstuck", "desayuno"] },
    CatalogOffer { id: "OFF_07", title: ["Coffee beans 1 kg", "Kaffeebohnen 1 kg", "Café en grano 1 kg"], store: BEAN, cents: 1199, points: 700, names: &["coffee", "kaffee", "cafe", "beans", "bohnen", "grano", "espresso"] },
    CatalogOffer { id: "OFF_08", title: ["Green tea, 20 bags", "Grüner Tee, 20 Beutel", "Té verde, 20 bolsitas"], store: BEAN, cents: 219, points: 110, names: &["tea", "tee", "grun", "verde", "drink"] },
    CatalogOffer { id: "OFF_09", title: ["Greek yoghurt 500 g", "Griechischer Joghurt 500 g", "Yogur griego 500 g"], store: GREEN, cents: 199, points: 100, names: &["yoghurt", "yogurt", "joghurt", "yogur", "dairy", "breakfast", "fruhstuck", "desayuno"] },
    CatalogOffer { id: "OFF_10", title: ["Gouda cheese 400 g", "Gouda-Käse 400 g", "Queso gouda 400 g"], store: DAILY, cents: 389, points: 160, names: &["cheese", "kase", "queso", "gouda", "dairy"] },
    CatalogOffer { id: "OFF_11", title: ["Free-range eggs, 10", "Freilandeier, 10 Stück", "Huevos camperos, 10"], store: GREEN, cents: 299, points: 150, names: &["egg", "eier", "huevo", "breakfast", "fruhstuck", "desayuno"] },
    CatalogOffer { id: "OFF_12", title: ["Spaghetti 500 g", "Spaghetti 500 g", "Espaguetis 500 g"], store: DAILY, cents: 99, points: 50, names: &["pasta", "spaghetti", "nudel", "espagueti", "noodle", "dinner", "abendessen", "cena"] },
    CatalogOffer { id: "OFF_13", title: ["Basmati rice 1 kg", "Basmatireis 1 kg", "Arroz basmati 1 kg"], store: GREEN, cents: 259, points: 130, names: &["rice", "reis", "arroz", "basmati", "dinner", "cena"] },
    CatalogOffer { id: "OFF_14", title: ["Tomatoes 500 g", "Tomaten 500 g", "Tomates 500 g"], store: FRESH, cents: 189, points: 90, names: &["tomato", "tomate", "vegetable", "gemuse", "verdura", "salad", "salat", "ensalada"] },
    CatalogOffer { id: "OFF_15", title: ["Frozen margherita pizza", "Pizza Margherita, tiefgekühlt", "Pizza margarita congelada"], store: DAILY, cents: 299, points: 150, names: &["pizza", "frozen", "dinner", "abendessen", "cena"] },
    CatalogOffer { id: "OFF_16", title: ["Dark chocolate 70 %", "Zartbitterschokolade 70 %", "Chocolate negro 70 %"], store: GREEN, cents: 179, points: 120, names: &["chocolate", "schoko", "chocolat", "candy", "sweet", "suss", "dulce", "snack"] },
    CatalogOffer { id: "OFF_17", title: ["Orange juice 1 L", "Orangensaft 1 l", "Zumo de naranja 1 l"], store: FRESH, cents: 229, points: 110, names: &["juice", "saft", "zumo", "orange", "naranja", "drink", "fruit", "obst"] },
    CatalogOffer { id: "OFF_18", title: ["Sparkling water, 6 bottles", "Mineralwasser, 6 Flaschen", "Agua con gas, 6 botellas"], store: DAILY, cents: 359, points: 80, names: &["water", "wasser", "agua", "drink"] },
    CatalogOffer { id: "OFF_19", title: ["Laundry detergent, 40 washes", "Waschmittel, 40 Waschladungen", "Detergente, 40 lavados"], store: HOME, cents: 899, points: 450, names: &["laundry", "detergent", "wasch", "detergente", "cleaning", "putz", "limpieza", "household", "haushalt", "hogar"] },
    CatalogOffer { id: "OFF_20", title: ["Kitchen towels, 4 rolls", "Küchenrollen, 4 Stück", "Papel de cocina, 4 rollos"], store: HOME, cents: 349, points: 170, names: &["kitchen", "towel", "kuchen", "paper", "papier", "papel", "cocina", "household", "haushalt", "hogar"] },
    CatalogOffer { id: "OFF_21", title: ["Dog food, chicken 3 kg", "Hundefutter, Huhn 3 kg", "Comida para perros, pollo 3 kg"], store: HOME, cents: 1099, points: 600, names: &["dog", "hund", "perro", "pet", "haustier", "mascota"] },
    CatalogOffer { id: "OFF_22", title: ["Shampoo 300 ml", "Shampoo 300 ml", "Champú 300 ml"], store: HOME, cents: 329, points: 190, names: &["shampoo", "champu", "hair", "haare", "pelo"] },
];

/// The offers that match `query` best, only of the store it names if it names one. A query without a
/// product gets the first offers of the catalogue; a query for a product that is not sold gets none.
pub(crate) fn search(query: &SearchQuery, language: DemoLanguage) -> Vec<Value> {
    let mut stock: Vec<&CatalogOffer> = OFFERS.iter().collect();
    let names_store = stock.iter().any(|offer| query.contains_phrase(offer.store));
    stock.retain(|offer| !names_store || query.contains_phrase(offer.store));
    let scores = stock.iter().map(|offer| (query.score(offer.names), *offer));
    let mut matches: Vec<(usize, &CatalogOffer)> = scores.filter(|(score, _)| *score > 0).collect();
    matches.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let best = matches.first().map_or(0, |(score, _)| *score);
    let equal = matches.iter().filter(|(score, _)| *score == best).count();
    if best == 0 && (names_store || !names_product(query)) {
        matches = stock.into_iter().map(|offer| (0, offer)).collect();
    } else {
        matches.truncate(equal.max(MATCHES_MIN));
    }
    let listed = matches.into_iter().take(ANSWER_MAX);
    listed.map(|(_, offer)| item(offer, language)).collect()
}

/// True if a product word stands next to a word that asks for offers.
fn names_product(query: &SearchQuery) -> bool {
    query
        .keywords()
        .windows(2)
        .any(|pair| pair[0].1 != pair[1].1)
}

fn item(offer: &CatalogOffer, language: DemoLanguage) -> Value {
    let title = language.pick(offer.title);
    let price = language.money(offer.cents);
    let (store, points) = (offer.store, offer.points);
    let label = match language {
        DemoLanguage::En => format!("{title} at {store} for {price} (+{points} points)"),
        DemoLanguage::De => format!("{title} bei {store} für {price} (+{points} Punkte)"),
        DemoLanguage::Es => format!("{title} en {store} por {price} (+{points} puntos)"),
    };
    json!({
        "id": offer.id,
        "title": title,
        "store": store,
        "price": price,
        "points": points,
        "label": label,
    })
}

/// The title of the offer `id`; empty if there is none.
pub(crate) fn title(id: &str, language: DemoLanguage) -> &'static str {
    let offer = OFFERS.iter().find(|offer| offer.id == id);
    offer.map_or("", |offer| language.pick(offer.title))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids_of(text: &str) -> Vec<String> {
        let items = search(&SearchQuery::new(text.chars()), DemoLanguage::En);
        let ids = items.iter().filter_map(|item| item["id"].as_str());
        ids.map(str::to_owned).collect()
    }

    #[test]
    fn products_are_found_in_three_languages() {
        for (text, first) in [
            (
                "any oat milk offers, and what's my points balance?",
                "OFF_01",
            ),
            ("Gibt es Angebote für Hafermilch?", "OFF_01"),
            ("¿Hay ofertas de leche de avena?", "OFF_01"),
            ("I'd love a cheap coffee", "OFF_02"),
            ("Vollkornbrot bitte", "OFF_06"),
            ("quiero comprar queso", "OFF_10"),
            ("something for my dog", "OFF_21"),
            ("what's on sale at the Bean House?", "OFF_02"),
            ("milk from Daily Market", "OFF_05"),
        ] {
            let ids = ids_of(text);
            assert_eq!(
                ids.first().map(String::as_str),
                Some(first),
                "{text}: {ids:?}"
            );
            assert!(ids.len() <= ANSWER_MAX, "{text}");
        }
    }

    #[test]
    fn query_without_a_product_gets_the_first_offers() {
        let day: Vec<&str> = OFFERS[..ANSWER_MAX].iter().map(|offer| offer.id).collect();
        for text in [
            "",
            "Show me some offers",
            "what deals do you have today, my friend?",
            "any offers, my points balance and where is my order?",
            "Zeig mir bitte Angebote und meinen Punktestand",
            "¿Qué ofertas hay hoy?",
        ] {
            assert_eq!(ids_of(text), day, "{text}");
        }
    }

    #[test]
    fn query_for_an_unknown_product_gets_nothing() {
        for text in [
            "unicorn offers",
            "any deals on a helicopter?",
            "Angebote für Einhörner",
            "ofertas de unicornios",
            "I want to buy a submarine",
        ] {
            assert!(ids_of(text).is_empty(), "{text}: {:?}", ids_of(text));
        }
    }

    #[test]
    fn offer_ids_are_unique() {
        let ids: std::collections::BTreeSet<_> = OFFERS.iter().map(|offer| offer.id).collect();
        assert_eq!(ids.len(), OFFERS.len());
    }
}
