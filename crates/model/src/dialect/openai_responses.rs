//! OpenAI's Responses, and every server that speaks it. `docs/providers.md` has what of it we
//! rely on, and from when.

mod chunk;
mod order;
mod sealed;
mod failure;
mod normalize;
mod item;
mod ending;
mod encode;

use crate::delta::ModelError;
use crate::dialect::{Decoder, Dialect, Encoded, Params, Refused, trouble};
use crate::request::Request;

/// The dialect.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let bearer = key.map(|key| ("authorization", format!("Bearer {key}")));
        bearer.into_iter().collect()
    }

    fn encode(&self, provider: &str, model: &str, request: &Request, params: &Params) -> Encoded {
        Encoded {
            path: "/responses".to_owned(),
            body: encode::body(provider, model, request, params),
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(normalize::Reader::default())
    }

    fn refused(&self, refused: Refused<'_>) -> ModelError {
        trouble::refused(refused)
    }
}
