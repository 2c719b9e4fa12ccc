//! The YAML structure of a script, with the location of everything that can be wrong. Unknown keys
//! are rejected here; values are checked in `check`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use turnwire_pack::yaml::{self, Located, YamlNode};

use super::error::ScriptMistake;

/// One rule, or a list of pattern definitions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptRuleSource {
    /// Patterns that later rules reference by their YAML anchors: `{name: &anchor pattern}`. An
    /// item with this key has no other.
    pub(crate) define: Option<BTreeMap<String, Located<String>>>,
    /// The pace of all calls of the script. An item with this key has no other.
    pub(crate) pace: Option<Located<PaceSource>>,
    pub(crate) when: Option<ConditionSource>,
    pub(crate) steps: Option<Located<Vec<Located<StepSource>>>>,
}

/// How slowly a call is played where its steps say nothing: like a real model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaceSource {
    /// Pause before the first delta of a call.
    pub(crate) first_ms: Option<Located<u64>>,
    /// Least delay before each delta of text and reasoning.
    pub(crate) word_ms: Option<Located<u64>>,
}

/// The condition of a rule or a step.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConditionSource {
    /// The user's text is exactly this.
    pub(crate) says: Option<String>,
    /// All of these patterns match the user's text.
    pub(crate) user: Option<Located<PatternsSource>>,
    /// None of these patterns matches the user's text.
    pub(crate) not: Option<Located<PatternsSource>>,
    /// Id of the calling agent.
    pub(crate) agent: Option<Located<String>>,
    /// Number of the call within the agent's invocation, from 1; only in a rule.
    pub(crate) call: Option<Located<u32>>,
    /// Number of the attempt of this call, from 1.
    pub(crate) attempt: Option<Located<u32>>,
    /// Number of user messages in the request, this one included.
    pub(crate) turn: Option<Located<u32>>,
    /// The request's language is this one or more specific: `de` matches `de-AT`.
    pub(crate) locale: Option<Located<String>>,
    /// The pattern matches one of the newest tool results of the turn.
    pub(crate) result: Option<Located<String>>,
    /// For each tool, the pattern matches its newest result.
    pub(crate) results: Option<BTreeMap<String, Located<String>>>,
    /// The newest result of this tool is a success.
    pub(crate) answered: Option<Located<String>>,
    /// The newest result of this tool is an error.
    pub(crate) failed: Option<Located<String>>,
    /// At least so many tool results arrived since the model's last message.
    pub(crate) answers: Option<u32>,
}

/// One pattern, or a list of patterns.
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

/// One step: exactly one key for its kind, and the options of that kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSource {
    /// Condition of this step alone; the step is skipped if it does not hold.
    pub(crate) when: Option<Located<ConditionSource>>,
    /// Text, streamed word by word or in chunks.
    pub(crate) text: Option<Located<String>>,
    /// Text in several languages, `{en: …, de: …}`; another language gets the first.
    pub(crate) texts: Option<Located<TextsSource>>,
    /// Reasoning, streamed like text.
    pub(crate) thinking: Option<Located<String>>,
    /// Text in fixed pieces, one delta each, without placeholders.
    pub(crate) said: Option<Located<Vec<String>>>,
    /// Reasoning in fixed pieces, like `said`.
    pub(crate) thought: Option<Located<Vec<String>>>,
    pub(crate) tool: Option<Located<ToolUseSource>>,
    /// A pause of so many milliseconds.
    pub(crate) pause_ms: Option<Located<u64>>,
    /// `true` makes the stream silent until it is dropped.
    pub(crate) stall: Option<Located<bool>>,
    /// Fails the call with this error class.
    pub(crate) error: Option<Located<String>>,
    /// Option of `error`: true if the call may be retried.
    pub(crate) retry: Option<Located<bool>>,
    /// Option of `error`: retry after so many milliseconds.
    pub(crate) retry_after_ms: Option<Located<u64>>,
    /// Ends the call with this stop reason.
    pub(crate) stop: Option<Located<String>>,
    /// Option of `thinking` and `thought`: the signature of the reasoning.
    pub(crate) signature: Option<Located<String>>,
    /// Option of `text` and `thinking`: characters per delta.
    pub(crate) chunk: Option<Located<u64>>,
    /// Option of text and reasoning: delay before each delta.
    pub(crate) delay_ms: Option<Located<u64>>,
    /// Option of `text`: number of repetitions.
    pub(crate) repeat: Option<Located<u64>>,
    /// Option of `stop`: the reported usage.
    pub(crate) usage: Option<Located<UsageSource>>,
}

/// One text in several languages (`texts` of [`StepSource`]), in the order of the file.
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
        f.write_str("`language: text` pairs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextsSource, A::Error> {
        let mut texts = Vec::new();
        while let Some(pair) = map.next_entry()? {
            texts.push(pair);
        }
        Ok(TextsSource(texts))
    }
}

/// A tool use of the model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolUseSource {
    pub(crate) name: Located<String>,
    pub(crate) input: Option<Located<Value>>,
    pub(crate) fragments: Option<Located<u64>>,
    pub(crate) delay_ms: Option<Located<u64>>,
}

/// The reported usage of a call.
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

/// Parses the rules of a file one by one, so that a malformed rule hides no mistake of another.
pub(crate) fn read(text: &str) -> (Vec<Located<ScriptRuleSource>>, Vec<ScriptMistake>) {
    let root = match yaml::parse(text) {
        Ok(root) => root,
        Err(error) => return (Vec::new(), vec![error.into()]),
    };
    let YamlNode::List(items) = &root.value else {
        // The reader explains what another value than a list should be.
        return match yaml::from_node(&root) {
            Ok(rules) => (rules, Vec::new()),
            Err(error) => (Vec::new(), vec![error.into()]),
        };
    };
    let mut mistakes = Vec::new();
    let rules = items.iter().filter_map(|item| {
        let rule = yaml::from_node(item);
        rule.map_err(|error| mistakes.push(error.into())).ok()
    });
    (rules.collect(), mistakes)
}
