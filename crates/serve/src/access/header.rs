//! Reads headers that may occur once, and headers that list preferences with weights.
//!
//! A header that may occur once is refused if it is repeated: a proxy and this server could read
//! different values.

use axum::http::HeaderMap;
use axum::http::header::AsHeaderName;

/// A header that is repeated or is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderError;

/// The single value of a header, if the request has it.
pub(crate) fn single_value(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> Result<Option<&str>, HeaderError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| HeaderError),
        (Some(_), Some(_)) => Err(HeaderError),
    }
}

/// The most bytes of a list of preferences that are read: far more than browsers send.
const PREFERENCES_BYTES_MAX: usize = 1_024;

/// The preferences of a header in order, with weights from 0 to 1000 (`q`, RFC 9110 section 12.4.2).
/// Malformed preferences are skipped.
pub(crate) fn preferences(headers: &HeaderMap, name: impl AsHeaderName) -> Vec<(&str, u16)> {
    let mut bytes = 0;
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .take_while(|text| {
            bytes += text.len() + 1;
            bytes <= PREFERENCES_BYTES_MAX
        })
        .filter_map(preference)
        .collect()
}

/// One preference with its weight; `None` if malformed.
fn preference(text: &str) -> Option<(&str, u16)> {
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next().filter(|text| !text.is_empty())?;
    let mut weight = 1_000;
    for part in parts {
        let (name, value) = part.split_once('=')?;
        if name.eq_ignore_ascii_case("q") {
            weight = thousandths(value)?;
        }
    }
    Some((media_type, weight))
}

/// Parses `0`, `1`, or either with up to three digits after the point, and at most 1.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = rest.len() <= 3 && rest.bytes().all(|b| b.is_ascii_digit());
    if !digits || !matches!(whole, "0" | "1") {
        return None;
    }
    let part: u16 = format!("{rest:0<3}").parse().ok()?;
    Some(if whole == "1" { 1_000 + part } else { part }).filter(|weight| *weight <= 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_entries_are_read_in_order_and_bounded() {
        let mut headers = HeaderMap::new();
        let long = "x".repeat(PREFERENCES_BYTES_MAX);
        for value in ["a;q=0.25, b", "c;level=1;q=1.0,,d;q", long.as_str(), "e"] {
            headers.append("accept", value.parse().expect("a header"));
        }
        let read = preferences(&headers, "accept");
        assert_eq!(read, [("a", 250), ("b", 1_000), ("c", 1_000)]);
    }

    #[test]
    fn weight_has_three_digits_and_is_at_most_one() {
        for (text, weight) in [
            ("0", 0),
            ("1", 1_000),
            ("0.", 0),
            ("0.5", 500),
            ("1.000", 1_000),
        ] {
            assert_eq!(thousandths(text), Some(weight), "{text}");
        }
        for text in ["", ".5", "2", "1.001", "0.1234", "-0", "0,5", "0.x", "+1"] {
            assert_eq!(thousandths(text), None, "{text}");
        }
    }
}
