//! Combined sentences in several languages, compared in full.

use crate::tests::support::pack;

use super::*;

const KEYS: [&str; 3] = [
    "status.searching_offers",
    "status.looking_up_points",
    "status.matching_receipt",
];

fn of(locale: &str, count: usize) -> String {
    combine_statuses(&KEYS[..count], &pack().locales, locale)
}

// S1-057
#[test]
fn two_phrases_form_one_sentence_in_each_language() {
    for (locale, sentence) in [
        ("en", "Searching for offers and looking up your points…"),
        (
            "de",
            "Angebote werden gesucht und dein Punktestand wird abgefragt…",
        ),
        ("es", "Buscando ofertas y consultando tus puntos…"),
        ("es-MX", "Buscando ofertas y consultando tus puntos…"),
        ("xx", "Searching for offers and looking up your points…"),
        ("", "Searching for offers and looking up your points…"),
    ] {
        assert_eq!(of(locale, 2), sentence, "{locale}");
    }
}

// S1-057
#[test]
fn three_phrases_are_listed_by_language_rules() {
    for (locale, sentence) in [
        (
            "en",
            "Searching for offers, looking up your points, and matching your receipt…",
        ),
        (
            "de",
            "Angebote werden gesucht, dein Punktestand wird abgefragt und dein Beleg wird zugeordnet…",
        ),
        // Spanish has "e" before the sound of i.
        (
            "es",
            "Buscando ofertas, consultando tus puntos e identificando tu recibo…",
        ),
    ] {
        assert_eq!(of(locale, 3), sentence, "{locale}");
    }
}

#[test]
fn sentence_uses_one_language() {
    // German has a text for only one of the two statuses.
    let keys = ["status.searching_offers", "status.one_moment"];
    let sentence = combine_statuses(&keys, &pack().locales, "de");
    assert_eq!(sentence, "Searching for offers and thinking…");
}

#[test]
fn line_without_phrase_uses_message_without_punctuation() {
    let line = |message: &str| LocaleLine {
        message: message.into(),
        phrase: None,
    };
    assert_eq!(phrase(&line("Sorting...")), "Sorting");
    assert_eq!(phrase(&line("Sorting …")), "Sorting");
}

#[test]
fn sentence_is_capitalized_by_language_rules() {
    assert_eq!(
        capitalize_first("indirimler aranıyor", "tr"),
        "İndirimler aranıyor"
    );
    assert_eq!(capitalize_first("in arrivo", "it"), "In arrivo");
    assert_eq!(capitalize_first("ofertas", "es-MX"), "Ofertas");
    assert_eq!(capitalize_first("écoute", "fr"), "Écoute");
    assert_eq!(capitalize_first("", "en"), "");
}
