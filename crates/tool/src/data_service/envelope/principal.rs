//! The principal of an envelope, read before and without its other fields: an unknown status, a
//! missing field, a duplicate key or a truncated body must not hide a mismatch.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The only field that is read.
const PRINCIPAL: &str = "principal";

/// The principal that an object names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EnvelopePrincipal {
    Missing,
    /// The same principal, once or several times.
    One(String),
    /// Several principals, or a value that is not a string.
    Invalid,
}

impl EnvelopePrincipal {
    /// Whether the envelope is for `principal` alone.
    pub(super) fn is(&self, principal: &str) -> bool {
        matches!(self, Self::One(one) if one == principal)
    }

    fn add(&mut self, raw: &RawValue) {
        let principal = serde_json::from_str::<String>(raw.get()).ok();
        *self = match (std::mem::replace(self, Self::Invalid), principal) {
            (Self::Missing, Some(principal)) => Self::One(principal),
            (Self::One(one), Some(principal)) if one == principal => Self::One(one),
            _ => Self::Invalid,
        };
    }

    /// Reads the principal of `body`; `None` if it is not a JSON object. In a truncated object the
    /// fields before the end count.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut principal = Self::Missing;
        let mut json = serde_json::Deserializer::from_slice(body);
        let parsed = json.deserialize_map(PrincipalVisitor(&mut principal));
        match parsed.and_then(|()| json.end()) {
            Err(_) if principal == Self::Missing => None,
            Ok(()) | Err(_) => Some(principal),
        }
    }
}

/// Visits an object and keeps the principal even if the object is truncated.
struct PrincipalVisitor<'p>(&'p mut EnvelopePrincipal);

impl<'de> Visitor<'de> for PrincipalVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == PRINCIPAL {
                self.0.add(map.next_value::<&'de RawValue>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
