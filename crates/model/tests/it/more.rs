//! The Responses and Gemini dialects: a stream that was recorded from a running server, streams
//! written after the vendors' documentation, and the requests they answer.

mod support;
mod responses;
mod gemini;
mod splits;
mod arbitrary;
mod request;
mod cut;
mod order;
