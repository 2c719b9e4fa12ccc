//! The principal of an envelope, read before and without its other fields: an unknown status, a
//! missing field, a duplicate key or a truncated body must not hide a mismatch.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The only field that is read.
const PRINCIPAL: &str = "principal";

/// The values of the field in an object, in their order; `None` for one that is not a string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EnvelopePrincipal(Vec<Option<String>>);

impl EnvelopePrincipal {
    /// Whether the envelope is for `principal` alone: the field is there, and has no other value.
    pub(super) fn is(&self, principal: &str) -> bool {
        let is_same = |value: &Option<String>| value.as_deref() == Some(principal);
        !self.0.is_empty() && self.0.iter().all(is_same)
    }

    /// Reads the principal of `body`; `None` if it is not a JSON object. In a truncated object the
    /// fields before the end count.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut principal = Self::default();
        let mut json = serde_json::Deserializer::from_slice(body);
        let parsed = json.deserialize_map(PrincipalVisitor(&mut principal));
        match parsed.and_then(|()| json.end()) {
            Err(_) if principal.0.is_empty() => None,
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
                let value = map.next_value::<&'de RawValue>()?;
                self.0.0.push(serde_json::from_str(value.get()).ok());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
