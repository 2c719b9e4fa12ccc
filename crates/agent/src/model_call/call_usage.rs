//! What a call in flight has used so far: the numbers of its provider, and estimates where it has
//! reported none. A call that is stopped or fails has no final numbers, and is paid for as well.

use std::sync::Arc;

use turnwire_event::{ContentBlock, TokenUsage};
use turnwire_model::{ModelProvider, ModelRequest};

/// The bytes of output after which the usage is reported again: a stop is then exact to some 16
/// tokens, and most deltas need no report.
const REPORT_BYTES: u64 = 64;

/// The usage of one call in flight.
pub(crate) struct CallUsage<'a> {
    provider: &'a Arc<dyn ModelProvider>,
    model: String,
    /// The newest numbers of the provider.
    reported: TokenUsage,
    input_bytes: u64,
    output_bytes: u64,
    /// The output at which the next report is due.
    report_at: u64,
}

impl<'a> CallUsage<'a> {
    pub(crate) fn new(provider: &'a Arc<dyn ModelProvider>, request: &ModelRequest) -> Self {
        Self {
            provider,
            model: request.model.clone(),
            reported: TokenUsage::default(),
            input_bytes: request_bytes(request),
            output_bytes: 0,
            report_at: 1,
        }
    }

    /// Takes the numbers of the provider.
    pub(crate) fn set_reported(&mut self, usage: TokenUsage) {
        self.reported = usage;
    }

    /// Adds `bytes` of output, and returns true if the usage should be reported again.
    pub(crate) fn add_output(&mut self, bytes: usize) -> bool {
        self.output_bytes = self.output_bytes.saturating_add(bytes as u64);
        let is_due = self.output_bytes >= self.report_at;
        if is_due {
            self.report_at = self.output_bytes + REPORT_BYTES;
        }
        is_due
    }

    /// The usage of the call if it ended now.
    pub(crate) fn so_far(&self) -> TokenUsage {
        let reported = self.reported;
        let input_tokens = match reported.input_tokens {
            0 => TokenUsage::estimated_tokens(self.input_bytes),
            tokens => tokens,
        };
        // Some providers report a first count of the output, and the rest only at the end.
        let output_tokens = TokenUsage::estimated_tokens(self.output_bytes);
        let output_tokens = output_tokens.max(reported.output_tokens);
        if (input_tokens, output_tokens) == (reported.input_tokens, reported.output_tokens) {
            return reported;
        }
        let mut usage = TokenUsage {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            estimated: true,
            ..reported
        };
        let cost_usd = self.provider.cost_usd(&self.model, &usage);
        usage.cost_usd = cost_usd.max(reported.cost_usd);
        usage
    }

    /// The usage of a call that failed before its first output: nothing, unless the provider
    /// reported something or had the request for long.
    pub(crate) fn without_output(&self, is_timeout: bool) -> TokenUsage {
        match is_timeout && self.reported.is_zero() {
            true => self.so_far(),
            false => self.reported,
        }
    }
}

/// The bytes of text in a request.
fn request_bytes(request: &ModelRequest) -> u64 {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let content: usize = blocks.map(block_bytes).sum();
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len());
    let system = request.system.as_ref().map_or(0, String::len);
    (system + content + tools.sum::<usize>()) as u64
}

fn block_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => text.len(),
        ContentBlock::ToolUse { name, input, .. } => name.len() + input.to_string().len(),
        ContentBlock::ToolResult { content, .. } => content.to_string().len(),
        // Models are not sent these.
        ContentBlock::Component { .. } | ContentBlock::Data { .. } => 0,
    }
}
