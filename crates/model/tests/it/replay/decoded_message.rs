//! Decodes a vendor's stream into a stored message, and prints messages as lines. Lines have no
//! ids, so that vendors can be compared.

use std::collections::VecDeque;

use turnwire_dial::{SseLimits, SseReader};
use turnwire_event::{ContentBlock, ToolUseId};
use turnwire_model::ModelMessage;

use crate::decoded::message::from_deltas;
use crate::replay::vendor::Vendor;

/// Decodes a stream into a message; tool uses are numbered from `first`.
pub(crate) fn decode_message(vendor: &dyn Vendor, stream: &str, first: u128) -> ModelMessage {
    let mut sse = SseReader::new(SseLimits::per_event(4 << 20));
    let mut decoder = vendor.dialect().decoder();
    let mut deltas = VecDeque::new();
    let mut bytes = stream.as_bytes();
    while let Some(event) = sse.next_event(&mut bytes).expect("a stream of events") {
        decoder.step(event, &mut deltas).expect("a frame");
    }
    decoder.end(&mut deltas).expect("an end");
    from_deltas(vendor.name(), deltas.make_contiguous(), first)
}

/// The content of a message, a line per block, without ids and provider data.
pub(crate) fn content_lines(message: &ModelMessage) -> Vec<String> {
    let lines = message.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => (!text.is_empty()).then(|| format!("text {text}")),
        ContentBlock::Thinking { text, .. } => Some(format!("thinking {text}")),
        ContentBlock::ToolUse { name, input, .. } => Some(format!("tool {name} {input}")),
        ContentBlock::ToolResult { .. }
        | ContentBlock::Component { .. }
        | ContentBlock::Data { .. } => None,
    });
    lines.collect()
}

/// The tool uses of a message, and their cities.
pub(crate) fn tool_uses(message: &ModelMessage) -> Vec<(ToolUseId, String)> {
    let tool_uses = message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse { id, input, .. } => {
            Some((*id, input["city"].as_str().expect("a city").to_owned()))
        }
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Component { .. }
        | ContentBlock::Data { .. } => None,
    });
    tool_uses.collect()
}
