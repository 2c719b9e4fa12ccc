//! Values that a server may write in more than one way: counts that are missing, negative or
//! floating, and strings that are only looked at, so that they are not copied.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A count. What is no number, or below zero, counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count(pub(crate) u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Counting)
    }
}

struct Counting;

impl<'de> Visitor<'de> for Counting {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Count, E> {
        Ok(Count(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(value).unwrap_or(0)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Count, E> {
        // The cast saturates, and takes what is no number for 0.
        Ok(Count(value as u64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
        Ok(Count(0))
    }

    fn visit_str<E>(self, value: &str) -> Result<Count, E> {
        Ok(Count(value.parse().unwrap_or(0)))
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Count, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count(0))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count(0))
    }
}

/// A string that is borrowed from the frame unless it has escapes. A whole
/// number is its digits, since some servers number their ids; what else is no string is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Glance<'a>(Cow<'a, str>);

impl Glance<'_> {
    /// The string.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Glance<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Glancing(PhantomData))
    }
}

struct Glancing<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for Glancing<'a> {
    type Value = Glance<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Glance<'a>, E> {
        Ok(Glance(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Glance<'a>, E> {
        Ok(Glance(Cow::Owned(value.to_owned())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Glance<'a>, E> {
        Ok(Glance(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Glance<'a>, E> {
        Ok(Glance(Cow::Owned(value.to_string())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Glance<'a>, E> {
        Ok(Glance::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Glance<'a>, E> {
        Ok(Glance::default())
    }

    fn visit_unit<E>(self) -> Result<Glance<'a>, E> {
        Ok(Glance::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Glance<'a>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Glance::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Glance<'a>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Glance::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_however_it_is_written() {
        let written = "[7, -7, 7.9, null, true, \"7\", \"x\", [1], {\"a\": 1}, 1e300]";
        let counts: Vec<Count> = serde_json::from_str(written).expect("counts");
        let counts: Vec<u64> = counts.into_iter().map(|count| count.0).collect();
        assert_eq!(counts, [7, 0, 7, 0, 0, 7, 0, 0, 0, u64::MAX]);
    }

    #[test]
    fn a_glance_copies_only_what_has_escapes() {
        let plain: Option<Glance<'_>> = serde_json::from_str("\"plain\"").expect("a string");
        assert!(matches!(plain, Some(Glance(Cow::Borrowed("plain")))));
        let escaped: Glance<'_> = serde_json::from_str(r#""a\u0062""#).expect("a string");
        assert_eq!(escaped.as_str(), "ab");
        let others = r#"[12, -3, 0.5, true, null, ["a"], {"a": "b"}]"#;
        let others: Vec<Glance<'_>> = serde_json::from_str(others).expect("anything");
        let others: Vec<&str> = others.iter().map(Glance::as_str).collect();
        assert_eq!(others, ["12", "-3", "", "", "", "", ""]);
    }
}
