//! The name of a job: what a scheduler says with each turn that it starts.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::id::{IdError, text_serde};

/// The name of a job within its tenant: 1 to 64 characters of `A-Z a-z 0-9 . _ -`, the first a letter
/// or a digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName(Arc<str>);

impl JobName {
    /// The maximum length in bytes.
    pub const BYTES_MAX: usize = 64;

    /// The name as the scheduler sent it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for JobName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let valid = text.len() <= Self::BYTES_MAX
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(allowed);
        let name = valid.then(|| Self(text.into()));
        name.ok_or(IdError { what: "job name" })
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_serde!(JobName, "JobName", {
    "type": "string",
    "description": "The name of a job within its tenant.",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_name_is_one_short_word() {
        let longest = "j".repeat(JobName::BYTES_MAX);
        for good in ["a", "7", "daily-digest", "Billing.export_2", &longest] {
            let name: JobName = good.parse().expect("a name");
            assert_eq!(name.to_string(), good);
        }
        let long = "j".repeat(JobName::BYTES_MAX + 1);
        for bad in ["", "-a", ".", "a b", "a/b", "a:b", "ä", "a\n", &long] {
            assert!(bad.parse::<JobName>().is_err(), "{bad:?}");
        }
    }
}
