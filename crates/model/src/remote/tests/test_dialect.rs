//! A minimal dialect: a frame is `say …`, `input_tokens_read …` (tokens), `stop` or `fail`; any other frame is
//! ignored.

use std::collections::VecDeque;

use serde_json::json;

use super::super::*;
use crate::delta::{Delta, ModelError};
use crate::dialect::{EncodeInput, EncodedRequest, ErrorResponse, SseEvent, StreamDecoder};
use turnwire_event::StopReason;
use turnwire_event::code::LlmErrorClass;

pub(super) struct TestDialect;

#[derive(Default)]
struct TestDecoder {
    is_done: bool,
    input_tokens_read: u64,
}

impl VendorDialect for TestDialect {
    fn name(&self) -> &'static str {
        "tiny"
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-key", format!("Key {key}")));
        [("x-team", "nobody".to_owned())]
            .into_iter()
            .chain(key)
            .collect()
    }

    fn headers_for(&self, params: &ModelParams) -> Vec<(&'static str, String)> {
        let temperature_header = params.temperature.map(|_| ("x-warm", "yes".to_owned()));
        [("x-team", "few".to_owned())]
            .into_iter()
            .chain(temperature_header)
            .collect()
    }

    fn encode(&self, input: &EncodeInput<'_>) -> EncodedRequest {
        EncodedRequest {
            path: "/say?alt=sse".into(),
            body: json!({
                "provider": input.provider,
                "model": input.model,
                "text": input.request.user_text(),
                "max_tokens": input.params.max_tokens,
                "temperature": input.params.temperature,
                "extra": input.params.extra,
            }),
        }
    }

    fn decoder(&self) -> Box<dyn StreamDecoder> {
        Box::<TestDecoder>::default()
    }

    fn classify_response(&self, response: ErrorResponse<'_>) -> ModelError {
        let class = match response.status {
            429 => LlmErrorClass::RateLimited,
            // Shows a test how much of the body was read.
            413 if response.body.len() == 65_536 => LlmErrorClass::Internal,
            _ => LlmErrorClass::Provider,
        };
        let again = match response.retry_after {
            Some(time) => crate::RetryHint::After(time),
            None if response.status >= 500 => crate::RetryHint::Backoff,
            None => crate::RetryHint::Never,
        };
        ModelError::new(class, again)
    }
}

impl StreamDecoder for TestDecoder {
    fn step(&mut self, frame: SseEvent<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if self.is_done {
            return Ok(());
        }
        for line in frame.data.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("say", text) => out.push_back(Delta::Text {
                    block: 0,
                    text: text.to_owned(),
                }),
                ("read", tokens) => self.input_tokens_read = tokens.parse().expect("a number"),
                ("stop", _) => {
                    self.is_done = true;
                    let usage = TokenUsage {
                        input_tokens: 100,
                        output_tokens: 5,
                        total_tokens: 105,
                        ..TokenUsage::default()
                    };
                    let reason = StopReason::EndTurn;
                    out.push_back(Delta::Stop { reason, usage });
                }
                ("fail", _) => return Err(LlmErrorClass::Provider.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Wrong on purpose: accepts every end of the body and emits nothing.
    fn end(&mut self, _: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        Ok(())
    }

    fn usage_so_far(&self) -> TokenUsage {
        TokenUsage {
            input_tokens: self.input_tokens_read,
            total_tokens: self.input_tokens_read,
            ..TokenUsage::default()
        }
    }

    fn cache_written_tokens(&self) -> u64 {
        40
    }
}
