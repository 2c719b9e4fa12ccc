//! A regression case: what a person said, turn by turn, and what is expected to come of it. What is
//! left out of `expect` is not compared.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use turnwire_event::code::Origin;
use turnwire_pack::yaml;

/// The version of the format.
const VERSION: u32 = 1;

/// A conversation and what is expected of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegressionCase {
    pub(crate) version: u32,
    /// What it is called in reports.
    pub(crate) name: String,
    /// The turns, in order.
    pub(crate) turns: Vec<CaseTurn>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseTurn {
    /// What the person says.
    pub(crate) message: CaseInput,
    /// The language they want.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<String>,
    /// Who or what begins the turn, where it is not a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    /// What kind of message it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dm_type: Option<String>,
    /// What should come of it.
    #[serde(default)]
    pub(crate) expect: ExpectedTurn,
}

/// What a person says: words, or several blocks of them.
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

/// What should come of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedTurn {
    /// `ok`, `degraded`, `failed`, `paused` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// The code that the turn ends with; with a status and without this, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// All that the person is answered, from the first word to the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// The tools that run, in no order: some run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<ExpectedTool>>,
    /// The sub-agents that are asked, in no order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sub_agents: Option<Vec<ExpectedSubAgent>>,
    /// The statuses that tell what tools do, each once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) statuses: Option<Vec<String>>,
    /// The components and collections that are shown, by their kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) components: Option<Vec<String>>,
    /// The codes of errors that are told on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<Vec<String>>,
}

/// A tool that runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedTool {
    pub(crate) name: String,
    /// Its input as the log tells it; of a sub-agent's tools that is a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// SHA-256 of the input, where it is not a sub-agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input_sha256: Option<String>,
    /// `completed`, or why it failed.
    pub(crate) end: String,
}

/// A sub-agent that is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedSubAgent {
    pub(crate) id: String,
    /// `success`, `status_error`, or why it failed.
    pub(crate) end: String,
}

impl RegressionCase {
    /// A case of these turns.
    pub(crate) fn new(name: String, turns: Vec<CaseTurn>) -> Self {
        Self {
            version: VERSION,
            name,
            turns,
        }
    }

    /// Reads a case from a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {file}"))?;
        let case: Self =
            yaml::from_str(&text).map_err(|error| anyhow::anyhow!("{file}:{error}"))?;
        if case.version != VERSION {
            bail!(
                "{file}: version {} of a case; this program reads version {VERSION}",
                case.version
            );
        }
        if case.turns.is_empty() {
            bail!("{file}: the case has no turns");
        }
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
    fn a_case_reads_as_it_was_written_and_mistakes_are_told() {
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
            let told = format!("{:#}", RegressionCase::read(&path).expect_err("wrong"));
            assert!(told.contains(expected), "{told}");
        }
    }
}
