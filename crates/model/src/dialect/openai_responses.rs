//! The OpenAI Responses API and servers compatible with it. `docs/providers.md` lists the API
//! features that this dialect relies on, with versions and dates.

mod chunk;
mod item_order;
mod provider_data;
mod error;
mod decode;
mod item;
mod finish;
mod encode;

use crate::delta::ModelError;
use crate::dialect::{
    EncodedRequest, ErrorResponse, ModelParams, StreamDecoder, VendorDialect, error_class,
};
use crate::request::ModelRequest;

/// The dialect of the OpenAI Responses API.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiResponsesDialect;

impl VendorDialect for OpenAiResponsesDialect {
    fn name(&self) -> &'static str {
        "openai_responses"
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
            path: "/responses".to_owned(),
            body: encode::body(provider, model, request, params),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::<decode::ResponsesDecoder>::default()
    }

    fn classify_response(&self, response: ErrorResponse<'_>) -> ModelError {
        error_class::classify_response(response)
    }
}
