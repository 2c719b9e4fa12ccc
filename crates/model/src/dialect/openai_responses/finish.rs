//! The end of an answer: open calls are closed and the usage is counted. In a truncated answer a
//! call without arguments stays open, since its arguments may be missing.

use std::collections::VecDeque;

use turnwire_event::{StopReason, TokenUsage};

use super::chunk::{self, ResponseObject};
use super::decode::{ONLY, ResponsesDecoder, malformed};
use super::error;
use super::item_order::{ItemKind, ItemPiece};
use super::provider_data;
use crate::delta::{Delta, ModelError};
use crate::dialect::lenient::LenientCount;

impl ResponsesDecoder {
    /// Handles the final event of an answer: completed, incomplete or failed.
    pub(super) fn finish(
        &mut self,
        kind: &str,
        response: ResponseObject<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        self.failed_usage = response.usage.map(total_usage).unwrap_or_default();
        let status = response.status.as_str();
        if kind == "response.failed" || ["failed", "cancelled"].contains(&status) {
            return Err(error::classify(response.error));
        }
        let is_truncated = kind == "response.incomplete" || status == "incomplete";
        let reason = response.incomplete_details.as_ref();
        let reason = reason.map_or("", |details| details.reason.as_str());
        let is_filtered = is_truncated && reason == "content_filter";
        if is_filtered && self.order.is_empty() {
            // An empty answer would hide the filter.
            return Err(malformed());
        }
        if self.order.is_empty() {
            let items = response.items();
            self.start(response.id, out);
            for (index, raw) in (0..).zip(items) {
                self.item_done(Some(index), raw, out)?;
            }
        }
        self.order.release_all(out)?;
        self.close_calls(is_truncated, out)?;
        let usage = response.usage.unwrap_or_default();
        let details = usage.input_tokens_details.unwrap_or_default();
        self.cache_written = count(details.cache_write_tokens);
        self.has_stopped = true;
        out.push_back(Delta::Stop {
            reason: match (is_truncated, reason) {
                // The vendor's filter or a later request stopped the answer.
                (true, "content_filter" | "steered") => StopReason::EndTurn,
                (true, _) => StopReason::MaxTokens,
                (false, _) if self.has_calls => StopReason::ToolUse,
                (false, _) => StopReason::EndTurn,
            },
            usage: total_usage(usage),
        });
        Ok(())
    }

    /// Ends the open calls whose input is complete.
    fn close_calls(
        &mut self,
        is_truncated: bool,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        for position in 0..self.order.len() {
            let item = self.order.item(position);
            if item.kind != ItemKind::Call || item.is_done {
                continue;
            }
            let call = item.call.as_ref().ok_or_else(malformed)?;
            let is_input_missing = is_truncated && !call.has_input;
            let data = call.call_id.as_deref().filter(|_| !call.has_provider_data);
            if let Some(data) = data.map(provider_data::call_by_id) {
                self.order
                    .push(position, ONLY, ItemPiece::Keep(data), out)?;
            }
            if !is_input_missing {
                self.order.push(position, ONLY, ItemPiece::ToolEnd, out)?;
                self.order.finish(position, out)?;
            }
        }
        Ok(())
    }
}

fn count(count: Option<LenientCount>) -> u64 {
    count.unwrap_or_default().0
}

fn total_usage(usage: chunk::ResponsesUsage) -> TokenUsage {
    let input = count(usage.input_tokens);
    let output = count(usage.output_tokens);
    let input_details = usage.input_tokens_details.unwrap_or_default();
    let output_details = usage.output_tokens_details.unwrap_or_default();
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: usage
            .total_tokens
            .map_or(input.saturating_add(output), |total| total.0),
        reasoning_tokens: count(output_details.reasoning_tokens),
        cached_tokens: count(input_details.cached_tokens),
        cost_usd: 0.0,
    }
}
