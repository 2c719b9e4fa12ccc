//! A script as it is written: the shapes of its YAML, with the place of everything that can be
//! wrong. Unknown keys are refused here; what the values mean is checked in `check`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use turnwire_pack::yaml::{self, Located, YamlNode};

use super::error::Wrong;

/// One rule, or a place to define patterns at.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleSource {
    /// Patterns that later rules take by their YAML anchors.
    pub(crate) define: Option<BTreeMap<String, Located<String>>>,
    pub(crate) when: Option<WhenSource>,
    pub(crate) steps: Option<Located<Vec<Located<StepSource>>>>,
}

/// When a rule or a step speaks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhenSource {
    pub(crate) says: Option<String>,
    pub(crate) user: Option<Located<PatternsSource>>,
    pub(crate) not: Option<Located<PatternsSource>>,
    pub(crate) agent: Option<Located<String>>,
    pub(crate) call: Option<Located<u32>>,
    pub(crate) attempt: Option<Located<u32>>,
    pub(crate) turn: Option<Located<u32>>,
    pub(crate) locale: Option<Located<String>>,
    pub(crate) result: Option<Located<String>>,
    pub(crate) results: Option<BTreeMap<String, Located<String>>>,
    pub(crate) answered: Option<Located<String>>,
    pub(crate) failed: Option<Located<String>>,
    pub(crate) answers: Option<u32>,
}

/// One pattern, or a list of them.
#[derive(Debug)]
pub(crate) enum PatternsSource {
    One(String),
    Many(Vec<Located<String>>),
}

impl<'de> Deserialize<'de> for PatternsSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PatternsVisitor)
    }
}

struct PatternsVisitor;

impl<'de> Visitor<'de> for PatternsVisitor {
    type Value = PatternsSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pattern or a list of patterns")
    }

    fn visit_str<E>(self, text: &str) -> Result<PatternsSource, E> {
        Ok(PatternsSource::One(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PatternsSource, A::Error> {
        let mut patterns = Vec::new();
        while let Some(pattern) = list.next_element()? {
            patterns.push(pattern);
        }
        Ok(PatternsSource::Many(patterns))
    }
}

/// One step: exactly one of the keys that say what it is, and those that say how.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSource {
    pub(crate) when: Option<Located<WhenSource>>,
    pub(crate) text: Option<Located<String>>,
    pub(crate) texts: Option<Located<TextsSource>>,
    pub(crate) thinking: Option<Located<String>>,
    /// Words and reasoning in the pieces they came in, as they are.
    pub(crate) said: Option<Located<Vec<String>>>,
    pub(crate) thought: Option<Located<Vec<String>>>,
    pub(crate) tool: Option<Located<ToolSource>>,
    pub(crate) pause_ms: Option<Located<u64>>,
    pub(crate) stall: Option<Located<bool>>,
    pub(crate) error: Option<Located<String>>,
    pub(crate) retry: Option<Located<bool>>,
    pub(crate) retry_after_ms: Option<Located<u64>>,
    pub(crate) stop: Option<Located<String>>,
    pub(crate) signature: Option<Located<String>>,
    pub(crate) chunk: Option<Located<u64>>,
    pub(crate) delay_ms: Option<Located<u64>>,
    pub(crate) repeat: Option<Located<u64>>,
    pub(crate) usage: Option<Located<UsageSource>>,
}

/// The same words in several languages, in the order they are written.
#[derive(Debug)]
pub(crate) struct TextsSource(pub(crate) Vec<(String, Located<String>)>);

impl<'de> Deserialize<'de> for TextsSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = TextsSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`language: words` pairs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextsSource, A::Error> {
        let mut texts = Vec::new();
        while let Some(pair) = map.next_entry()? {
            texts.push(pair);
        }
        Ok(TextsSource(texts))
    }
}

/// A tool the model asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSource {
    pub(crate) name: Located<String>,
    pub(crate) input: Option<Located<Value>>,
    pub(crate) fragments: Option<Located<u64>>,
    pub(crate) delay_ms: Option<Located<u64>>,
}

/// What a call is said to cost.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageSource {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) total_tokens: Option<u64>,
    pub(crate) reasoning_tokens: Option<u64>,
    pub(crate) cached_tokens: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
}

/// Reads the rules of a file, each for itself, so that one whose shape is wrong hides no other.
pub(crate) fn read(text: &str) -> (Vec<Located<RuleSource>>, Vec<Wrong>) {
    let root = match yaml::parse(text) {
        Ok(root) => root,
        Err(error) => return (Vec::new(), vec![error.into()]),
    };
    let YamlNode::List(items) = &root.value else {
        // Of another value than a list the reader says what it should be.
        let rules = yaml::from_node::<Vec<Located<RuleSource>>>(&root);
        return match rules {
            Ok(rules) => (rules, Vec::new()),
            Err(error) => (Vec::new(), vec![error.into()]),
        };
    };
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for item in items {
        match yaml::from_node(item) {
            Ok(rule) => rules.push(rule),
            Err(error) => wrong.push(error.into()),
        }
    }
    (rules, wrong)
}
