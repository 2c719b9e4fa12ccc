//! The Google Gemini API: `generateContent` as a stream. `docs/providers.md` lists the API features
//! that this dialect relies on, with versions and dates.

mod partial_args;
mod chunk;
mod error;
mod decode;
mod encode;

use crate::delta::ModelError;
use crate::dialect::{EncodeInput, EncodedRequest, ErrorResponse, StreamDecoder, VendorDialect};

/// The dialect of the Gemini API.
#[derive(Clone, Copy, Debug, Default)]
pub struct GeminiDialect;

impl VendorDialect for GeminiDialect {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-goog-api-key", key.to_owned()));
        key.into_iter().collect()
    }

    fn encode(&self, input: &EncodeInput<'_>) -> EncodedRequest {
        EncodedRequest {
            path: encode::path(input.model),
            body: encode::body(input),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::<decode::GeminiDecoder>::default()
    }

    fn classify_response(&self, response: ErrorResponse<'_>) -> ModelError {
        error::classify_response(response)
    }
}
