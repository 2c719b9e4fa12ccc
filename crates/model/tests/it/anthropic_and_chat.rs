//! The Anthropic Messages and OpenAI Chat Completions dialects: streams that were recorded from a
//! running server, and streams written after the vendors' documentation.

mod support;
mod anthropic;
mod bounds;
mod openai_chat;
mod tool_calls;
mod cross_dialect;
mod splits;
mod arbitrary;
mod round_trip;
mod request;
mod thinking;
mod truncation;
mod block_order;
mod provider_data;
