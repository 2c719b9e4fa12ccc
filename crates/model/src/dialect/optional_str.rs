//! Strings deserialised without copying and without failing: a field that is not a string counts as
//! missing. Event types share field names, and an event of an unknown type may put any value into
//! them.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A string, borrowed from the input unless it has escapes; `None` if it is missing, null or not a
/// string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionalStr<'a>(pub(super) Option<Cow<'a, str>>);

impl<'a> OptionalStr<'a> {
    /// The string; empty if it is missing.
    pub(super) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The owned string; `None` if it is missing or empty.
    pub(super) fn into_non_empty(self) -> Option<String> {
        self.0.filter(|text| !text.is_empty()).map(Cow::into_owned)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for OptionalStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OptionalStrVisitor).map(Self)
    }
}

struct OptionalStrVisitor;

impl<'de> Visitor<'de> for OptionalStrVisitor {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct SampleEvent<'a> {
        #[serde(borrow, default)]
        words: OptionalStr<'a>,
    }

    fn read(json: &str) -> Option<Cow<'_, str>> {
        let event: SampleEvent = serde_json::from_str(json).expect("an event");
        event.words.0
    }

    #[test]
    fn string_is_borrowed_unless_it_has_escapes() {
        let plain = read(r#"{"words":"a b"}"#);
        assert!(matches!(plain, Some(Cow::Borrowed("a b"))));
        let escaped = read(r#"{"words":"a\nb"}"#);
        assert!(matches!(escaped, Some(Cow::Owned(ref words)) if words == "a\nb"));
    }

    #[test]
    fn value_that_is_not_a_string_counts_as_missing() {
        for odd in ["null", "true", "7", "-1", "1.5", "[1,{}]", r#"{"a":[]}"#] {
            assert_eq!(read(&format!(r#"{{"words":{odd}}}"#)), None, "{odd}");
        }
        assert_eq!(read("{}"), None);
    }
}
