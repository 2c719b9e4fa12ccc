//! A regression case: the user's input and the expected result of every turn. Fields that are left
//! out of `expect` are not compared.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use turnwire_event::code::Origin;
use turnwire_pack::yaml;

/// The version of the format.
const VERSION: u32 = 1;

/// A conversation with the expected results of its turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegressionCase {
    pub(crate) version: u32,
    /// The name of the case in reports.
    pub(crate) name: String,
    pub(crate) turns: Vec<CaseTurn>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseTurn {
    pub(crate) message: CaseInput,
    /// The language tag of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<String>,
    /// The initiator of the turn, unless it is a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    /// The kind of direct message that the turn is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dm_type: Option<String>,
    #[serde(default)]
    pub(crate) expect: ExpectedTurn,
}

/// The user's message in a [`CaseTurn`]: a text, or several text blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum CaseInput {
    One(String),
    Many(Vec<String>),
}

impl CaseInput {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Many(texts) => texts.concat(),
        }
    }
}

/// The expected result of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedTurn {
    /// `ok`, `degraded`, `failed`, `paused` or `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// The error code of the terminal; with `status` and without `error`, none is expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The whole text of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// The tools that run, in any order: some run in parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<ExpectedTool>>,
    /// The sub-agents that are called, in any order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sub_agents: Option<Vec<ExpectedSubAgent>>,
    /// The ids of statuses that announce tools, each once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) statuses: Option<Vec<String>>,
    /// The kinds of the components and collections that are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) components: Option<Vec<String>>,
    /// The codes of reported errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<Vec<String>>,
}

/// A tool call of an [`ExpectedTurn`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedTool {
    pub(crate) name: String,
    /// The input summary of the log; a size, for a tool of a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// SHA-256 of the input, unless the tool is a sub-agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_sha256: Option<String>,
    /// `completed`, or the error class.
    pub(crate) end: String,
}

/// A call of a sub-agent in an [`ExpectedTurn`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedSubAgent {
    pub(crate) id: String,
    /// `success`, `status_error`, or the error class.
    pub(crate) end: String,
}

impl RegressionCase {
    pub(crate) fn new(name: String, turns: Vec<CaseTurn>) -> Self {
        Self {
            version: VERSION,
            name,
            turns,
        }
    }

    /// Reads a case from a file and checks its version.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {file}"))?;
        let case: Self = yaml::from_str(&text).map_err(|error| anyhow!("{file}:{error}"))?;
        let version = case.version;
        ensure!(
            version == VERSION,
            "{file}: version {version} of a case; this program reads version {VERSION}"
        );
        ensure!(!case.turns.is_empty(), "{file}: the case has no turns");
        Ok(case)
    }

    pub(crate) fn write(&self) -> Result<String> {
        Ok(yaml::to_string(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_round_trips_and_mistakes_are_reported() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("case.yaml");
        let turn = CaseTurn {
            message: CaseInput::Many(vec!["a\n".into(), "b: c".into()]),
            locale: Some("de-AT".into()),
            location: None,
            origin: Some(Origin::Dm),
            dm_type: Some("push".into()),
            expect: ExpectedTurn {
                status: Some("ok".into()),
                text: Some("Grüß Gott".into()),
                tools: Some(vec![ExpectedTool {
                    name: "ask_shop".into(),
                    input: Some("12 bytes".into()),
                    input_sha256: None,
                    end: "completed".into(),
                }]),
                statuses: Some(Vec::new()),
                ..ExpectedTurn::default()
            },
        };
        let case = RegressionCase::new("sess_1".into(), vec![turn]);
        std::fs::write(&path, case.write().expect("text")).expect("written");
        assert_eq!(RegressionCase::read(&path).expect("a case"), case);
        for (text, expected) in [
            ("version: 2\nname: x\nturns: []\n", "version 2 of a case"),
            ("version: 1\nname: x\nturns: []\n", "the case has no turns"),
            ("version: 1\nname: x\nturns: [{mesage: a}]\n", "mesage"),
        ] {
            std::fs::write(&path, text).expect("written");
            let message = format!("{:#}", RegressionCase::read(&path).expect_err("wrong"));
            assert!(message.contains(expected), "{message}");
        }
    }
}
