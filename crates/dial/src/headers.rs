//! Headers that a caller adds to a request. A key may be among them, so every value is treated as
//! a secret: names can be shown, values cannot.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Headers that belong to the connection and to the guard, not to the caller: with them one could
/// reach another host behind the same address, smuggle a second request, or ask for an encoding.
const OURS: [&str; 14] = [
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

/// Headers of one caller at most: a handful is usual, and a server refuses a head that is larger.
const HEADERS_MAX: usize = 64;

/// A header that cannot be sent. Its name is told, its value never.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// The name is none.
    #[error("`{0}` is not the name of a header")]
    Name(String),
    /// The value cannot stand in a header.
    #[error("the value of the header `{0}` has characters that a header cannot carry")]
    Value(String),
    /// The header is not the caller's to set.
    #[error("the header `{0}` is set by the server itself")]
    Ours(String),
    /// There are too many.
    #[error("more than {HEADERS_MAX} headers")]
    Many,
}

/// Headers of a request, in the order of their names' first mention; the last value of a name
/// counts.
#[derive(Clone, Default)]
pub struct Headers(HeaderMap);

impl Headers {
    /// Headers from names and values.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, BadHeader> {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            let key: HeaderName = name.parse().map_err(|_| BadHeader::Name(name.to_owned()))?;
            if OURS.contains(&key.as_str()) {
                return Err(BadHeader::Ours(name.to_owned()));
            }
            let mut value: HeaderValue = value
                .parse()
                .map_err(|_| BadHeader::Value(name.to_owned()))?;
            value.set_sensitive(true);
            map.insert(key, value);
            if map.len() > HEADERS_MAX {
                return Err(BadHeader::Many);
            }
        }
        Ok(Self(map))
    }

    /// These with `others`, which take the place of those of the same name.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    pub(crate) fn into_map(self) -> HeaderMap {
        self.0
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.keys().map(HeaderName::as_str))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g6_values_are_never_shown() {
        let headers = Headers::new([("x-api-key", "sk-secret"), ("X-Team", "secret")]);
        let headers = headers.expect("headers");
        assert_eq!(format!("{headers:?}"), r#"["x-api-key", "x-team"]"#);
        let map = headers.into_map();
        assert!(!format!("{map:?}").contains("secret"), "{map:?}");
        let bad = Headers::new([("x-api-key", "secret\nline")]).expect_err("a line break");
        assert_eq!(bad, BadHeader::Value("x-api-key".into()));
        assert!(!format!("{bad} {bad:?}").contains("secret"));
    }

    #[test]
    fn what_belongs_to_the_connection_is_not_the_callers() {
        for name in OURS {
            let bad = Headers::new([(name, "x")]).map(|_| ());
            assert_eq!(bad, Err(BadHeader::Ours(name.into())));
            let shouted = name.to_ascii_uppercase();
            let bad = Headers::new([(shouted.as_str(), "x")]).map(|_| ());
            assert_eq!(bad, Err(BadHeader::Ours(shouted)));
        }
        let bad = Headers::new([("not a name", "x")]).map(|_| ());
        assert_eq!(bad, Err(BadHeader::Name("not a name".into())));
    }

    #[test]
    fn others_take_the_place_of_those_of_the_same_name() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            Headers::new(pairs.iter().copied()).expect("headers")
        };
        let both = headers(&[("a", "1"), ("b", "1")]).with(headers(&[("B", "2"), ("c", "2")]));
        let both = both.into_map();
        assert_eq!(both.len(), 3);
        for (name, value) in [("a", "1"), ("b", "2"), ("c", "2")] {
            assert_eq!(both.get(name).expect("there"), value);
            assert!(both.get(name).expect("there").is_sensitive());
        }
    }

    #[test]
    fn the_last_value_of_a_name_counts_and_names_are_limited() {
        let map = Headers::new([("a", "1"), ("A", "2")])
            .expect("headers")
            .into_map();
        assert_eq!(map.get_all("a").iter().collect::<Vec<_>>(), ["2"]);
        let names: Vec<String> = (0..=HEADERS_MAX).map(|n| format!("x-{n}")).collect();
        let pairs = |n: usize| names.iter().take(n).map(|name| (name.as_str(), "v"));
        assert!(Headers::new(pairs(HEADERS_MAX)).is_ok());
        let bad = Headers::new(pairs(HEADERS_MAX + 1)).map(|_| ());
        assert_eq!(bad, Err(BadHeader::Many));
    }
}
