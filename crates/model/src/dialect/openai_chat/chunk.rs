//! The chunks of a Chat Completions stream, as typed as reading them needs. Only the first choice
//! is read; strings that are merely looked at are not copied.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::words::{Arguments, Words};
use crate::dialect::loose::{Count, Glance};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Glance<'a>>,
    #[serde(borrow)]
    pub(super) choices: Option<Choices<'a>>,
    pub(super) usage: Option<Usage>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// The choice that is read, if it is in the chunk.
#[derive(Debug, Default)]
pub(super) struct Choices<'a>(pub(super) Option<Choice<'a>>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<Count>,
    #[serde(borrow)]
    pub(super) delta: Option<Said<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Glance<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said<'a> {
    pub(super) content: Option<Words>,
    pub(super) reasoning_content: Option<Words>,
    pub(super) reasoning: Option<Words>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    pub(super) refusal: Option<Words>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<Function<'a>>,
}

/// A piece of a call.
#[derive(Debug, Default)]
pub(super) struct Call<'a> {
    pub(super) index: Option<Count>,
    pub(super) id: Option<Glance<'a>>,
    pub(super) function: Option<Function<'a>>,
    /// All other fields, unread, but those that are null.
    pub(super) rest: Vec<(Glance<'a>, &'a RawValue)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Glance<'a>>,
    pub(super) arguments: Option<Arguments>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) prompt_tokens: Option<Count>,
    pub(super) completion_tokens: Option<Count>,
    pub(super) total_tokens: Option<Count>,
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    pub(super) completion_tokens_details: Option<CompletionDetails>,
    /// Of the prompt, what came from the cache, with servers that have no details.
    pub(super) prompt_cache_hit_tokens: Option<Count>,
    pub(super) cached_tokens: Option<Count>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Option<Count>,
    pub(super) cache_write_tokens: Option<Count>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: Option<Count>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Call<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CallVisitor)
    }
}

struct CallVisitor;

impl<'de> Visitor<'de> for CallVisitor {
    type Value = Call<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Call<'de>, A::Error> {
        let mut call = Call::default();
        while let Some(name) = map.next_key::<Glance<'de>>()? {
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
                        call.rest.push((name, raw));
                    }
                }
            }
        }
        Ok(call)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(First(PhantomData))
    }
}

struct First<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for First<'a> {
    type Value = Choices<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Choices<'a>, A::Error> {
        while let Some(choice) = seq.next_element::<Choice<'a>>()? {
            if choice.index.unwrap_or_default() == Count(0) {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Choices(Some(choice)));
            }
        }
        Ok(Choices(None))
    }
}
