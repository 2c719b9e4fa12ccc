//! Sentences, word by word.

use crate::stage::pack;

use super::*;

const KEYS: [&str; 3] = [
    "status.searching_offers",
    "status.looking_up_points",
    "status.matching_receipt",
];

fn of(locale: &str, count: usize) -> String {
    combined(&KEYS[..count], &pack().locales, locale)
}

#[test]
fn s1_057_two_phrases_are_one_sentence_in_each_language() {
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

#[test]
fn s1_057_three_phrases_are_listed_as_the_language_does() {
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
fn a_sentence_is_in_one_language() {
    // German has a text for one of the two only.
    let keys = ["status.searching_offers", "status.one_moment"];
    let sentence = combined(&keys, &pack().locales, "de");
    assert_eq!(sentence, "Searching for offers and thinking…");
}

#[test]
fn a_line_without_a_phrase_gives_its_sentence_without_the_end() {
    let line = |message: &str| LocaleLine {
        message: message.into(),
        phrase: None,
    };
    assert_eq!(phrase(&line("Sorting...")), "Sorting");
    assert_eq!(phrase(&line("Sorting …")), "Sorting");
}

#[test]
fn a_sentence_opens_with_a_capital_as_its_language_writes_it() {
    assert_eq!(opened("indirimler aranıyor", "tr"), "İndirimler aranıyor");
    assert_eq!(opened("ofertas", "es-MX"), "Ofertas");
    assert_eq!(opened("écoute", "fr"), "Écoute");
    assert_eq!(opened("", "en"), "");
}
