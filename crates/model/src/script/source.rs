//! The YAML structure of a script, with the location of everything that can be wrong. Unknown keys
//! are rejected here; values are checked in `check`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::error::ScriptMistake;

/// One rule, or a list of pattern definitions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptRuleSource {
    /// Patterns that later rules reference by their YAML anchors.
    pub(crate) define: Option<BTreeMap<String, Spanned<String>>>,
    pub(crate) when: Option<ConditionSource>,
    pub(crate) steps: Option<Spanned<Vec<Spanned<StepSource>>>>,
}

/// The condition of a rule or a step.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConditionSource {
    pub(crate) says: Option<String>,
    pub(crate) user: Option<Spanned<PatternsSource>>,
    pub(crate) not: Option<Spanned<PatternsSource>>,
    pub(crate) agent: Option<Spanned<String>>,
    pub(crate) call: Option<Spanned<u32>>,
    pub(crate) attempt: Option<Spanned<u32>>,
    pub(crate) turn: Option<Spanned<u32>>,
    pub(crate) locale: Option<Spanned<String>>,
    pub(crate) result: Option<Spanned<String>>,
    pub(crate) results: Option<BTreeMap<String, Spanned<String>>>,
    pub(crate) answered: Option<Spanned<String>>,
    pub(crate) failed: Option<Spanned<String>>,
    pub(crate) answers: Option<u32>,
}

/// One pattern, or a list of patterns.
#[derive(Debug)]
pub(crate) enum PatternsSource {
    One(String),
    Many(Vec<Spanned<String>>),
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
    pub(crate) when: Option<Spanned<ConditionSource>>,
    pub(crate) text: Option<Spanned<String>>,
    pub(crate) texts: Option<Spanned<TextsSource>>,
    pub(crate) thinking: Option<Spanned<String>>,
    /// Text in fixed pieces, one delta each, without placeholders.
    pub(crate) said: Option<Spanned<Vec<String>>>,
    pub(crate) thought: Option<Spanned<Vec<String>>>,
    pub(crate) tool: Option<Spanned<ToolUseSource>>,
    pub(crate) pause_ms: Option<Spanned<u64>>,
    pub(crate) stall: Option<Spanned<bool>>,
    pub(crate) error: Option<Spanned<String>>,
    pub(crate) retry: Option<Spanned<bool>>,
    pub(crate) retry_after_ms: Option<Spanned<u64>>,
    pub(crate) stop: Option<Spanned<String>>,
    pub(crate) signature: Option<Spanned<String>>,
    pub(crate) chunk: Option<Spanned<u64>>,
    pub(crate) delay_ms: Option<Spanned<u64>>,
    pub(crate) repeat: Option<Spanned<u64>>,
    pub(crate) usage: Option<Spanned<UsageSource>>,
}

/// One text in several languages (`texts` of [`StepSource`]), in the order of the file.
#[derive(Debug)]
pub(crate) struct TextsSource(pub(crate) Vec<(String, Spanned<String>)>);

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
    pub(crate) name: Spanned<String>,
    pub(crate) input: Option<Spanned<Value>>,
    pub(crate) fragments: Option<Spanned<u64>>,
    pub(crate) delay_ms: Option<Spanned<u64>>,
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

/// Parses the YAML of a script.
pub(crate) fn read(yaml: &str) -> Result<Vec<Spanned<ScriptRuleSource>>, ScriptMistake> {
    turnwire_pack::erased::from_str(yaml).map_err(ScriptMistake::from)
}
