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

/// The interface's version that is asked for: the newest. It takes no sampling parameters.
const VERSION: &str = "2026-10-21";

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
