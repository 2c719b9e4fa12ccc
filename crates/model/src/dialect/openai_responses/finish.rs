//! The end of an answer: open calls are closed and the usage is counted. In a truncated answer a
//! call without arguments stays open, since its arguments may be missing.

use turnwire_event::TokenUsage;

use super::chunk::{ResponseObject, ResponsesUsage, list};
use super::decode::{ONLY, ResponsesDecoder};
use super::error;
use super::item_state::ItemKind;
use super::provider_data;
use crate::delta::{Delta, ModelError};
use crate::dialect::answer_ending::AnswerEnding;
use crate::dialect::lenient::LenientCount;
use crate::dialect::{DecodeResult, token_usage};

impl ResponsesDecoder {
    /// Handles the final event of an answer: completed, incomplete or failed.
    pub(super) fn finish(&mut self, kind: &str, response: ResponseObject<'_>) -> DecodeResult {
        self.failed_usage = response.usage.map(total_usage).unwrap_or_default();
        let status = response.status.as_str();
        if kind == "response.failed" || ["failed", "cancelled"].contains(&status) {
            return Err(error::classify(response.error));
        }
        let is_truncated = kind == "response.incomplete" || status == "incomplete";
        let reason = response.incomplete_details.as_ref();
        let reason = reason.map_or("", |details| details.reason.as_str());
        if is_truncated && reason == "content_filter" && self.order.is_empty() {
            // An empty answer would hide the filter.
            return Err(ModelError::malformed());
        }
        if self.order.is_empty() {
            self.start(response.id);
            for (index, raw) in (0..).zip(list(response.output)) {
                self.item_done(Some(index), raw)?;
            }
        }
        self.order.release_all()?;
        self.close_calls(is_truncated)?;
        let usage = response.usage.unwrap_or_default();
        let details = usage.input_tokens_details.unwrap_or_default();
        self.cache_written = LenientCount::or_zero(details.cache_write_tokens);
        self.has_stopped = true;
        let ending = match (is_truncated, reason) {
            // The vendor's filter or a later request stopped the answer.
            (true, "content_filter" | "steered") => AnswerEnding::Filtered,
            (true, _) => AnswerEnding::Truncated,
            (false, _) => AnswerEnding::Complete,
        };
        self.order.out.push_back(Delta::Stop {
            reason: ending.stop_reason(self.has_calls),
            usage: total_usage(usage),
        });
        Ok(())
    }

    /// Ends the open calls whose input is complete.
    fn close_calls(&mut self, is_truncated: bool) -> DecodeResult {
        for position in 0..self.order.len() {
            let item = self.order.state(position);
            if item.kind != ItemKind::Call || item.is_done {
                continue;
            }
            let call = item.call.as_ref().ok_or_else(ModelError::malformed)?;
            let is_input_missing = is_truncated && !call.has_input;
            let data = call.call_id.as_deref().filter(|_| !call.has_provider_data);
            let data = data.map(provider_data::call_by_id);
            self.push_provider_data(position, ONLY, data)?;
            if !is_input_missing {
                self.end_call(position)?;
            }
        }
        Ok(())
    }
}

fn total_usage(usage: ResponsesUsage) -> TokenUsage {
    let tokens = LenientCount::or_zero;
    let input_details = usage.input_tokens_details.unwrap_or_default();
    let output_details = usage.output_tokens_details.unwrap_or_default();
    let (input, output) = (tokens(usage.input_tokens), tokens(usage.output_tokens));
    TokenUsage {
        reasoning_tokens: tokens(output_details.reasoning_tokens),
        cached_tokens: tokens(input_details.cached_tokens),
        ..token_usage(input, output, usage.total_tokens)
    }
}
