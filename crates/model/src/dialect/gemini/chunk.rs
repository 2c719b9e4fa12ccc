//! The frames of a Gemini stream: each one is a whole response object that holds only the new
//! content.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::partial_args::PartialArg;
use crate::dialect::lenient::{LenientCount, OptionalStr};

/// One frame of the stream.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiChunk<'a> {
    /// New content by candidate; only the first candidate is requested.
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<CandidateChunk<'a>>>,
    /// The vendor's verdict on the request.
    #[serde(borrow)]
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    /// Token counts so far.
    pub(super) usage_metadata: Option<UsageMetadata>,
    /// Id of the response, the same in every frame.
    #[serde(borrow, default)]
    pub(super) response_id: OptionalStr<'a>,
    /// An error in place of content.
    pub(super) error: Option<Value>,
}

/// New content of one candidate.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CandidateChunk<'a> {
    /// Number of the candidate; missing or 0 for the first.
    pub(super) index: Option<LenientCount>,
    #[serde(borrow)]
    pub(super) content: Option<CandidateContent<'a>>,
    /// The finish reason; empty until the answer ends.
    #[serde(borrow, default)]
    pub(super) finish_reason: OptionalStr<'a>,
    /// The sources that the answer quotes.
    #[serde(borrow)]
    pub(super) citation_metadata: Option<CitationMetadata<'a>>,
}

/// Sources of an answer. The two versions of the API name the list differently.
#[derive(Debug, Deserialize)]
pub(super) struct CitationMetadata<'a> {
    #[serde(borrow, alias = "citationSources")]
    pub(super) citations: Option<Vec<Citation<'a>>>,
}

/// A source that the answer quotes.
#[derive(Debug, Deserialize)]
pub(super) struct Citation<'a> {
    #[serde(borrow, default)]
    pub(super) uri: OptionalStr<'a>,
    #[serde(borrow, default)]
    pub(super) title: OptionalStr<'a>,
    #[serde(borrow, default)]
    pub(super) license: OptionalStr<'a>,
}

/// The content of a candidate.
#[derive(Debug, Deserialize)]
pub(super) struct CandidateContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<ContentPart<'a>>>,
}

/// A part of the content: text, a thought, a function call, or a kind that is not decoded.
#[derive(Debug, Default)]
pub(super) struct ContentPart<'a> {
    pub(super) text: OptionalStr<'a>,
    /// True if `text` is a thought.
    pub(super) is_thought: bool,
    /// The vendor's thought signature.
    pub(super) signature: OptionalStr<'a>,
    pub(super) call: Option<FunctionCall<'a>>,
    /// All other fields, unparsed.
    pub(super) other_fields: Vec<(String, &'a RawValue)>,
}

impl ContentPart<'_> {
    /// True if nothing is in it, which some servers send between other parts.
    pub(super) fn is_empty(&self) -> bool {
        let texts = [&self.text, &self.signature];
        texts.iter().all(|text| text.as_str().is_empty())
            && self.call.is_none()
            && self.other_fields.is_empty()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentPart<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ContentPartVisitor)
    }
}

struct ContentPartVisitor;

impl<'de> Visitor<'de> for ContentPartVisitor {
    type Value = ContentPart<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a part")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut part = ContentPart::default();
        while let Some(name) = map.next_key::<OptionalStr<'de>>()? {
            match name.as_str() {
                "text" => part.text = map.next_value()?,
                "thought" => part.is_thought = map.next_value::<Option<bool>>()? == Some(true),
                "thoughtSignature" => part.signature = map.next_value()?,
                "functionCall" => part.call = map.next_value()?,
                other => {
                    let name = other.to_owned();
                    part.other_fields.push((name, map.next_value()?));
                }
            }
        }
        Ok(part)
    }
}

/// A function call, complete or a part of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCall<'a> {
    /// The vendor's id of the call; older models send none.
    #[serde(borrow, default)]
    pub(super) id: OptionalStr<'a>,
    #[serde(borrow, default)]
    pub(super) name: OptionalStr<'a>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
    /// Parts of the arguments, in place of `args`.
    #[serde(borrow)]
    pub(super) partial_args: Option<Vec<PartialArg<'a>>>,
    /// True if further parts of the call follow.
    pub(super) will_continue: Option<bool>,
}

/// The vendor's verdict on the request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    /// Why the request was blocked; empty if it was not.
    #[serde(borrow, default)]
    pub(super) block_reason: OptionalStr<'a>,
}

/// Token counts so far; later counts replace earlier ones.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    /// Input tokens, cached ones included.
    pub(super) prompt_token_count: Option<LenientCount>,
    /// Additional input tokens from the vendor's own tools.
    pub(super) tool_use_prompt_token_count: Option<LenientCount>,
    /// Input tokens served from the cache.
    pub(super) cached_content_token_count: Option<LenientCount>,
    /// Output tokens without thoughts.
    pub(super) candidates_token_count: Option<LenientCount>,
    /// Output tokens of thoughts.
    pub(super) thoughts_token_count: Option<LenientCount>,
    /// Total, as the vendor counts it.
    pub(super) total_token_count: Option<LenientCount>,
}
