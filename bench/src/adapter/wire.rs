//! The four wires as derived structs, with the fields that an adapter reads and no more.
//!
//! They forgive nothing. Strings that are only looked at are borrowed; words are copied once, as
//! whoever passes them on has to.

#![expect(
    dead_code,
    reason = "the reference reads what an adapter reads, and does nothing with it"
)]

use serde::Deserialize;
use serde_json::value::RawValue;

/// An event of Anthropic Messages.
#[derive(Debug, Deserialize)]
pub(super) struct Messages<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    index: Option<u64>,
    pub(super) delta: Option<MessagesDelta<'a>>,
    #[serde(borrow)]
    content_block: Option<MessagesBlock<'a>>,
    message: Option<MessagesStart<'a>>,
    usage: Option<MessagesUsage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessagesDelta<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    pub(super) text: Option<String>,
    partial_json: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    stop_reason: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct MessagesBlock<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: Option<&'a str>,
    name: Option<&'a str>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct MessagesStart<'a> {
    id: &'a str,
    usage: MessagesUsage,
}

#[derive(Debug, Deserialize)]
struct MessagesUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

/// A chunk of OpenAI Chat Completions.
#[derive(Debug, Deserialize)]
pub(super) struct Chat<'a> {
    id: &'a str,
    #[serde(borrow)]
    pub(super) choices: Vec<ChatChoice<'a>>,
    usage: Option<ChatUsage>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatChoice<'a> {
    index: u32,
    #[serde(borrow)]
    pub(super) delta: ChatDelta<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatDelta<'a> {
    pub(super) content: Option<String>,
    reasoning_content: Option<String>,
    refusal: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatCall<'a>>>,
}

#[derive(Debug, Deserialize)]
struct ChatCall<'a> {
    index: u32,
    id: Option<&'a str>,
    #[serde(borrow)]
    function: ChatFunction<'a>,
}

#[derive(Debug, Deserialize)]
struct ChatFunction<'a> {
    name: Option<&'a str>,
    arguments: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

/// An event of OpenAI Responses.
#[derive(Debug, Deserialize)]
pub(super) struct Responses<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    output_index: Option<u32>,
    item_id: Option<&'a str>,
    content_index: Option<u32>,
    pub(super) delta: Option<String>,
    text: Option<String>,
    arguments: Option<String>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

/// A chunk of Google Gemini.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Gemini<'a> {
    #[serde(borrow)]
    pub(super) candidates: Vec<GeminiCandidate<'a>>,
    usage_metadata: Option<GeminiUsage>,
    response_id: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiCandidate<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    pub(super) content: GeminiContent<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GeminiContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Vec<GeminiPart<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiPart<'a> {
    pub(super) text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    #[serde(borrow)]
    function_call: Option<GeminiCall<'a>>,
}

#[derive(Debug, Deserialize)]
struct GeminiCall<'a> {
    id: Option<&'a str>,
    name: &'a str,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    total_token_count: Option<u64>,
}
