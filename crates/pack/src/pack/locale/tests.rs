//! The chain of languages, and the platform's own texts.

use super::*;

fn locales(default: &str, texts: &[(&str, &str, &str)]) -> LocaleTable {
    let mut locales = LocaleTable::new(default);
    for (tag, key, message) in texts {
        let line = LocaleLine {
            message: (*message).to_owned(),
            phrase: None,
        };
        locales.add(tag, BTreeMap::from([((*key).to_owned(), line)]));
    }
    locales
}

fn message(locales: &LocaleTable, wanted: &str, key: &str) -> Option<String> {
    locales.line(wanted, key).map(|line| line.message)
}

// S1-081
#[test]
fn unknown_language_falls_back_to_the_default() {
    let texts = [("en", "k", "hello"), ("es", "k", "hola")];
    let locales = locales("en", &texts);
    assert_eq!(message(&locales, "fr", "k").as_deref(), Some("hello"));
    assert_eq!(message(&locales, "", "k").as_deref(), Some("hello"));
    assert_eq!(message(&locales, "es", "other"), None);
}

// D-19
#[test]
fn region_falls_back_to_language_then_default() {
    let texts = [
        ("en", "a", "en a"),
        ("en", "b", "en b"),
        ("en", "c", "en c"),
        ("es", "a", "es a"),
        ("es", "b", "es b"),
        ("es-MX", "a", "mx a"),
    ];
    let locales = locales("en", &texts);
    assert_eq!(locales.chain("es-MX"), ["es-MX", "es", "en"]);
    let got = ["a", "b", "c"].map(|key| message(&locales, "es-MX", key).unwrap_or_default());
    assert_eq!(got, ["mx a", "es b", "en c"]);
}

#[test]
fn tags_ignore_case_and_underscores() {
    let texts = [
        ("ES", "k", "hola"),
        ("pt_BR", "k", "oi"),
        ("pt-BR", "l", "tchau"),
    ];
    let locales = locales("en", &texts[..1]);
    assert_eq!(locales.chain("Es_mx"), ["es", "en"]);
    assert_eq!(message(&locales, "eS", "k").as_deref(), Some("hola"));
    assert!(is_tag("pt_BR") && is_tag("zh-Hant-TW") && is_tag("es-419"));
    for bad in ["", "e", "english", "en-", "en-us!", "../en", "en US"] {
        assert!(!is_tag(bad), "{bad}");
    }
}

#[test]
fn default_language_has_a_fallback_chain() {
    let locales = locales("de-AT", &[("de-AT", "k", "Servus")]);
    assert_eq!(locales.chain("fr"), ["de-AT", "de"]);
    let text = message(&locales, "fr", "failure.internal").unwrap_or_default();
    assert!(text.starts_with("Bei mir"), "{text}");
}

#[test]
fn platform_texts_exist_in_three_languages() {
    let locales = LocaleTable::new("en");
    for tag in ["en", "de", "es"] {
        for key in PLATFORM_KEYS.into_iter().chain(OPTIONAL_KEYS) {
            assert!(locales.has(tag, key), "{tag} {key}");
            let text = message(&locales, tag, key).unwrap_or_default();
            assert!(
                !text.contains(|c: char| c.is_ascii_digit() || c == '_'),
                "{text}"
            );
        }
        let combined = message(&locales, tag, "combined").unwrap_or_default();
        assert!(combined.contains("{phrases}"));
    }
}

#[test]
fn pack_text_replaces_the_platform_text() {
    let locales = locales("en", &[("en", "failure.internal", "Oops, my fault.")]);
    assert_eq!(
        message(&locales, "en", "failure.internal").as_deref(),
        Some("Oops, my fault.")
    );
    assert!(locales.has("en", "failure.rate_limit"), "the others stay");
}
