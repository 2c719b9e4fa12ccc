//! Google's Gemini, by `generateContent` and its stream. `docs/providers.md` has what of it we
//! rely on, and from when.

mod chunk;
mod failure;
mod normalize;
mod encode;

use crate::delta::ModelError;
use crate::dialect::{Decoder, Dialect, Encoded, Params, Refused};
use crate::request::Request;

/// The dialect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Dialect for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-goog-api-key", key.to_owned()));
        key.into_iter().collect()
    }

    fn encode(&self, provider: &str, model: &str, request: &Request, params: &Params) -> Encoded {
        Encoded {
            path: encode::path(model),
            body: encode::body(provider, model, request, params),
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(normalize::Reader::default())
    }

    fn refused(&self, refused: Refused<'_>) -> ModelError {
        failure::refused(refused)
    }
}
