//! JSON values that servers write in more than one way: counts that are missing, negative or
//! floating point, and strings that are only compared and therefore not copied.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A non-negative count, of tokens or an index. A negative number counts as 0, and so does a value
/// that is not a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LenientCount(pub(crate) u64);

impl<'de> Deserialize<'de> for LenientCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = LenientCount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E>(self, value: u64) -> Result<LenientCount, E> {
        Ok(LenientCount(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<LenientCount, E> {
        Ok(LenientCount(u64::try_from(value).unwrap_or(0)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<LenientCount, E> {
        // The cast saturates and turns NaN into 0.
        Ok(LenientCount(value as u64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<LenientCount, E> {
        Ok(LenientCount(0))
    }

    fn visit_str<E>(self, value: &str) -> Result<LenientCount, E> {
        Ok(LenientCount(value.parse().unwrap_or(0)))
    }

    fn visit_unit<E>(self) -> Result<LenientCount, E> {
        Ok(LenientCount(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<LenientCount, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LenientCount(0))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LenientCount, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LenientCount(0))
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

impl<'de: 'a, 'a> Deserialize<'de> for LenientStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientStrVisitor(PhantomData))
    }
}

struct LenientStrVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for LenientStrVisitor<'a> {
    type Value = LenientStr<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<LenientStr<'a>, E> {
        Ok(LenientStr(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<LenientStr<'a>, E> {
        Ok(LenientStr(Cow::Owned(value.to_owned())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<LenientStr<'a>, E> {
        Ok(LenientStr(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<LenientStr<'a>, E> {
        Ok(LenientStr(Cow::Owned(value.to_string())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<LenientStr<'a>, E> {
        Ok(LenientStr::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<LenientStr<'a>, E> {
        Ok(LenientStr::default())
    }

    fn visit_unit<E>(self) -> Result<LenientStr<'a>, E> {
        Ok(LenientStr::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<LenientStr<'a>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LenientStr::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LenientStr<'a>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LenientStr::default())
    }
}

#[cfg(test)]
mod tests {
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
}
