//! Tests of the dialects and of the scripted model, in one binary: decoding streams, encoding
//! requests, and the demo pack's script.

mod decoded;

mod anthropic_and_chat;
mod market;
mod responses_and_gemini;
mod replay;
