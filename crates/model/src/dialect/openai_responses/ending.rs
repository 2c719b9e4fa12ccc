//! The end of an answer: what is still open is closed, and the tokens are counted. In an answer that
//! was cut, a call without arguments stays open: they may be what is missing.

use std::collections::VecDeque;

use turnwire_event::{StopReason, Usage};

use super::chunk::{self, Response};
use super::failure;
use super::normalize::{ONLY, Reader, malformed};
use super::order::{Kind, Piece};
use super::sealed;
use crate::delta::{Delta, ModelError};
use crate::dialect::loose::Count;

impl Reader {
    /// The answer is whole, cut or failed.
    pub(super) fn finish(
        &mut self,
        kind: &str,
        response: Response<'_>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        self.spent = response.usage.map(counted).unwrap_or_default();
        let status = response.status.as_str();
        if kind == "response.failed" || ["failed", "cancelled"].contains(&status) {
            return Err(failure::of(response.error));
        }
        let is_cut = kind == "response.incomplete" || status == "incomplete";
        let reason = response.incomplete_details.as_ref();
        let reason = reason.map_or("", |details| details.reason.as_str());
        let is_withheld = is_cut && reason == "content_filter";
        if is_withheld && self.order.is_empty() {
            // Nothing was said, and an empty answer would hide why.
            return Err(malformed());
        }
        if self.order.is_empty() {
            let items = response.items();
            self.begin(response.id, out);
            for (place, raw) in (0..).zip(items) {
                self.done(Some(place), raw, out)?;
            }
        }
        self.order.let_all_out(out)?;
        self.close(is_cut, out)?;
        let usage = response.usage.unwrap_or_default();
        let details = usage.input_tokens_details.unwrap_or_default();
        self.cache_written = count(details.cache_write_tokens);
        self.has_stopped = true;
        out.push_back(Delta::Stop {
            reason: match (is_cut, reason) {
                // The vendor's filter, or another request, let no more through.
                (true, "content_filter" | "steered") => StopReason::EndTurn,
                (true, _) => StopReason::MaxTokens,
                (false, _) if self.has_calls => StopReason::ToolUse,
                (false, _) => StopReason::EndTurn,
            },
            usage: counted(usage),
        });
        Ok(())
    }

    /// Ends the calls that nobody ended, as far as they are whole.
    fn close(&mut self, is_cut: bool, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        for at in 0..self.order.len() {
            let item = self.order.item(at);
            if item.kind != Kind::Call || item.is_done {
                continue;
            }
            let call = item.call.as_ref().ok_or_else(malformed)?;
            let is_missing = is_cut && !call.has_input;
            let kept = call.call_id.as_deref().filter(|_| !call.is_kept);
            if let Some(kept) = kept.map(sealed::call_by_id) {
                self.order.say(at, ONLY, Piece::Keep(kept), out)?;
            }
            if !is_missing {
                self.order.say(at, ONLY, Piece::ToolEnd, out)?;
                self.order.finish(at, out)?;
            }
        }
        Ok(())
    }
}

fn count(count: Option<Count>) -> u64 {
    count.unwrap_or_default().0
}

fn counted(usage: chunk::Usage) -> Usage {
    let input = count(usage.input_tokens);
    let output = count(usage.output_tokens);
    let read = usage.input_tokens_details.unwrap_or_default();
    let written = usage.output_tokens_details.unwrap_or_default();
    Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: usage
            .total_tokens
            .map_or(input.saturating_add(output), |total| total.0),
        reasoning_tokens: count(written.reasoning_tokens),
        cached_tokens: count(read.cached_tokens),
        cost_usd: 0.0,
    }
}
