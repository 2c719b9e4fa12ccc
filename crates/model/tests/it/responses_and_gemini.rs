//! The OpenAI Responses and Gemini dialects: a stream that was recorded from a running server,
//! streams written after the vendors' documentation, and the requests for them.

mod support;
mod responses;
mod gemini;
mod splits;
mod arbitrary;
mod request;
mod truncation;
mod item_order;
