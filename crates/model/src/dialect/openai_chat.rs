//! OpenAI Chat Completions, which nearly every local server speaks too: `POST /chat/completions`,
//! unnamed events, `[DONE]` at the end. `docs/providers.md` has what this relies on, with versions
//! and dates, and what compatible servers do otherwise.

mod words;
mod chunk;
mod calls;
mod reasoning;
mod normalize;
mod encode;

use crate::delta::ModelError;
use crate::dialect::{Decoder, Dialect, Encoded, Params, Refused, trouble};
use crate::request::Request;

/// The Chat Completions interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

impl Dialect for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let bearer = key.map(|key| ("authorization", format!("Bearer {key}")));
        bearer.into_iter().collect()
    }

    fn encode(&self, provider: &str, model: &str, request: &Request, params: &Params) -> Encoded {
        Encoded {
            path: "/chat/completions".to_owned(),
            body: encode::body(provider, model, request, params),
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<normalize::Completion>::default()
    }

    fn refused(&self, refused: Refused<'_>) -> ModelError {
        trouble::refused(refused)
    }
}
