//! The version of the chat wire that a turn uses, fixed when the turn is accepted (D-09).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A version of the chat wire.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum WireVersion {
    /// The older version: cancels are errors, and every error ends the turn (D-22).
    #[serde(rename = "0.4")]
    V04,
    /// The current version and default.
    #[default]
    #[serde(rename = "0.5")]
    V05,
}

/// A text that is not a [`WireVersion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version of the chat wire: it speaks 0.5 and 0.4")]
pub struct InvalidVersion;

impl WireVersion {
    /// Every version, oldest first.
    pub const ALL: [Self; 2] = [Self::V04, Self::V05];

    /// The `version` field of every frame.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V04 => "0.4",
            Self::V05 => "0.5",
        }
    }
}

impl fmt::Display for WireVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for WireVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let version = Self::ALL.into_iter().find(|v| v.as_str() == text);
        version.ok_or(InvalidVersion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-09
    #[test]
    fn versions_have_one_spelling_and_newest_is_default() {
        assert_eq!(WireVersion::default(), WireVersion::V05);
        for version in WireVersion::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
            let json = serde_json::to_string(&version).expect("plain data");
            assert_eq!(json, format!("\"{version}\""));
            assert_eq!(
                serde_json::from_str::<WireVersion>(&json).ok(),
                Some(version)
            );
        }
        for bad in ["", "0", "0.6", " 0.5", "0.50", "v0.5", "0,5"] {
            assert_eq!(bad.parse::<WireVersion>(), Err(InvalidVersion), "{bad:?}");
        }
    }
}
