//! The two chat dialects, Anthropic Messages and OpenAI Chat Completions: streams that were
//! recorded from a running server, and streams written after the vendors' documentation.

mod support;
mod anthropic;
mod bounds;
mod openai_chat;
mod calls;
mod both;
mod splits;
mod arbitrary;
mod round_trip;
mod request;
mod thinking;
mod cut;
mod order;
mod kept;
