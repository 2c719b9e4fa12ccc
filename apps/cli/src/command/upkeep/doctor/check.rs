//! The result of one check.

use serde::Serialize;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckLevel {
    Ok,
    /// A server runs, but not as it should for long.
    Warning,
    /// A server does not start, or does not accept turns.
    Problem,
}

/// A line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CheckResult {
    pub(super) level: CheckLevel,
    #[serde(rename = "check")]
    pub(super) name: &'static str,
    pub(super) finding: String,
    /// What to do, unless it is ok.
    pub(super) action: Option<String>,
}

impl CheckResult {
    pub(super) fn ok(name: &'static str, finding: impl Into<String>) -> Self {
        Self {
            level: CheckLevel::Ok,
            name,
            finding: finding.into(),
            action: None,
        }
    }

    pub(super) fn warning(
        name: &'static str,
        finding: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        Self {
            level: CheckLevel::Warning,
            action: Some(action.into()),
            ..Self::ok(name, finding)
        }
    }

    pub(super) fn problem(
        name: &'static str,
        finding: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        Self {
            level: CheckLevel::Problem,
            action: Some(action.into()),
            ..Self::ok(name, finding)
        }
    }
}
