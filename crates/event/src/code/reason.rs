//! The reason that a data service gives for a failure. The known ones have names; another one is
//! inherited as it is if it has the shape of a code (D-29), so that no free text reaches a wire.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most bytes of a reason.
const REASON_BYTES_MAX: usize = 64;

/// The reason of an enricher that the contract does not list: 1 to 64 of `a-z`, `0-9` and `_`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReasonToken {
    bytes: [u8; REASON_BYTES_MAX],
    length: u8,
}

impl ReasonToken {
    /// `text` as a token; `None` if it has another shape.
    pub fn new(text: &str) -> Option<Self> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if text.is_empty() || text.len() > REASON_BYTES_MAX || !text.bytes().all(is_allowed) {
            return None;
        }
        let mut bytes = [0; REASON_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self {
            bytes,
            length: text.len() as u8,
        })
    }

    /// The text of the token.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for ReasonToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an enricher failed (R-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The enricher's upstream is unavailable, or the enricher gave no usable reason.
    UpstreamUnavailable,
    /// The enricher's upstream timed out.
    UpstreamTimeout,
    /// The enricher's upstream returned too little data.
    UpstreamPartial,
    /// The user is not allowed to see the data.
    Unauthorized,
    /// The enricher rejected the request.
    InvalidRequest,
    /// A reason that the contract does not list, as the enricher gave it.
    Other(ReasonToken),
}

impl Reason {
    /// The reasons of the contract.
    pub const KNOWN: [Self; 5] = [
        Self::UpstreamUnavailable,
        Self::UpstreamTimeout,
        Self::UpstreamPartial,
        Self::Unauthorized,
        Self::InvalidRequest,
    ];

    /// The reason that an enricher wrote as `text`; `None` if it has not the shape of a code.
    pub fn parse(text: &str) -> Option<Self> {
        let known = Self::KNOWN.into_iter().find(|known| known.as_str() == text);
        known.or_else(|| ReasonToken::new(text).map(Self::Other))
    }

    /// The reason on every wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(token) => token.as_str(),
            Self::UpstreamUnavailable
            | Self::UpstreamTimeout
            | Self::UpstreamPartial
            | Self::Unauthorized
            | Self::InvalidRequest => self.label(),
        }
    }

    /// The reason as a label of metrics: `other` for all that the contract does not list, so that
    /// an enricher cannot create series.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamPartial => "upstream_partial",
            Self::Unauthorized => "unauthorized",
            Self::InvalidRequest => "invalid_request",
            Self::Other(_) => "other",
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not a reason of an enricher"))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Reason {
    fn schema_name() -> Cow<'static, str> {
        "Reason".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Why a data service failed. The contract lists `upstream_unavailable`, `upstream_timeout`, `upstream_partial`, `unauthorized` and `invalid_request`; a service may give another one.",
            "type": "string",
            "pattern": "^[a-z0-9_]{1,64}$",
            "examples": Reason::KNOWN.map(|reason| reason.label()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S1-091, D-29
    #[test]
    fn reason_of_the_shape_of_a_code_is_kept() {
        let longest = "r".repeat(64);
        for text in [
            "upstream_timeout",
            "quota_exceeded_2",
            "other",
            "_",
            &longest,
        ] {
            let reason = Reason::parse(text).expect("a code");
            assert_eq!(reason.as_str(), text);
            let json = serde_json::to_string(&reason).expect("plain data");
            assert_eq!(json, format!("\"{text}\""));
            let read: Reason = serde_json::from_str(&json).expect("a reason");
            assert_eq!(read, reason);
        }
        let known = Reason::KNOWN.map(|reason| Reason::parse(reason.label()));
        assert_eq!(known, Reason::KNOWN.map(Some));
        let label = Reason::parse("quota_exceeded").map(|reason| reason.label());
        assert_eq!(label, Some("other"));
    }

    // S1-093, D-29
    #[test]
    fn text_of_another_shape_is_no_reason() {
        let long = "r".repeat(65);
        for text in [
            "",
            "Upstream",
            "a b",
            "a-b",
            "/etc/passwd",
            "é",
            "a\n",
            &long,
        ] {
            assert_eq!(Reason::parse(text), None, "{text:?}");
            let json = serde_json::to_string(text).expect("plain data");
            assert!(serde_json::from_str::<Reason>(&json).is_err(), "{text:?}");
        }
    }
}
