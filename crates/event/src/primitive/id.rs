//! Identifiers: 128 bits, printed as 26 Crockford base32 characters after a prefix that names
//! their kind. They are `Copy`, parse strictly, and their order means nothing.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

pub(crate) const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The value of each byte as a Crockford character; 255 for those that are none.
const CROCKFORD_VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut at = 0;
    while at < CROCKFORD.len() {
        values[CROCKFORD[at] as usize] = at as u8;
        at += 1;
    }
    values
};

/// The value of one upper-case Crockford character; lower case and look-alikes are refused so
/// that an identifier has exactly one spelling.
pub(crate) fn crockford_value(byte: u8) -> Option<u8> {
    let value = CROCKFORD_VALUES[usize::from(byte)];
    (value != u8::MAX).then_some(value)
}

/// A text is not a valid identifier of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {what}")]
pub struct IdError {
    /// The expected kind, for example `session id`.
    pub what: &'static str,
}

/// 128 bits printed as 26 characters of Crockford base32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ulid(pub u128);

impl Ulid {
    /// The 26 characters, without allocating.
    pub fn text(self) -> [u8; 26] {
        let mut out = [0u8; 26];
        let mut bits = self.0;
        for slot in out.iter_mut().rev() {
            *slot = CROCKFORD[(bits & 31) as usize];
            bits >>= 5;
        }
        out
    }
}

impl fmt::Display for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl FromStr for Ulid {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = IdError { what: "identifier" };
        let bytes = text.as_bytes();
        if bytes.len() != 26 || bytes[0] > b'7' {
            return Err(bad);
        }
        let bits = bytes.iter().try_fold(0u128, |bits, &byte| {
            Some((bits << 5) | u128::from(crockford_value(byte)?))
        });
        bits.map(Self).ok_or(bad)
    }
}

/// Reads a text and parses it, without a copy: an event has eight of them.
pub(crate) fn parse_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: serde::Deserializer<'de>,
{
    struct TextVisitor<T>(PhantomData<T>);

    impl<T: FromStr<Err: fmt::Display>> serde::de::Visitor<'_> for TextVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(TextVisitor(PhantomData))
}

/// Implements `Serialize` by `Display` and `Deserialize` by `FromStr`; and with a schema
/// `JsonSchema`, by its name and its value.
macro_rules! text_serde {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::id::parse_text(deserializer)
            }
        }
    };
    ($name:ty, $schema_name:expr, $schema:tt) => {
        text_serde!($name);

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $schema_name.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(crate) use text_serde;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Ulid);

        impl $name {
            /// The prefix of every identifier of this kind.
            pub const PREFIX: &'static str = $prefix;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($prefix)
                    .and_then(|ulid| ulid.parse().ok())
                    .map(Self)
                    .ok_or(IdError { what: $what })
            }
        }

        text_serde!($name, stringify!($name), {
            "type": "string",
            "pattern": concat!("^", $prefix, "[0-7][0-9A-HJKMNP-TV-Z]{25}$"),
        });
    };
}

id!(/// A session: one conversation with its own order.
    SessionId, "sess_", "session id");
id!(/// A turn: one user input and everything done to answer it.
    TurnId, "", "turn id");
id!(/// A turn's id on client wires; the same 128 bits as its [`TurnId`].
    ResponseId, "resp_", "response id");
id!(/// A stored message.
    MessageId, "", "message id");
id!(/// One call of a model.
    CallId, "call_", "call id");
id!(/// One use of a tool.
    ToolUseId, "tu_", "tool use id");
id!(/// One invocation of a sub-agent.
    InvocationId, "inv_", "invocation id");
id!(/// An approval request.
    ApprovalId, "appr_", "approval id");
id!(/// A group of turns that belong together; one per session unless rotated.
    EpisodeId, "ep_", "episode id");

impl TurnId {
    /// The turn that `text` names, by its id or by its [`ResponseId`].
    pub fn named(text: &str) -> Result<Self, IdError> {
        let response = |_| text.parse::<ResponseId>().map(Self::from);
        text.parse().or_else(response)
    }

    /// The trace id of a turn whose caller sent none: the id of the turn in hexadecimal, which is
    /// the form of a W3C trace id.
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.0.0)
    }
}

impl From<TurnId> for ResponseId {
    fn from(turn: TurnId) -> Self {
        Self(turn.0)
    }
}

impl From<ResponseId> for TurnId {
    fn from(response: ResponseId) -> Self {
        Self(response.0)
    }
}

/// The id that an upstream gave to its response or to a tool call: 1 to 128 characters of
/// `A-Z a-z 0-9 . _ : -`, the first a letter or a digit, and none that names a turn, a response or a tool
/// call of this server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamId(Arc<str>);

impl UpstreamId {
    /// The maximum length in bytes.
    pub const BYTES_MAX: usize = 128;

    /// The id as the upstream sent it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UpstreamId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
        let valid = text.len() <= Self::BYTES_MAX
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(allowed)
            && text.parse::<TurnId>().is_err()
            && text.parse::<ResponseId>().is_err()
            && text.parse::<ToolUseId>().is_err();
        let id = valid.then(|| Self(text.into()));
        id.ok_or(IdError {
            what: "id of an upstream",
        })
    }
}

impl fmt::Display for UpstreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_serde!(UpstreamId, "UpstreamId", {
    "type": "string",
    "description": "The id that an upstream gave to its response or to a tool call.",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$",
});

/// The id of a turn's response on client wires: the one that its upstream gave, or the turn's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnResponseId {
    Own(ResponseId),
    Upstream(UpstreamId),
}

impl TurnResponseId {
    /// The response id of `turn`, with the one that its upstream gave if there is one.
    pub fn of(turn: TurnId, given: Option<UpstreamId>) -> Self {
        given.map_or(Self::Own(turn.into()), Self::Upstream)
    }
}

impl FromStr for TurnResponseId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let own = text.parse().map(Self::Own);
        own.or_else(|_| text.parse().map(Self::Upstream))
    }
}

impl fmt::Display for TurnResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(id) => id.fmt(f),
            Self::Upstream(id) => id.fmt(f),
        }
    }
}

text_serde!(TurnResponseId, "TurnResponseId", {
    "type": "string",
    "description": "The id of a response: `resp_` and the id of its turn, or the id that an upstream gave.",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$",
});

/// A tenant: a UUID, printed in lower case with dashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u128);

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_u128(self.0).fmt(f)
    }
}

impl FromStr for TenantId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        // The one form of 36 characters is the one with dashes.
        let uuid = uuid::Uuid::try_parse(text)
            .ok()
            .filter(|_| text.len() == 36);
        uuid.map(|uuid| Self(uuid.as_u128())).ok_or(IdError {
            what: "tenant id (a UUID)",
        })
    }
}

/// The person or service a request acts for: an opaque name of 1 to 128 printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The name as the client sent it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Principal {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let valid = (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        valid
            .then(|| Self(text.into()))
            .ok_or(IdError { what: "principal" })
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The owner of a session and everything in it. For other owners it does not exist (law 10).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub tenant: TenantId,
    /// The principal inside the tenant.
    pub principal: Principal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        let id = SessionId(Ulid(u128::MAX));
        assert_eq!(id.to_string(), "sess_7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!(id.to_string().parse::<SessionId>(), Ok(id));
        for bad in [
            "sess_",
            "sess_8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "sess_7zzzzzzzzzzzzzzzzzzzzzzzzz",
            "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "sess_7ZZZZZZZZZZZZZZZZZZZZZZZZU",
        ] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }

    // D-04
    #[test]
    fn response_id_names_its_turn() {
        let turn = TurnId(Ulid(42));
        let response = ResponseId::from(turn);
        assert_eq!(response.to_string(), format!("resp_{turn}"));
        assert_eq!(TurnId::from(response), turn);
    }

    // D-03
    #[test]
    fn turn_is_named_by_its_id_or_its_response_id() {
        let turn = TurnId(Ulid(7));
        assert_eq!(TurnId::named(&turn.to_string()), Ok(turn));
        assert_eq!(TurnId::named(&format!("resp_{turn}")), Ok(turn));
        for bad in ["", "x", "sess_00000000000000000000000007", "resp_"] {
            assert!(TurnId::named(bad).is_err(), "{bad}");
        }
    }

    // D-04
    #[test]
    fn response_id_of_an_upstream_is_none_of_this_server() {
        let longest = "r".repeat(UpstreamId::BYTES_MAX);
        for good in ["resp_abc", "chatcmpl-9:a.b", "7", &longest] {
            let id: UpstreamId = good.parse().expect("a response id");
            assert_eq!(id.to_string(), good);
        }
        let own = TurnId(Ulid(7));
        let too_long = format!("{longest}r");
        for bad in [
            "",
            "a b",
            "a/b",
            "a\"",
            "ä",
            "..",
            &own.to_string(),
            &format!("resp_{own}"),
            &too_long,
        ] {
            assert!(bad.parse::<UpstreamId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn tenants_are_uuids() {
        let nil = "00000000-0000-0000-0000-000000000000";
        assert_eq!(nil.parse::<TenantId>(), Ok(TenantId(0)));
        assert_eq!(TenantId(0).to_string(), nil);
        let id = "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";
        assert_eq!(id.parse::<TenantId>().expect("a uuid").to_string(), id);
        for bad in [
            "",
            "x",
            "3c33212cd1194ef18db02ca93cd3b2dd",
            "3c33212c-d119-4ef1-8db0-2ca93cd3b2dé",
        ] {
            assert!(bad.parse::<TenantId>().is_err(), "{bad}");
        }
    }
}
