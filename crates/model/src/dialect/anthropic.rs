//! Anthropic Messages: `POST /v1/messages`, named events, blocks by index. `docs/providers.md`
//! has what this relies on, with versions and dates.

mod chunk;
mod block;
mod order;
mod normalize;
mod encode;

use crate::delta::ModelError;
use crate::dialect::{Decoder, Dialect, Encoded, Params, Refused, trouble};
use crate::request::Request;

/// The interface's version that is asked for: the newest.
const VERSION: &str = "2026-10-21";

/// The version before it, the last one that takes sampling parameters.
const VERSION_THAT_SAMPLES: &str = "2023-06-01";

/// The fields that only the older version takes.
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

/// The Messages interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anthropic;

impl Dialect for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        // The vendor also takes it as a bearer; servers that copy the interface know this one.
        headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
        headers
    }

    fn headers_for(&self, params: &Params) -> Vec<(&'static str, String)> {
        // What `extra` says of a field, even that it goes, counts before the field itself.
        let sampled = SAMPLING
            .into_iter()
            .any(|field| match params.extra.get(field) {
                Some(value) => !value.is_null(),
                None => field == "temperature" && encode::temperature(params).is_some(),
            });
        let version = ("anthropic-version", VERSION_THAT_SAMPLES.to_owned());
        sampled.then_some(version).into_iter().collect()
    }

    fn encode(&self, provider: &str, model: &str, request: &Request, params: &Params) -> Encoded {
        Encoded {
            path: "/v1/messages".to_owned(),
            body: encode::body(provider, model, request, params),
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<normalize::Messages>::default()
    }

    fn refused(&self, refused: Refused<'_>) -> ModelError {
        trouble::refused(refused)
    }
}
