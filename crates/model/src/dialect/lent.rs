//! Strings read without copying, and without minding what a vendor puts in their place: a field
//! that is no string is a field that is not there. Events of many types share fields, and one of a
//! type that nobody knows may put anything into them.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A string, lent where it has no escapes; nothing if it is missing, null or no string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words<'a>(pub(super) Option<Cow<'a, str>>);

impl<'a> Words<'a> {
    /// The string; empty if there is none.
    pub(super) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The string as one's own, if it says something.
    pub(super) fn said(self) -> Option<String> {
        self.0.filter(|said| !said.is_empty()).map(Cow::into_owned)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor).map(Self)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("anything")
    }

    fn visit_borrowed_str<E>(self, words: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(words)))
    }

    fn visit_str<E>(self, words: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(words.to_owned())))
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
    struct Frame<'a> {
        #[serde(borrow, default)]
        words: Words<'a>,
    }

    fn read(json: &str) -> Option<Cow<'_, str>> {
        let frame: Frame = serde_json::from_str(json).expect("a frame");
        frame.words.0
    }

    #[test]
    fn a_string_without_escapes_is_lent_and_one_with_escapes_is_copied() {
        let plain = read(r#"{"words":"a b"}"#);
        assert!(matches!(plain, Some(Cow::Borrowed("a b"))));
        let escaped = read(r#"{"words":"a\nb"}"#);
        assert!(matches!(escaped, Some(Cow::Owned(ref words)) if words == "a\nb"));
    }

    #[test]
    fn whatever_is_no_string_is_not_there() {
        for odd in ["null", "true", "7", "-1", "1.5", "[1,{}]", r#"{"a":[]}"#] {
            assert_eq!(read(&format!(r#"{{"words":{odd}}}"#)), None, "{odd}");
        }
        assert_eq!(read("{}"), None);
    }
}
