//! The chunks of a Chat Completions stream, reduced to the fields that the decoder reads. Only the
//! first choice is read; strings that are only compared are not copied.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::text::{CallArguments, ChatText};
use crate::dialect::lenient::{LenientCount, LenientStr};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatChunk<'a> {
    #[serde(borrow)]
    pub(super) id: LenientStr<'a>,
    #[serde(borrow)]
    pub(super) choices: Option<FirstChoice<'a>>,
    pub(super) usage: Option<CompletionUsage>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// The first choice, if the chunk has it.
#[derive(Debug, Default)]
pub(super) struct FirstChoice<'a>(pub(super) Option<ChunkChoice<'a>>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChunkChoice<'a> {
    pub(super) index: LenientCount,
    #[serde(borrow)]
    pub(super) delta: Option<ChoiceDelta<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: LenientStr<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ChoiceDelta<'a> {
    pub(super) content: Option<ChatText>,
    pub(super) reasoning_content: Option<ChatText>,
    pub(super) reasoning: Option<ChatText>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    pub(super) refusal: Option<ChatText>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallFragment<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<FunctionFragment<'a>>,
}

/// A fragment of a tool call.
#[derive(Debug, Default)]
pub(super) struct CallFragment<'a> {
    pub(super) index: Option<LenientCount>,
    pub(super) id: LenientStr<'a>,
    pub(super) function: Option<FunctionFragment<'a>>,
    /// All other fields that are not null, unparsed.
    pub(super) other_fields: Vec<(LenientStr<'a>, &'a RawValue)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionFragment<'a> {
    #[serde(borrow)]
    pub(super) name: LenientStr<'a>,
    pub(super) arguments: Option<CallArguments>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct CompletionUsage {
    pub(super) prompt_tokens: Option<LenientCount>,
    pub(super) completion_tokens: Option<LenientCount>,
    pub(super) total_tokens: Option<LenientCount>,
    pub(super) prompt_tokens_details: Option<PromptTokensDetails>,
    pub(super) completion_tokens_details: Option<CompletionTokensDetails>,
    /// Cached prompt tokens, from servers without `prompt_tokens_details`.
    pub(super) prompt_cache_hit_tokens: Option<LenientCount>,
    pub(super) cached_tokens: Option<LenientCount>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct PromptTokensDetails {
    pub(super) cached_tokens: Option<LenientCount>,
    pub(super) cache_write_tokens: Option<LenientCount>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct CompletionTokensDetails {
    pub(super) reasoning_tokens: Option<LenientCount>,
}

impl<'de: 'a, 'a> Deserialize<'de> for CallFragment<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CallFragmentVisitor)
    }
}

struct CallFragmentVisitor;

impl<'de> Visitor<'de> for CallFragmentVisitor {
    type Value = CallFragment<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CallFragment<'de>, A::Error> {
        let mut call = CallFragment::default();
        while let Some(name) = map.next_key::<LenientStr<'de>>()? {
            match name.as_str() {
                "index" => call.index = map.next_value()?,
                "id" => call.id = map.next_value()?,
                "function" => call.function = map.next_value()?,
                "type" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ => {
                    let raw: &RawValue = map.next_value()?;
                    if raw.get() != "null" {
                        call.other_fields.push((name, raw));
                    }
                }
            }
        }
        Ok(call)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FirstChoice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstChoiceVisitor)
    }
}

struct FirstChoiceVisitor;

impl<'de> Visitor<'de> for FirstChoiceVisitor {
    type Value = FirstChoice<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while let Some(choice) = seq.next_element::<ChunkChoice<'de>>()? {
            if choice.index == LenientCount(0) {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(FirstChoice(Some(choice)));
            }
        }
        Ok(FirstChoice(None))
    }
}
