//! Whom an answer is for, read before and without the rest of it: an unknown status, a missing
//! field, a second key or a body that breaks off must not hide that an answer is somebody else's.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The one field that is read.
const PRINCIPAL: &str = "principal";

/// Whom an object says it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Addressee {
    /// It does not say.
    Nobody,
    /// This one, however often it says so.
    One(String),
    /// Several, or what cannot be a principal.
    Other,
}

impl Addressee {
    /// Whether it is for `principal` and nobody else.
    pub(super) fn is(&self, principal: &str) -> bool {
        matches!(self, Self::One(named) if named == principal)
    }

    fn hear(&mut self, raw: &RawValue) {
        let named = serde_json::from_str::<String>(raw.get()).ok();
        *self = match (std::mem::replace(self, Self::Other), named) {
            (Self::Nobody, Some(named)) => Self::One(named),
            (Self::One(one), Some(named)) if one == named => Self::One(one),
            _ => Self::Other,
        };
    }
}

/// Reads whom `body` is for; `None` if it is not a JSON object. Of one that breaks off, what was
/// said before counts, if anything was.
pub(super) fn read(body: &[u8]) -> Option<Addressee> {
    let mut heard = Addressee::Nobody;
    let mut json = serde_json::Deserializer::from_slice(body);
    let whole = Ear(&mut heard).deserialize(&mut json);
    match whole.and_then(|()| json.end()) {
        Err(_) if heard == Addressee::Nobody => None,
        Ok(()) | Err(_) => Some(heard),
    }
}

/// Listens to an object and keeps what it hears even if the object breaks off.
struct Ear<'h>(&'h mut Addressee);

impl<'de> DeserializeSeed<'de> for Ear<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Ear<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == PRINCIPAL {
                self.0.hear(map.next_value::<&'de RawValue>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
