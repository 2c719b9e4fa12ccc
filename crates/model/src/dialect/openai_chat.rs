//! The OpenAI Chat Completions API, which nearly every local server offers too: `POST
//! /chat/completions`, unnamed events, `[DONE]` at the end. `docs/providers.md` lists the API
//! features that this dialect relies on, with versions and dates, and how compatible servers
//! differ.

mod text;
mod chunk;
mod object_scan;
mod tool_calls;
mod reasoning;
mod decode;
mod encode;

use crate::dialect::{EncodeInput, EncodedRequest, StreamDecoder, VendorDialect, bearer_header};

/// The dialect of the OpenAI Chat Completions API.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChatDialect;

impl VendorDialect for OpenAiChatDialect {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer_header(key)
    }

    fn encode(&self, input: &EncodeInput<'_>) -> EncodedRequest {
        EncodedRequest {
            path: "/chat/completions".to_owned(),
            body: encode::body(input),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::<decode::ChatDecoder>::default()
    }
}
