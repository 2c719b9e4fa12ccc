//! Time and fresh ids: a millisecond UTC [`Timestamp`], and the traits that provide time and
//! ids. Nothing is ordered by a wall clock; timestamps are labels (architecture: order).

use std::fmt;
use std::time::Duration;

use crate::id::{Ulid, text_serde};

/// Milliseconds since the Unix epoch, UTC; printed as RFC 3339 with three decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A timestamp from milliseconds since the Unix epoch.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Milliseconds since `earlier`; 0 if the clock ran backwards in between.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        let elapsed = self.0.saturating_sub(earlier.0);
        if elapsed > 0 { elapsed as u64 } else { 0 }
    }

    /// The time that is `age` before this one.
    #[must_use]
    pub fn before(self, age: Duration) -> Self {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(age))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(f, "{at:.3}")
    }
}

impl std::str::FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.parse::<jiff::Timestamp>()?.as_millisecond()))
    }
}

text_serde!(Timestamp, "Timestamp", { "type": "string", "format": "date-time" });

/// The source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// The current time. The clock may jump either way, so nothing is ordered by it.
    fn now(&self) -> Timestamp;
}

/// The source of unique ids.
pub trait IdGenerator: Send + Sync + 'static {
    /// Returns an id that no process has returned before.
    fn ulid(&self) -> Ulid;
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn timestamp_prints_utc_milliseconds_and_parses_back() {
        for ms in [0, 1, 1_794_775_166_120, 1_794_775_166_000] {
            let at = Timestamp::from_millis(ms);
            let text = at.to_string();
            assert_eq!(text.len(), 24, "{text}");
            assert_eq!(text.parse::<Timestamp>().expect("own format"), at);
        }
        assert_eq!(
            Timestamp::from_millis(5).to_string(),
            "1970-01-01T00:00:00.005Z"
        );
    }
}
