//! Integers by the rules of JSON Schema: `500` and `500.0` are the same number.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};

/// Up to this number, every integer is exact as a floating point number.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Deserializes a non-negative integer, or null.
pub(crate) fn option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_option(OptionalInteger)
}

struct OptionalInteger;

impl<'de> Visitor<'de> for OptionalInteger {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_none<E: de::Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Option<u64>, D::Error> {
        inner.deserialize_any(Integer).map(Some)
    }
}

struct Integer;

impl Visitor<'_> for Integer {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
        if number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number) {
            Ok(number as u64)
        } else {
            Err(E::invalid_value(de::Unexpected::Float(number), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Option<u64>, String> {
        option(&mut serde_json::Deserializer::from_str(json)).map_err(|error| error.to_string())
    }

    #[test]
    fn integer_may_have_a_decimal_point() {
        for (json, number) in [
            ("500", 500),
            ("500.0", 500),
            ("5e2", 500),
            ("0", 0),
            ("-0.0", 0),
        ] {
            assert_eq!(read(json), Ok(Some(number)), "{json}");
        }
        assert_eq!(read("18446744073709551615"), Ok(Some(u64::MAX)));
        assert_eq!(read("null"), Ok(None));
        for json in ["1.5", "-1", "-1.0", "1e300", "\"1\"", "true", "[]", "{}"] {
            let error = read(json).expect_err(json);
            assert!(error.contains("expected a whole number"), "{error}");
        }
    }
}
