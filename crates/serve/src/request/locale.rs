//! The language of a turn (D-19): that of the body, else the preferred tag of `Accept-Language`, else
//! English.

use axum::http::{HeaderMap, header};
use turnwire_wire::rest::turn::LOCALE_BYTES_MAX;

use crate::access::header::preferences;
use crate::error::RequestFault;

const DEFAULT: &str = "en";

/// The language of a turn whose body has the `locale`.
pub(crate) fn chosen(locale: Option<String>, headers: &HeaderMap) -> Result<String, RequestFault> {
    match locale {
        Some(tag) if is_tag(&tag) => Ok(tag),
        Some(_) => {
            let rule = format!("must be a language tag of at most {LOCALE_BYTES_MAX} characters");
            Err(RequestFault::invalid("locale", rule))
        }
        None => Ok(accepted(headers).unwrap_or(DEFAULT).to_owned()),
    }
}

/// The tag with the highest weight; of several, the first. Texts that are not tags are skipped, `*`
/// too.
fn accepted(headers: &HeaderMap) -> Option<&str> {
    let tags = preferences(headers, header::ACCEPT_LANGUAGE)
        .into_iter()
        .filter(|(tag, weight)| *weight > 0 && is_tag(tag));
    // `max_by_key` would take the last of equals.
    tags.reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(tag, _)| tag)
}

/// True if `text` has the form of a language tag (RFC 5646): subtags of one to eight letters and
/// digits, the first of letters only; as [`LOCALE_PATTERN`](turnwire_wire::rest::turn::LOCALE_PATTERN).
fn is_tag(text: &str) -> bool {
    let part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let first = text.split('-').next().unwrap_or_default();
    text.len() <= LOCALE_BYTES_MAX
        && first.bytes().all(|b| b.is_ascii_alphabetic())
        && text.split('-').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use turnwire_wire::problem::Code;

    fn of(said: Option<&str>, accepted: &[&str]) -> Result<String, Code> {
        let mut headers = HeaderMap::new();
        for value in accepted {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header");
            headers.append(header::ACCEPT_LANGUAGE, value);
        }
        chosen(said.map(str::to_owned), &headers).map_err(|fault| fault.code())
    }

    // D-19
    #[test]
    fn body_language_beats_header_beats_english() {
        assert_eq!(of(Some("de-AT"), &["es"]), Ok("de-AT".into()));
        assert_eq!(of(None, &["es"]), Ok("es".into()));
        assert_eq!(of(None, &[]), Ok("en".into()));
    }

    // D-19
    #[test]
    fn best_header_tag_counts() {
        for (header, tag) in [
            ("de", "de"),
            ("de-AT, de;q=0.9, en;q=0.8", "de-AT"),
            ("en;q=0.8, de-AT;q=0.9", "de-AT"),
            ("es;q=0.5, de;q=0.5", "es"),
            ("de;q=0.001, es;q=0", "de"),
            ("de ; q=0.3 , es ; Q=0.7", "es"),
            ("*, es;q=0.1", "es"),
            ("zh-Hant-TW;q=1.000", "zh-Hant-TW"),
        ] {
            assert_eq!(of(None, &[header]), Ok(tag.into()), "{header}");
        }
        assert_eq!(of(None, &["es;q=0.2", "de;q=0.4"]), Ok("de".into()));
    }

    // D-19
    #[test]
    fn invalid_tags_are_ignored() {
        let long = format!("{},es;q=0.1", "abcdefgh-".repeat(4) + "abcdefgh");
        assert_eq!(of(None, &[&long]), Ok("es".into()));
        for header in [
            "",
            ",",
            "*",
            "*;q=0.5",
            "en_US",
            "12",
            "-de",
            "de-",
            "d e",
            "de;q=x",
            "de;q=2",
            "de;q=-1",
            "de;q=0",
            "de;q=0.1234",
            "abcdefghi",
            "d\u{e9}",
            "de;q=1;x=y;",
        ] {
            assert_eq!(of(None, &[header]), Ok("en".into()), "{header}");
        }
    }

    #[test]
    fn body_with_invalid_language_is_refused() {
        let long = "abcdefgh-".repeat(4);
        for bad in ["", "d e", "-", "de_AT", "*", "1", long.as_str()] {
            assert_eq!(of(Some(bad), &["de"]), Err(Code::InvalidRequest), "{bad}");
        }
    }
}
