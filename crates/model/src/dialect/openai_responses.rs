//! The OpenAI Responses API and servers compatible with it. `docs/providers.md` lists the API
//! features that this dialect relies on, with versions and dates.

mod chunk;
mod item_state;
mod provider_data;
mod error;
mod decode;
mod item;
mod finish;
mod encode;

use crate::dialect::{EncodeInput, EncodedRequest, StreamDecoder, VendorDialect, bearer_header};

/// The dialect of the OpenAI Responses API.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiResponsesDialect;

impl VendorDialect for OpenAiResponsesDialect {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer_header(key)
    }

    fn encode(&self, input: &EncodeInput<'_>) -> EncodedRequest {
        EncodedRequest {
            path: "/responses".to_owned(),
            body: encode::body(input),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::<decode::ResponsesDecoder>::default()
    }
}
