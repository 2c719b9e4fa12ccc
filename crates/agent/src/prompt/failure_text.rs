//! Sentences for when the model that speaks is itself what failed (C-06): written by the pack's
//! authors, in the person's language, played like a model's.

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, iter};
use turnwire_event::code::{ErrorCode, LlmErrorClass};
use turnwire_event::{StopReason, Usage};
use turnwire_model::{Delta, ModelError, Provider, Request};
use turnwire_pack::LocaleTable;

/// The sentences in one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Templates {
    /// What events call them instead of a model.
    pub(crate) model: String,
    sub_agent: String,
    internal: String,
    rate_limit: String,
}

impl Templates {
    /// Those for `locale`, or the nearest there are.
    pub(crate) fn new(locales: &LocaleTable, locale: &str) -> Self {
        let line = |key: &str, otherwise: &str| {
            let line = locales.line(locale, key);
            line.map_or_else(|| otherwise.to_owned(), |line| line.message)
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
            rate_limit: line(
                "failure.rate_limit",
                "I am very busy right now. Please try again in a moment.",
            ),
        }
    }

    /// The sentence for a turn that ends with `code`.
    pub(crate) fn line(&self, code: ErrorCode) -> Line {
        Line(match code {
            ErrorCode::SubAgentFailed | ErrorCode::CcsEnvelopeError | ErrorCode::PartialFanOut => {
                self.sub_agent.clone()
            }
            ErrorCode::RateLimitError => self.rate_limit.clone(),
            ErrorCode::InternalError => self.internal.clone(),
        })
    }
}

/// A model that says one sentence, at no cost.
pub(crate) struct Line(String);

impl Provider for Line {
    fn stream(&self, _: Request) -> BoxStream<'static, Result<Delta, ModelError>> {
        let text = Delta::Text {
            block: 0,
            text: self.0.clone(),
        };
        let stop = Delta::Stop {
            reason: StopReason::EndTurn,
            usage: Usage::default(),
        };
        iter([Ok(text), Ok(stop)]).boxed()
    }
}

/// The model that nobody serves: every call of it fails.
pub(crate) struct Absent;

impl Provider for Absent {
    fn stream(&self, _: Request) -> BoxStream<'static, Result<Delta, ModelError>> {
        iter([Err(LlmErrorClass::Internal.into())]).boxed()
    }
}
