//! The Anthropic Messages API: `POST /v1/messages`, named events, content blocks by index.
//! `docs/providers.md` lists the API features that this dialect relies on, with versions and dates.

mod chunk;
mod block;
mod decode;
mod encode;

use crate::dialect::{EncodeInput, EncodedRequest, ModelParams, StreamDecoder, VendorDialect};

/// API version sent by default: the newest.
const API_VERSION: &str = "2026-10-21";

/// The API version before, the last one that accepts sampling parameters.
const SAMPLING_API_VERSION: &str = "2023-06-01";

/// Fields that only [`SAMPLING_API_VERSION`] accepts.
const SAMPLING_FIELDS: [&str; 3] = ["temperature", "top_p", "top_k"];

/// The dialect of the Anthropic Messages API.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnthropicDialect;

impl VendorDialect for AnthropicDialect {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", API_VERSION.to_owned())];
        // The vendor also accepts a bearer token; compatible servers know only this header.
        headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
        headers
    }

    fn headers_for(&self, params: &ModelParams) -> Vec<(&'static str, String)> {
        // `extra` overrides the parameter, also if it removes it with `null`.
        let uses_sampling =
            SAMPLING_FIELDS
                .into_iter()
                .any(|field| match params.extra.get(field) {
                    Some(value) => !value.is_null(),
                    None => field == "temperature" && encode::temperature(params).is_some(),
                });
        let version = ("anthropic-version", SAMPLING_API_VERSION.to_owned());
        uses_sampling.then_some(version).into_iter().collect()
    }

    fn encode(&self, input: &EncodeInput<'_>) -> EncodedRequest {
        EncodedRequest {
            path: "/v1/messages".to_owned(),
            body: encode::body(input),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::<decode::MessagesDecoder>::default()
    }
}
