//! The file format of a regression case: the user's input and the expected result of every turn.
//! Fields that are absent from `expect` are not compared.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use turnwire_event::code::Origin;
use turnwire_pack::yaml;

/// The version of the file format that this program reads and writes.
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

/// A turn of a [`RegressionCase`]: its input, and its expected result in `expect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseTurn {
    pub(crate) message: CaseInput,
    /// The language tag of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<String>,
    /// The initiator of the turn; absent if a user wrote the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    /// The kind of direct message that the turn is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dm_type: Option<String>,
    #[serde(default)]
    pub(crate) expect: TurnResult,
}

/// The user's message in a [`CaseTurn`]: a text, or several text blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum CaseInput {
    Text(String),
    TextBlocks(Vec<String>),
}

impl CaseInput {
    /// The text of all blocks, joined.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::TextBlocks(texts) => texts.concat(),
        }
    }
}

/// The result of a turn: as a [`CaseTurn`] expects it, or as the log of a run shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnResult {
    /// `ok`, `degraded`, `failed`, `paused` or `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// The error code of the terminal. If `status` is present and `error` is absent, the turn is
    /// expected to end without an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The whole text of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// The tool calls, in any order: some tools run in parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<CalledTool>>,
    /// The calls of sub-agents, in any order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sub_agents: Option<Vec<CalledSubAgent>>,
    /// The ids of the statuses that announce tools, without duplicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) statuses: Option<Vec<String>>,
    /// The names of the rendered components and the data types of the loaded collections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) components: Option<Vec<String>>,
    /// The codes of the `error.reported` events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<Vec<String>>,
}

/// A tool call of a [`TurnResult`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalledTool {
    pub(crate) name: String,
    /// The `input_summary` of `tool.called`; only a size if a sub-agent called the tool. Absent if
    /// the tool failed before it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// The SHA-256 hash of the input; absent if a sub-agent called the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_sha256: Option<String>,
    /// `completed`, or the error class of `tool.failed`.
    pub(crate) end: String,
}

/// A call of a sub-agent in a [`TurnResult`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalledSubAgent {
    pub(crate) id: String,
    /// The outcome of `subagent.completed`, or the error class of `subagent.failed`.
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
            "{file}: the case has format version {version}; this program reads version {VERSION}"
        );
        ensure!(!case.turns.is_empty(), "{file}: the case has no turns");
        Ok(case)
    }

    pub(crate) fn to_yaml(&self) -> Result<String> {
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
            message: CaseInput::TextBlocks(vec!["a\n".into(), "b: c".into()]),
            locale: Some("de-AT".into()),
            location: None,
            origin: Some(Origin::Dm),
            dm_type: Some("push".into()),
            expect: TurnResult {
                status: Some("ok".into()),
                text: Some("Grüß Gott".into()),
                tools: Some(vec![CalledTool {
                    name: "ask_shop".into(),
                    input: Some("12 bytes".into()),
                    input_sha256: None,
                    end: "completed".into(),
                }]),
                statuses: Some(Vec::new()),
                ..TurnResult::default()
            },
        };
        let case = RegressionCase::new("sess_1".into(), vec![turn]);
        std::fs::write(&path, case.to_yaml().expect("text")).expect("written");
        assert_eq!(RegressionCase::read(&path).expect("a case"), case);
        for (text, expected) in [
            ("version: 2\nname: x\nturns: []\n", "format version 2"),
            ("version: 1\nname: x\nturns: []\n", "the case has no turns"),
            ("version: 1\nname: x\nturns: [{mesage: a}]\n", "mesage"),
        ] {
            std::fs::write(&path, text).expect("written");
            let message = format!(
                "{:#}",
                RegressionCase::read(&path).expect_err("an invalid case")
            );
            assert!(message.contains(expected), "{message}");
        }
    }
}
