//! Replies for when the orchestrator's model itself has failed (C-06): written by the authors of
//! the pack in the user's language, and streamed like the reply of a model.

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, iter};
use turnwire_event::code::{ErrorCode, LlmErrorClass};
use turnwire_event::{StopReason, TokenUsage};
use turnwire_model::{Delta, ModelError, ModelProvider, ModelRequest};
use turnwire_pack::LocaleTable;

/// The replies in one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailureTexts {
    /// The name of the model in events, `template:<tag>`.
    pub(crate) model: String,
    sub_agent: String,
    internal: String,
    model_failed: String,
    rate_limit: String,
}

impl FailureTexts {
    /// The replies for `locale`, or for the nearest language that `locales` has.
    pub(crate) fn new(locales: &LocaleTable, locale: &str) -> Self {
        let line = |key: &str, default: &str| {
            let line = locales.line(locale, key);
            line.map_or_else(|| default.to_owned(), |line| line.message)
        };
        let tag = locales.chain(locale).first().map_or(locale, |tag| *tag);
        Self {
            model: format!("template:{tag}"),
            sub_agent: line(
                "failure.sub_agent",
                "I could not get that for you right now. Please try again in a moment.",
            ),
            internal: line(
                "failure.internal",
                "Something went wrong on my side. Please try again in a moment.",
            ),
            model_failed: line(
                "failure.model",
                "The language model is not available right now. Please try again in a moment.",
            ),
            rate_limit: line(
                "failure.rate_limit",
                "I am very busy right now. Please try again in a moment.",
            ),
        }
    }

    /// The reply of a turn that ends with an [`ErrorCode`].
    pub(crate) fn reply(&self, code: ErrorCode) -> FixedReply {
        FixedReply(match code {
            ErrorCode::SubAgentFailed | ErrorCode::CcsEnvelopeError | ErrorCode::PartialFanOut => {
                self.sub_agent.clone()
            }
            ErrorCode::RateLimitError => self.rate_limit.clone(),
            ErrorCode::ModelUnavailable => self.model_failed.clone(),
            ErrorCode::InternalError => self.internal.clone(),
        })
    }
}

/// A [`ModelProvider`] that replies with one text, at no cost.
pub(crate) struct FixedReply(String);

impl FixedReply {
    /// The reply after other text of the turn.
    pub(crate) fn in_new_paragraph(self) -> Self {
        Self(format!("\n\n{}", self.0))
    }
}

impl ModelProvider for FixedReply {
    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<Delta, ModelError>> {
        let text = Delta::Text {
            block: 0,
            text: self.0.clone(),
        };
        let stop = Delta::Stop {
            reason: StopReason::EndTurn,
            usage: TokenUsage::default(),
        };
        iter([Ok(text), Ok(stop)]).boxed()
    }
}

/// A [`ModelProvider`] for a model that nobody serves: every call fails.
pub(crate) struct UnavailableModel;

impl ModelProvider for UnavailableModel {
    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<Delta, ModelError>> {
        iter([Err(LlmErrorClass::Internal.into())]).boxed()
    }
}
