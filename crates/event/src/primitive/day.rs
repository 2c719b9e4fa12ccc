//! A calendar day in UTC, the unit by which usage and statuses are counted.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::{Span, tz};

use crate::clock::Timestamp;
use crate::id::{IdError, text_serde};

/// A UTC day, written `2026-01-31`. The order of the texts is the order in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcDay(Date);

impl UtcDay {
    /// The day that contains `time`.
    pub fn of(time: Timestamp) -> Self {
        let at = jiff::Timestamp::from_millisecond(time.as_millis())
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        Self(tz::TimeZone::UTC.to_datetime(at).date())
    }

    /// The day `days` earlier, saturating at the first representable day.
    #[must_use]
    pub fn minus(self, days: u16) -> Self {
        Self(self.0.saturating_sub(Span::new().days(days)))
    }

    /// The first and the last millisecond of the day.
    pub fn bounds(self) -> (Timestamp, Timestamp) {
        const LAST_MS: i64 = 24 * 3_600_000 - 1;
        let start = tz::TimeZone::UTC.to_timestamp(self.0.at(0, 0, 0, 0));
        // Days at the edges of what can be represented are far from every record.
        let start = start.map_or(i64::MIN, |start| start.as_millisecond());
        let last = start.saturating_add(LAST_MS);
        (Timestamp::from_millis(start), Timestamp::from_millis(last))
    }

    /// The number of days from `other` to this day; negative if this day is earlier.
    pub fn since(self, other: Self) -> i64 {
        let span = self.0.duration_since(other.0);
        span.as_hours() / 24
    }
}

impl fmt::Display for UtcDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for UtcDay {
    type Err = IdError;

    /// Parses `YYYY-MM-DD`; a date that does not exist is an error.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = IdError { what: "day" };
        let shape = |(at, byte): (usize, u8)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        if text.len() != 10 || !text.bytes().enumerate().all(shape) {
            return Err(bad);
        }
        text.parse().map(Self).map_err(|_| bad)
    }
}

text_serde!(UtcDay, "Day", {
    "type": "string",
    "format": "date",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
});

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> UtcDay {
        text.parse().expect("a day")
    }

    #[test]
    fn day_has_one_text_form() {
        for good in ["2026-11-16", "2024-02-29", "1970-01-01"] {
            assert_eq!(day(good).to_string(), good);
        }
        for bad in [
            "",
            "2026-2-1",
            "20260201",
            "2026-02-30",
            "2025-02-29",
            "2026-02-01T00:00:00Z",
            "+026-02-01",
            "2026/02/01",
            "２026-02-01",
            "0000-00-00",
        ] {
            assert!(bad.parse::<UtcDay>().is_err(), "{bad}");
        }
    }

    #[test]
    fn day_arithmetic_crosses_months_and_years() {
        assert_eq!(day("2026-03-01").minus(1), day("2026-02-28"));
        assert_eq!(day("2026-01-01").minus(366), day("2024-12-31"));
        assert_eq!(day("2026-01-01").since(day("2024-12-31")), 366);
        assert_eq!(day("2024-12-31").since(day("2026-01-01")), -366);
        assert!(day("0000-01-01").minus(u16::MAX) < day("0000-01-01"));
    }

    #[test]
    fn last_millisecond_belongs_to_its_day() {
        let midnight: Timestamp = "2026-11-17T00:00:00Z".parse().expect("a time");
        let before = Timestamp::from_millis(midnight.as_millis() - 1);
        assert_eq!(UtcDay::of(midnight), day("2026-11-17"));
        assert_eq!(UtcDay::of(before), day("2026-11-16"));
    }
}
