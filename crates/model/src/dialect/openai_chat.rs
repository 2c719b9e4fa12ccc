//! The OpenAI Chat Completions API, which nearly every local server offers too: `POST
//! /chat/completions`, unnamed events, `[DONE]` at the end. `docs/providers.md` lists the API
//! features that this dialect relies on, with versions and dates, and how compatible servers
//! differ.

mod text;
mod chunk;
mod tool_calls;
mod reasoning;
mod decode;
mod encode;

use crate::delta::ModelError;
use crate::dialect::{
    EncodedRequest, ErrorResponse, ModelParams, StreamDecoder, VendorDialect, error_class,
};
use crate::request::ModelRequest;

/// The dialect of the OpenAI Chat Completions API.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChatDialect;

impl VendorDialect for OpenAiChatDialect {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let bearer = key.map(|key| ("authorization", format!("Bearer {key}")));
        bearer.into_iter().collect()
    }

    fn encode(
        &self,
        provider: &str,
        model: &str,
        request: &ModelRequest,
        params: &ModelParams,
    ) -> EncodedRequest {
        EncodedRequest {
            path: "/chat/completions".to_owned(),
            body: encode::body(provider, model, request, params),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::<decode::ChatDecoder>::default()
    }

    fn classify_response(&self, response: ErrorResponse<'_>) -> ModelError {
        error_class::classify_response(response)
    }
}
