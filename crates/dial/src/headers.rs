//! Headers that a caller adds to a request. Every value is treated as a secret, because it may be
//! an API key: names are shown in debug output, values are not.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Headers that the dialer sets itself. With them a caller could reach another virtual host,
/// smuggle a second request, or request a content encoding.
const RESERVED: [&str; 14] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The limit of headers per request: a handful is usual, and servers reject larger heads.
const HEADERS_MAX: usize = 64;

/// A header that cannot be sent. The error contains the name of the header, never its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// The name is not a valid header name.
    #[error("`{0}` is not the name of a header")]
    Name(String),
    /// The value has characters that are not allowed in a header.
    #[error("the value of the header `{0}` has characters that a header cannot carry")]
    Value(String),
    /// Only the dialer sets this header.
    #[error("the header `{0}` is set by the server itself")]
    Reserved(String),
    /// There are more headers than the limit.
    #[error("more than {HEADERS_MAX} headers")]
    TooMany,
}

/// The headers of a request. If a name occurs twice, the last value is sent.
#[derive(Clone, Default)]
pub struct RequestHeaders(HeaderMap);

impl RequestHeaders {
    /// Checks names and values.
    pub fn new<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, InvalidHeader> {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            let key: HeaderName = name
                .parse()
                .map_err(|_| InvalidHeader::Name(name.to_owned()))?;
            if RESERVED.contains(&key.as_str()) {
                return Err(InvalidHeader::Reserved(name.to_owned()));
            }
            let mut value: HeaderValue = value
                .parse()
                .map_err(|_| InvalidHeader::Value(name.to_owned()))?;
            value.set_sensitive(true);
            map.insert(key, value);
            if map.len() > HEADERS_MAX {
                return Err(InvalidHeader::TooMany);
            }
        }
        Ok(Self(map))
    }

    /// Adds `others`, which replace headers of the same name.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Replaces the values of the headers, where they occur in `text`, by `***`: the whole value, and
    /// the part after `Bearer`. Shorter values than eight characters are words.
    pub fn hide_values(&self, text: &str) -> String {
        const VALUE_CHARS_MIN: usize = 8;
        let values = self.0.values().filter_map(|value| value.to_str().ok());
        let values = values.flat_map(|value| [value, value.rsplit(' ').next().unwrap_or(value)]);
        let secrets = values.filter(|value| value.len() >= VALUE_CHARS_MIN);
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }

    pub(crate) fn into_map(self) -> HeaderMap {
        self.0
    }
}

impl fmt::Debug for RequestHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.keys().map(HeaderName::as_str))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // G6
    #[test]
    fn header_values_are_never_shown() {
        let headers = RequestHeaders::new([("x-api-key", "sk-secret"), ("X-Team", "secret")]);
        let headers = headers.expect("headers");
        assert_eq!(format!("{headers:?}"), r#"["x-api-key", "x-team"]"#);
        let map = headers.into_map();
        assert!(!format!("{map:?}").contains("secret"), "{map:?}");
        let error = RequestHeaders::new([("x-api-key", "secret\nline")]).expect_err("a line break");
        assert_eq!(error, InvalidHeader::Value("x-api-key".into()));
        assert!(!format!("{error} {error:?}").contains("secret"));
    }

    #[test]
    fn reserved_headers_are_rejected() {
        for name in RESERVED {
            let error = RequestHeaders::new([(name, "x")]).map(|_| ());
            assert_eq!(error, Err(InvalidHeader::Reserved(name.into())));
            let upper_case = name.to_ascii_uppercase();
            let error = RequestHeaders::new([(upper_case.as_str(), "x")]).map(|_| ());
            assert_eq!(error, Err(InvalidHeader::Reserved(upper_case)));
        }
        let error = RequestHeaders::new([("not a name", "x")]).map(|_| ());
        assert_eq!(error, Err(InvalidHeader::Name("not a name".into())));
    }

    #[test]
    fn merged_headers_replace_those_of_the_same_name() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            RequestHeaders::new(pairs.iter().copied()).expect("headers")
        };
        let merged = headers(&[("a", "1"), ("b", "1")]).with(headers(&[("B", "2"), ("c", "2")]));
        let merged = merged.into_map();
        assert_eq!(merged.len(), 3);
        for (name, value) in [("a", "1"), ("b", "2"), ("c", "2")] {
            assert_eq!(merged.get(name).expect("there"), value);
            assert!(merged.get(name).expect("there").is_sensitive());
        }
    }

    #[test]
    fn last_value_of_a_name_wins_and_names_are_limited() {
        let map = RequestHeaders::new([("a", "1"), ("A", "2")])
            .expect("headers")
            .into_map();
        assert_eq!(map.get_all("a").iter().collect::<Vec<_>>(), ["2"]);
        let names: Vec<String> = (0..=HEADERS_MAX).map(|n| format!("x-{n}")).collect();
        let pairs = |n: usize| names.iter().take(n).map(|name| (name.as_str(), "v"));
        assert!(RequestHeaders::new(pairs(HEADERS_MAX)).is_ok());
        let error = RequestHeaders::new(pairs(HEADERS_MAX + 1)).map(|_| ());
        assert_eq!(error, Err(InvalidHeader::TooMany));
    }
}
