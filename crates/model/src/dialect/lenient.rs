//! JSON values that servers write in more than one way: counts that are missing, negative or
//! floating point, and strings, which are not copied. A field never fails because of its type:
//! event types share field names, and an event of an unknown type may put any value into them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A non-negative count, of tokens or an index. A negative number counts as 0, and so does a value
/// that is not a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LenientCount(pub(crate) u64);

impl LenientCount {
    /// The number; 0 if the field is missing.
    pub(crate) fn or_zero(count: Option<Self>) -> u64 {
        count.unwrap_or_default().0
    }
}

/// A string, borrowed from the frame unless it has escapes. An integer becomes its digits, since
/// some servers send numeric ids; any other value becomes an empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LenientStr<'a>(Cow<'a, str>);

impl LenientStr<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A string, borrowed from the frame unless it has escapes; `None` if it is missing, null or not a
/// string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionalStr<'a>(pub(crate) Option<Cow<'a, str>>);

impl OptionalStr<'_> {
    /// The string; empty if it is missing.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The owned string; `None` if it is missing or empty.
    pub(crate) fn into_non_empty(self) -> Option<String> {
        self.0.filter(|text| !text.is_empty()).map(Cow::into_owned)
    }
}

/// A type that is read from any JSON value; a value that it does not convert becomes its default.
trait FromAnyJson<'de>: Default {
    fn from_text(text: Cow<'de, str>) -> Self;

    fn from_unsigned(_: u64) -> Self {
        Self::default()
    }

    fn from_signed(_: i64) -> Self {
        Self::default()
    }

    fn from_float(_: f64) -> Self {
        Self::default()
    }
}

impl FromAnyJson<'_> for LenientCount {
    fn from_text(text: Cow<'_, str>) -> Self {
        Self(text.parse().unwrap_or(0))
    }

    fn from_unsigned(value: u64) -> Self {
        Self(value)
    }

    fn from_signed(value: i64) -> Self {
        Self(u64::try_from(value).unwrap_or(0))
    }

    fn from_float(value: f64) -> Self {
        // The cast saturates and turns NaN into 0.
        Self(value as u64)
    }
}

impl<'de> FromAnyJson<'de> for LenientStr<'de> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Self(text)
    }

    fn from_unsigned(value: u64) -> Self {
        Self(Cow::Owned(value.to_string()))
    }

    fn from_signed(value: i64) -> Self {
        Self(Cow::Owned(value.to_string()))
    }
}

impl<'de> FromAnyJson<'de> for OptionalStr<'de> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

impl<'de> Deserialize<'de> for LenientCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJsonVisitor(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LenientStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJsonVisitor::<LenientStr<'de>>(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for OptionalStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJsonVisitor::<OptionalStr<'de>>(PhantomData))
    }
}

struct AnyJsonVisitor<T>(PhantomData<T>);

impl<'de, T: FromAnyJson<'de>> Visitor<'de> for AnyJsonVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::from_text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::from_unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::from_signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::from_float(value))
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn count_accepts_numbers_strings_and_other_values() {
        let json = "[7, -7, 7.9, null, true, \"7\", \"x\", [1], {\"a\": 1}, 1e300]";
        let counts: Vec<LenientCount> = serde_json::from_str(json).expect("counts");
        let counts: Vec<u64> = counts.into_iter().map(|count| count.0).collect();
        assert_eq!(counts, [7, 0, 7, 0, 0, 7, 0, 0, 0, u64::MAX]);
    }

    #[test]
    fn lenient_str_copies_only_strings_with_escapes() {
        let plain: Option<LenientStr<'_>> = serde_json::from_str("\"plain\"").expect("a string");
        assert!(matches!(plain, Some(LenientStr(Cow::Borrowed("plain")))));
        let escaped: LenientStr<'_> = serde_json::from_str(r#""a\u0062""#).expect("a string");
        assert_eq!(escaped.as_str(), "ab");
        let others = r#"[12, -3, 0.5, true, null, ["a"], {"a": "b"}]"#;
        let others: Vec<LenientStr<'_>> = serde_json::from_str(others).expect("anything");
        let others: Vec<&str> = others.iter().map(LenientStr::as_str).collect();
        assert_eq!(others, ["12", "-3", "", "", "", "", ""]);
    }

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
